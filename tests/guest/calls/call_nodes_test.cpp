// Copies and fills that a coloured program adds to its graphs by hand.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CallNodes : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  using Answer = std::optional<CuResult>;
  using Bytes = std::vector<std::uint8_t>;

  CallNodes() {
    EXPECT_EQ(test::fake_symbol<CuResult(CuGraph*, unsigned)>("cuGraphCreate")(&graph, 0),
              cu_success);
  }
  ~CallNodes() override {
    serve(false);
    api.cuGraphDestroy(graph);
  }
  // For `count` bytes that count up from `from`.
  static Bytes bytes_from(std::uint8_t from, std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(from + i);
    return bytes;
  }
  static CuCopy3d line(DevicePointer to, DevicePointer from, std::size_t bytes) {
    CuCopy3d copy{};
    copy.source.type = copy.target.type = cu_memory_device;
    copy.source.device = from;
    copy.target.device = to;
    copy.width_bytes = bytes;
    copy.height = copy.depth = 1;
    return copy;
  }
  static CuCopy3d from_host(DevicePointer to, void* from, std::size_t bytes) {
    CuCopy3d copy = line(to, 0, bytes);
    copy.source.type = cu_memory_host;
    copy.source.host = from;
    return copy;
  }
  static CuCopy3d to_host(void* to, DevicePointer from, std::size_t bytes) {
    CuCopy3d copy = line(0, from, bytes);
    copy.target.type = cu_memory_host;
    copy.target.host = to;
    return copy;
  }
  Answer add(const CuCopy3d& copy, std::vector<CuGraphNode> after = {}) {
    return ask("cuGraphAddMemcpyNode", &node, graph, after.data(), after.size(), &copy, nullptr);
  }
  Answer add(const CuFillNode& fill, std::vector<CuGraphNode> after = {}) {
    return ask("cuGraphAddMemsetNode", &node, graph, after.data(), after.size(), &fill, nullptr);
  }
  CuGraphExec made() {
    CuGraphExec executable = nullptr;
    EXPECT_EQ(api.cuGraphInstantiateWithFlags(&executable, graph, 0), cu_success);
    return executable;
  }
  void run() {
    const CuGraphExec executable = made();
    EXPECT_EQ(api.cuGraphLaunch(executable, nullptr), cu_success);
    EXPECT_EQ(api.cuGraphExecDestroy(executable), cu_success);
  }
  // The stand-in finds no address for ordinary host memory, as the driver does not.
  void know_what_is_pinned() {
    own.cuMemHostGetDevicePointer_v2 = [](DevicePointer* device, void* host, unsigned flags) {
      const auto address = reinterpret_cast<DevicePointer>(host);
      if (address - pinned_at >= pinned_bytes || flags != 0) return cu_error_invalid_value;
      *device = address;
      return cu_success;
    };
    void* memory = nullptr;
    ASSERT_EQ(api.cuMemHostAlloc(&memory, pinned_bytes, 0), cu_success);
    pinned = static_cast<std::uint8_t*>(memory);
    pinned_at = reinterpret_cast<DevicePointer>(memory);
  }

  static constexpr std::size_t pinned_bytes = 4096;
  static inline DevicePointer pinned_at = 0;
  std::uint8_t* pinned = nullptr;
  CuGraph graph = nullptr;
  CuGraphNode node = nullptr;
  DevicePointer a = allocated(4096);
  DevicePointer b = allocated(4096);
};

TEST_F(CallNodes, copies_and_fills_are_carried_out_in_their_place) {
  write(a, bytes_from(1, 64));
  write(b, Bytes(4096, 0));
  ASSERT_EQ(add(CuFillNode{a + 8, 0, 0x0909, 2, 4, 1}), cu_success);
  const CuGraphNode fill = node;
  ASSERT_EQ(add(line(b + 100, a, 64), {fill}), cu_success);
  const CuGraphNode copy = node;
  ASSERT_EQ(add(CuFillNode{a, 16, 5, 1, 3, 2}, {copy}), cu_success);
  run();
  Bytes expected = bytes_from(1, 64);
  std::fill_n(expected.begin() + 8, 8, std::uint8_t{9});
  EXPECT_EQ(read<std::uint8_t>(b + 100, 64), expected);
  EXPECT_THAT(read<std::uint8_t>(a, 4), ElementsAre(5, 5, 5, 4));
  EXPECT_THAT(read<std::uint8_t>(a + 16, 4), ElementsAre(5, 5, 5, 20));
  EXPECT_EQ(read<std::uint8_t>(b + 99, 1)[0], 0);
  EXPECT_EQ(read<std::uint8_t>(b + 164, 1)[0], 0);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(CallNodes, boxes_whose_rows_lie_evenly_are_one_kernel) {
  write(a, bytes_from(0, 240));
  write(b, Bytes(4096, 0));
  CuCopy3d box = line(b, a, 3);
  box.source.pitch = 10;
  box.source.height = 4;
  box.source.x_bytes = 1;
  box.source.y = 1;
  box.target.pitch = 5;
  box.target.height = 3;
  box.height = 3;
  box.depth = 2;
  EXPECT_EQ(add(box), cu_error_not_supported) << "a row of the source is left out in each plane";
  EXPECT_THAT(told, ElementsAre(HasSubstr("planes that do not lie as rows do")));
  box.source.height = 3;
  ASSERT_EQ(add(box), cu_success);
  box.height = 1;
  box.source.height = 4;
  box.target.height = 7;
  box.target.device = b + 1000;
  ASSERT_EQ(add(box), cu_success) << "one row of each plane";
  run();
  for (std::size_t row = 0; row < 6; ++row) {
    EXPECT_EQ(read<std::uint8_t>(b + row * 5, 3), bytes_from(std::uint8_t(11 + row * 10), 3));
  }
  EXPECT_EQ(read<std::uint8_t>(b + 3, 2), Bytes(2, 0));
  EXPECT_EQ(read<std::uint8_t>(b + 1000, 3), bytes_from(11, 3));
  EXPECT_EQ(read<std::uint8_t>(b + 1035, 3), bytes_from(51, 3));
}

TEST_F(CallNodes, memory_of_the_host_is_reached_where_it_is_pinned) {
  know_what_is_pinned();
  std::fill_n(pinned, pinned_bytes, std::uint8_t{0});
  std::copy_n(bytes_from(7, 32).begin(), 32, pinned);
  ASSERT_EQ(add(from_host(a, pinned, 32)), cu_success);
  ASSERT_EQ(add(to_host(pinned + 100, a + 1, 31), {node}), cu_success);
  CuCopy3d unified = line(b, pinned_at, 32);
  unified.source.type = cu_memory_unified;
  ASSERT_EQ(add(unified), cu_success);
  ASSERT_EQ(add(from_host(b + 64, pinned + pinned_bytes - 32, 32)), cu_success);
  run();
  EXPECT_EQ(read<std::uint8_t>(a, 32), bytes_from(7, 32));
  EXPECT_EQ(Bytes(pinned + 100, pinned + 131), bytes_from(8, 31));
  EXPECT_EQ(pinned[131], 0);
  EXPECT_EQ(read<std::uint8_t>(b, 32), bytes_from(7, 32));
  Bytes ordinary(64);
  EXPECT_EQ(add(from_host(a, ordinary.data(), 32)), cu_error_not_supported);
  EXPECT_EQ(add(to_host(ordinary.data(), a, 32)), cu_error_not_supported);
  EXPECT_EQ(add(from_host(a, pinned + pinned_bytes - 31, 32)), cu_error_not_supported)
      << "the last byte is not pinned";
  EXPECT_EQ(add(line(a, pinned_at, 32)), cu_error_not_supported) << "memory of a card, it says";
  EXPECT_THAT(told, testing::AllOf(testing::SizeIs(4), Each(HasSubstr("only pinned memory"))));
  own.cuMemHostGetDevicePointer_v2 = [](DevicePointer* device, void*, unsigned) {
    *device = pinned_at;
    return cu_success;
  };
  EXPECT_EQ(add(from_host(a, pinned, 32)), cu_error_not_supported) << "in pieces";
  EXPECT_EQ(add(from_host(a, ordinary.data(), 0)), cu_success) << "nothing is copied";
  EXPECT_EQ(api.cuMemFreeHost(pinned), cu_success);
}

TEST_F(CallNodes, what_does_not_touch_the_share_is_the_drivers) {
  Bytes host(64);
  EXPECT_EQ(add(to_host(host.data(), 4096, 32)), std::nullopt);
  EXPECT_EQ(add(CuFillNode{4096, 0, 1, 1, 16, 1}), std::nullopt);
  EXPECT_EQ(ask("cuGraphAddMemcpyNode", &node, graph, nullptr, std::size_t{0}, nullptr, nullptr),
            std::nullopt);
  EXPECT_EQ(ask("cuGraphAddMemsetNode", &node, graph, nullptr, std::size_t{0}, nullptr, nullptr),
            std::nullopt);
  const CuCopy3d inside = line(a, b, 16);
  EXPECT_EQ(ask("cuGraphAddMemcpyNode", nullptr, graph, nullptr, std::size_t{0}, &inside, nullptr),
            cu_error_invalid_value);
  CuCopy3d array = line(a, b, 16);
  array.source.type = cu_memory_array;
  EXPECT_EQ(add(array), cu_error_not_supported);
}

TEST_F(CallNodes, bytes_that_are_nobodys_are_not_touched) {
  EXPECT_EQ(add(line(a, b, 4096)), cu_success);
  EXPECT_EQ(add(line(a + 1, b, 4096)), cu_error_invalid_value);
  EXPECT_EQ(add(line(a, b + 1, 4096)), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{a, 0, 1, 1, 4096, 1}), cu_success);
  EXPECT_EQ(add(CuFillNode{a, 0, 1, 4, 1025, 1}), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{a, 0, 1, 3, 4, 1}), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{a + 1, 0, 1, 2, 4, 1}), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{a, 15, 1, 2, 4, 1}), cu_success) << "one row has no pitch";
  EXPECT_EQ(add(CuFillNode{a, 15, 1, 2, 4, 2}), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{a, 0, 1, 2, (std::size_t{1} << 63U) + 1, 1}), cu_error_invalid_value);
  const auto secret = reinterpret_cast<DevicePointer>(&kept[16]);
  EXPECT_EQ(add(line(secret, secret, 16)), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{secret, 0, 1, 1, 16, 1}), cu_error_invalid_value);
}

TEST_F(CallNodes, nodes_are_changed_and_told_of_as_the_program_knows_them) {
  write(a, bytes_from(1, 64));
  write(b, Bytes(4096, 0));
  ASSERT_EQ(add(line(b, a, 16)), cu_success);
  const CuGraphNode copy = node;
  ASSERT_EQ(add(CuFillNode{b + 100, 0, 1, 1, 4, 1}), cu_success);
  const CuGraphNode fill = node;
  int type = -1;
  EXPECT_EQ(ask("cuGraphNodeGetType", copy, &type), cu_success);
  EXPECT_EQ(type, 1);
  EXPECT_EQ(ask("cuGraphNodeGetType", fill, &type), cu_success);
  EXPECT_EQ(type, 2);
  EXPECT_EQ(ask("cuGraphNodeGetType", fill, nullptr), std::nullopt);
  const CuGraphExec executable = made();
  const CuCopy3d other = line(b + 32, a + 16, 16);
  const CuFillNode longer{b + 100, 0, 2, 1, 6, 1};
  static std::vector<CuContext> contexts;
  contexts.clear();
  static auto* const real = api.cuGraphExecKernelNodeSetParams_v2;
  own.cuGraphExecKernelNodeSetParams_v2 = [](CuGraphExec launched, CuGraphNode changed,
                                             const CuKernelNode* params) {
    contexts.push_back(params->context);
    return real(launched, changed, params);
  };
  const auto context = reinterpret_cast<CuContext>(std::uintptr_t{64});  // NOLINT: a handle
  ASSERT_EQ(ask("cuGraphExecMemcpyNodeSetParams", executable, copy, &other, context), cu_success);
  ASSERT_EQ(ask("cuGraphExecMemsetNodeSetParams", executable, fill, &longer, context), cu_success);
  EXPECT_THAT(contexts, ElementsAre(context, context));
  ASSERT_EQ(api.cuGraphLaunch(executable, nullptr), cu_success);
  EXPECT_EQ(api.cuGraphExecDestroy(executable), cu_success);
  EXPECT_EQ(read<std::uint8_t>(b, 16), Bytes(16, 0));
  EXPECT_EQ(read<std::uint8_t>(b + 32, 16), bytes_from(17, 16));
  EXPECT_THAT(read<std::uint8_t>(b + 100, 7), ElementsAre(2, 2, 2, 2, 2, 2, 0));
  CuCopy3d seen{};
  CuFillNode seen_fill{};
  EXPECT_EQ(ask("cuGraphMemcpyNodeGetParams", copy, &seen), cu_success);
  EXPECT_EQ(seen.target.device, b) << "of the graph, not of what was made of it";
  ASSERT_EQ(ask("cuGraphMemcpyNodeSetParams", copy, &other), cu_success);
  ASSERT_EQ(ask("cuGraphMemsetNodeSetParams", fill, &longer), cu_success);
  EXPECT_EQ(ask("cuGraphMemcpyNodeGetParams", copy, &seen), cu_success);
  EXPECT_EQ(seen.target.device, b + 32);
  EXPECT_EQ(ask("cuGraphMemsetNodeGetParams", fill, &seen_fill), cu_success);
  EXPECT_EQ(seen_fill.width, 6U);
  write(b, Bytes(4096, 0));
  run();
  EXPECT_EQ(read<std::uint8_t>(b + 32, 16), bytes_from(17, 16));
  EXPECT_THAT(read<std::uint8_t>(b + 100, 7), ElementsAre(2, 2, 2, 2, 2, 2, 0));
  EXPECT_EQ(ask("cuGraphMemcpyNodeGetParams", copy, nullptr), cu_error_invalid_value);
  EXPECT_EQ(ask("cuGraphMemcpyNodeGetParams", fill, &seen), std::nullopt) << "the driver refuses";
  EXPECT_EQ(ask("cuGraphMemsetNodeGetParams", copy, &seen_fill), std::nullopt);
}

// The first row is inside of the share, the last is not.
TEST_F(CallNodes, fills_of_rows_that_leave_their_memory_are_refused) {
  const std::size_t pitch = std::size_t{1} << 30U;
  EXPECT_EQ(add(CuFillNode{a, pitch, 1, 1, 4, 2000}), cu_error_invalid_value);
  EXPECT_EQ(add(CuFillNode{a, 64, 1, 1, 4, 2}), cu_success);
}

TEST_F(CallNodes, nodes_do_not_change_between_the_share_and_other_memory) {
  Bytes host(64);
  ASSERT_EQ(add(line(b, a, 16)), cu_success);
  const CuCopy3d inside = line(b, a, 16);
  const CuCopy3d outside = to_host(host.data(), 4096, 16);
  const CuFillNode fill{a, 0, 1, 1, 4, 1};
  const CuFillNode fill_outside{4096, 0, 1, 1, 4, 1};
  const auto others = reinterpret_cast<CuGraphNode>(&host);
  EXPECT_EQ(ask("cuGraphMemcpyNodeSetParams", node, &outside), cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphMemcpyNodeSetParams", others, &inside), cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphMemsetNodeSetParams", node, &fill), cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphExecMemcpyNodeSetParams", nullptr, node, &outside, nullptr),
            cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphExecMemcpyNodeSetParams", nullptr, others, &inside, nullptr),
            cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphExecMemsetNodeSetParams", nullptr, node, &fill, nullptr),
            cu_error_not_supported);
  EXPECT_THAT(told, ElementsAre(HasSubstr("for memory of the share"), HasSubstr("outside"),
                                HasSubstr("outside"), HasSubstr("for memory of the share"),
                                HasSubstr("outside"), HasSubstr("outside")));
  EXPECT_EQ(ask("cuGraphMemcpyNodeSetParams", others, &outside), std::nullopt);
  EXPECT_EQ(ask("cuGraphMemsetNodeSetParams", others, &fill_outside), std::nullopt);
  EXPECT_EQ(ask("cuGraphExecMemcpyNodeSetParams", nullptr, others, &outside, nullptr),
            std::nullopt);
  EXPECT_EQ(ask("cuGraphMemcpyNodeSetParams", node, nullptr), std::nullopt);
  EXPECT_EQ(ask("cuGraphExecMemcpyNodeSetParams", nullptr, node, nullptr, nullptr), std::nullopt);
}

TEST_F(CallNodes, handles_of_nodes_that_are_gone_are_nobodys) {
  int type = -1;
  ASSERT_EQ(add(line(b, a, 16)), cu_success);
  const CuGraphNode first = node;
  ASSERT_EQ(add(line(b, a, 16)), cu_success);
  EXPECT_EQ(ask("cuGraphDestroyNode", first), std::nullopt);
  EXPECT_EQ(ask("cuGraphNodeGetType", first, &type), std::nullopt);
  EXPECT_EQ(ask("cuGraphDestroy", &type), std::nullopt) << "another graph";
  EXPECT_EQ(ask("cuGraphNodeGetType", node, &type), cu_success);
  EXPECT_EQ(ask("cuGraphDestroy", graph), std::nullopt);
  EXPECT_EQ(ask("cuGraphNodeGetType", node, &type), std::nullopt);
}

TEST_F(CallNodes, errors_of_the_driver_are_handed_on) {
  const CuCopy3d copy = line(b, a, 16);
  own.cuGraphAddKernelNode_v2 = [](CuGraphNode*, CuGraph, const CuGraphNode*, std::size_t,
                                   const CuKernelNode*) { return CuResult{2}; };
  EXPECT_EQ(add(copy), CuResult{2});
  int type = -1;
  EXPECT_EQ(ask("cuGraphNodeGetType", node, &type), std::nullopt);
  own.cuGraphAddKernelNode_v2 = nullptr;
  EXPECT_EQ(add(copy), cu_error_not_supported);
  EXPECT_THAT(told, ElementsAre(HasSubstr("CUDA 12.0")));
  own.cuGraphAddKernelNode_v2 = api.cuGraphAddKernelNode_v2;
  ASSERT_EQ(add(copy), cu_success);
  own.cuGraphKernelNodeSetParams_v2 = [](CuGraphNode, const CuKernelNode*) { return CuResult{3}; };
  own.cuGraphExecKernelNodeSetParams_v2 = [](CuGraphExec, CuGraphNode, const CuKernelNode*) {
    return CuResult{4};
  };
  const CuCopy3d other = line(b + 16, a, 16);
  EXPECT_EQ(ask("cuGraphMemcpyNodeSetParams", node, &other), CuResult{3});
  EXPECT_EQ(ask("cuGraphExecMemcpyNodeSetParams", nullptr, node, &other, nullptr), CuResult{4});
  CuCopy3d seen{};
  EXPECT_EQ(ask("cuGraphMemcpyNodeGetParams", node, &seen), cu_success);
  EXPECT_EQ(seen.target.device, b) << "it is what it was";
}

// CUgraphNodeParams
struct AnyNode {
  int type = 0;
  int reserved[3] = {};
  char params[240] = {};
  template <class T>
  AnyNode& put(std::size_t at, T value) {
    std::memcpy(params + at, &value, sizeof value);
    return *this;
  }
};

TEST_F(CallNodes, nodes_of_any_type_are_judged_as_those_of_their_own) {
  write(a, bytes_from(1, 64));
  write(b, Bytes(4096, 0));
  static std::vector<CuContext> contexts;
  contexts.clear();
  static auto* const real = api.cuGraphAddKernelNode_v2;
  own.cuGraphAddKernelNode_v2 = [](CuGraphNode* made, CuGraph to, const CuGraphNode* after,
                                   std::size_t count, const CuKernelNode* params) {
    contexts.push_back(params->context);
    return real(made, to, after, count, params);
  };
  const auto context = reinterpret_cast<CuContext>(std::uintptr_t{64});  // NOLINT: a handle
  const AnyNode copy = AnyNode{1}.put(8, context).put(16, line(b, a, 16));
  const AnyNode fill = AnyNode{2}.put(0, CuFillNode{b + 16, 0, 5, 1, 4, 1}).put(40, context);
  char edges[16] = {};
  ASSERT_EQ(ask("cuGraphAddNode", &node, graph, nullptr, std::size_t{0}, &copy), cu_success);
  const CuGraphNode first = node;
  ASSERT_EQ(ask("cuGraphAddNode_v2", &node, graph, &first, &edges[0], std::size_t{1}, &fill),
            cu_success);
  EXPECT_THAT(contexts, ElementsAre(context, context));
  run();
  EXPECT_EQ(read<std::uint8_t>(b, 16), bytes_from(1, 16));
  EXPECT_THAT(read<std::uint8_t>(b + 16, 5), ElementsAre(5, 5, 5, 5, 0));
  edges[8] = 1;  // of the second one, which there is not
  EXPECT_EQ(ask("cuGraphAddNode_v2", &node, graph, &first, &edges[0], std::size_t{1}, &copy),
            cu_success);
  edges[7] = 1;
  for (const AnyNode* one : {&copy, &fill}) {
    EXPECT_EQ(ask("cuGraphAddNode_v2", &node, graph, &first, &edges[0], std::size_t{1}, one),
              cu_error_not_supported);
  }
  EXPECT_THAT(told, testing::AllOf(testing::SizeIs(2), Each(HasSubstr("more than an order"))));
  told.clear();
  const auto ask_for = [&](const AnyNode& any) {
    return ask("cuGraphAddNode", &node, graph, nullptr, std::size_t{0}, &any);
  };
  const CuModule module = loaded(test::module_head + test::kernel_of("k", "mov.u32 %r1, 1;"));
  const CuModule locals = loaded(test::module_head + test::kernel_of("k", test::with_locals));
  const CuFunction k = function_of(module, "k");
  const CuFunction with_locals = function_of(locals, "k");
  EXPECT_EQ(ask_for(AnyNode{0}.put(0, k)), std::nullopt);
  EXPECT_EQ(ask_for(AnyNode{0}.put(56, k)), std::nullopt);
  EXPECT_EQ(ask_for(AnyNode{0}.put(56, &contexts)), cu_error_not_supported);
  EXPECT_EQ(ask_for(AnyNode{0}.put(0, with_locals)), cu_error_not_supported);
  for (const int type : {3, 4, 5, 6, 7}) EXPECT_EQ(ask_for(AnyNode{type}), std::nullopt) << type;
  EXPECT_THAT(told, ElementsAre(HasSubstr("not loaded through"), HasSubstr("by hand")));
  told.clear();
  know_what_is_pinned();
  host_memory = true;
  DevicePointer given = pinned_at;
  std::size_t bytes = sizeof given;
  void* each[] = {&given};
  void* extra[] = {reinterpret_cast<void*>(1), &given,            // NOLINT: BUFFER_POINTER
                   reinterpret_cast<void*>(2), &bytes, nullptr};  // NOLINT: BUFFER_SIZE
  EXPECT_EQ(ask_for(AnyNode{0}.put(0, k).put(40, &each[0])), cu_error_not_supported);
  EXPECT_EQ(ask_for(AnyNode{0}.put(0, k).put(48, &extra[0])), cu_error_not_supported);
  EXPECT_THAT(told, testing::AllOf(testing::SizeIs(2), Each(HasSubstr("host memory"))));
  given = a;
  EXPECT_EQ(ask_for(AnyNode{0}.put(0, k).put(40, &each[0])), std::nullopt);
  told.clear();
  for (const int type : {8, 9, 10, 11, 12, 13, 14, -1}) {
    EXPECT_EQ(ask_for(AnyNode{type}), cu_error_not_supported) << type;
    EXPECT_THAT(last_told(), HasSubstr(fmt::format("nodes of type {} are not known", type)));
  }
  EXPECT_EQ(ask("cuGraphAddNode", &node, graph, nullptr, std::size_t{0}, nullptr), std::nullopt);
  CuStream stream = nullptr;
  CuGraph captured = nullptr;
  ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  DevicePointer to = a;
  void* arguments[] = {&to};
  ASSERT_EQ(api.cuLaunchKernel(with_locals, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
            cu_success);
  ASSERT_EQ(api.cuStreamEndCapture(stream, &captured), cu_success);
  EXPECT_EQ(ask_for(AnyNode{4}), cu_error_not_supported) << "its kernels may have no order";
  EXPECT_EQ(ask("cuGraphDestroyNode", first), cu_error_not_supported);
  EXPECT_EQ(api.cuGraphDestroy(captured), cu_success);
  EXPECT_EQ(api.cuStreamDestroy_v2(stream), cu_success);
}

}  // namespace
}  // namespace demarc::cuda
