// Graphs of a coloured program: kernels with local variables, of which the stand-in counts runs
// that nothing kept apart.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string two_kernels =
    test::module_head + test::kernel_of("k", test::with_locals) +
    test::kernel_of("small", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;");
const std::string plain_kernel =
    test::module_head +
    test::kernel_of("plain", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;");

class CallGraphs : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  CallGraphs() {
    for (CuStream& stream : streams) {
      EXPECT_EQ(api.cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
    }
    watch("k");
  }
  ~CallGraphs() override {
    serve(false);
    for (const CuGraphExec one : executables) api.cuGraphExecDestroy(one);
    for (const CuStream stream : streams) api.cuStreamDestroy_v2(stream);
  }
  static void watch(const char* kernel) {
    test::fake_symbol<void(const char*)>("fake_watch_kernel")(kernel);
  }
  static std::uint64_t runs() { return test::fake_symbol<std::uint64_t()>("fake_watched_runs")(); }
  static std::uint64_t unordered() {
    return test::fake_symbol<std::uint64_t()>("fake_unordered_runs")();
  }
  static std::int64_t alive() { return test::fake_symbol<std::int64_t()>("fake_live_objects")(); }

  CuResult launch(CuFunction function, CuStream stream, unsigned blocks = 1) {
    DevicePointer to = out;
    void* arguments[] = {&to};
    return api.cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr);
  }
  void begin(CuStream stream) {
    ASSERT_EQ(api.cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  }
  CuGraphExec end(CuStream stream) {
    CuGraph graph = nullptr;
    CuGraphExec made = nullptr;
    EXPECT_EQ(api.cuStreamEndCapture(stream, &graph), cu_success);
    EXPECT_EQ(api.cuGraphInstantiateWithFlags(&made, graph, 0), cu_success);
    EXPECT_EQ(api.cuGraphDestroy(graph), cu_success);
    executables.push_back(made);
    return made;
  }
  CuGraphExec captured(CuFunction function, CuStream stream, unsigned blocks = 1) {
    begin(stream);
    EXPECT_EQ(launch(function, stream, blocks), cu_success);
    return end(stream);
  }
  // `to` goes on behind what `from` has come to.
  void fork(CuStream from, CuStream to) {
    CuEvent event = nullptr;
    EXPECT_EQ(api.cuEventCreate(&event, cu_event_disable_timing), cu_success);
    EXPECT_EQ(api.cuEventRecord(event, from), cu_success);
    EXPECT_EQ(api.cuStreamWaitEvent(to, event, 0), cu_success);
    EXPECT_EQ(api.cuEventDestroy_v2(event), cu_success);
  }
  bool wrote(unsigned blocks) {
    const auto seen = read<std::uint32_t>(out, std::size_t{blocks} * 64);
    for (std::uint32_t i = 0; i < seen.size(); ++i) {
      if (seen[i] != i) return false;
    }
    write(out, std::vector<std::uint32_t>(std::size_t{blocks} * 64, 0xffff));
    return true;
  }

  std::array<CuStream, 3> streams{};
  std::vector<CuGraphExec> executables;
  DevicePointer out = allocated(4 * 64 * 16);
};

TEST_F(CallGraphs, kernels_with_local_variables_are_replayed) {
  const CuModule module = loaded(two_kernels);
  const CuFunction k = function_of(module, "k");
  write(out, std::vector<std::uint32_t>(256, 0xffff));
  const CuGraphExec graph = captured(k, streams[0], 4);
  EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 0xffffU);
  for (int time = 0; time < 2; ++time) {
    ASSERT_EQ(api.cuGraphLaunch(graph, streams[1]), cu_success);
    EXPECT_TRUE(wrote(4));
  }
  ASSERT_EQ(launch(k, streams[2], 8), cu_success);
  EXPECT_TRUE(wrote(8));
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[1]), cu_success);
  EXPECT_TRUE(wrote(4)) << "in the block that was made since";
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(CallGraphs, runs_of_a_module_follow_each_other_inside_one_graph) {
  const CuModule module = loaded(two_kernels);
  const CuModule other = loaded(plain_kernel);
  const auto fill_two_streams = [&](CuFunction function) {
    begin(streams[0]);
    fork(streams[0], streams[1]);
    for (int time = 0; time < 2; ++time) {
      EXPECT_EQ(launch(function, streams[0]), cu_success);
      EXPECT_EQ(launch(function, streams[1]), cu_success);
    }
    fork(streams[1], streams[0]);
    const CuGraphExec graph = end(streams[0]);
    EXPECT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
    EXPECT_EQ(runs(), 4U);
  };
  fill_two_streams(function_of(module, "k"));
  EXPECT_EQ(unordered(), 0U);
  watch("small");
  fill_two_streams(function_of(module, "small"));
  EXPECT_EQ(unordered(), 0U) << "it has the module's block as well";
  watch("plain");
  fill_two_streams(function_of(other, "plain"));
  EXPECT_EQ(unordered(), 4U) << "it has no local variables";
}

TEST_F(CallGraphs, graphs_and_other_launches_follow_each_other) {
  const CuModule module = loaded(two_kernels);
  const CuFunction k = function_of(module, "k");
  ASSERT_EQ(launch(k, streams[2]), cu_success);
  const CuGraphExec graph = captured(k, streams[0]);
  EXPECT_EQ(runs(), 1U);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success) << "behind what was there before";
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[1]), cu_success);
  ASSERT_EQ(launch(k, streams[2]), cu_success);
  ASSERT_EQ(launch(k, streams[0]), cu_success);
  const CuGraphExec second = captured(k, streams[1]);
  ASSERT_EQ(api.cuGraphLaunch(second, streams[2]), cu_success);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[1]), cu_success);
  EXPECT_EQ(runs(), 7U);
  EXPECT_EQ(unordered(), 0U);
  watch("plain");
  const CuFunction plain = function_of(loaded(plain_kernel), "plain");
  ASSERT_EQ(launch(plain, streams[0]), cu_success);
  ASSERT_EQ(launch(plain, streams[1]), cu_success);
  EXPECT_EQ(unordered(), 1U) << "others do not wait";
}

TEST_F(CallGraphs, modules_that_no_graph_has_do_not_wait_for_graphs) {
  const CuModule module = loaded(two_kernels);
  const CuModule other = loaded(two_kernels);
  const CuGraphExec graph = captured(function_of(module, "k"), streams[0]);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
  const CuFunction k = function_of(other, "k");
  static int waits = 0;
  waits = 0;
  own.cuStreamWaitEvent = [](CuStream, CuEvent, unsigned) {
    ++waits;
    return cu_success;
  };
  ASSERT_EQ(launch(k, streams[1]), cu_success);
  EXPECT_EQ(waits, 0);
  own.cuStreamWaitEvent = api.cuStreamWaitEvent;
  const CuGraphExec second = captured(k, streams[2]);
  watch("k");
  ASSERT_EQ(launch(k, streams[1]), cu_success);
  ASSERT_EQ(api.cuGraphLaunch(second, streams[2]), cu_success);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
  EXPECT_EQ(unordered(), 0U);
}

TEST_F(CallGraphs, graphs_that_are_launched_into_a_capture_have_their_place_in_it) {
  const CuModule module = loaded(two_kernels);
  const CuFunction k = function_of(module, "k");
  const CuGraphExec inner = captured(k, streams[0]);
  begin(streams[0]);
  fork(streams[0], streams[1]);
  ASSERT_EQ(launch(k, streams[0]), cu_success);
  ASSERT_EQ(api.cuGraphLaunch(inner, streams[1]), cu_success);
  ASSERT_EQ(launch(k, streams[0]), cu_success);
  ASSERT_EQ(api.cuGraphLaunch(inner, streams[2]), cu_success) << "beside the capture";
  fork(streams[1], streams[0]);
  const CuGraphExec outer = end(streams[0]);
  ASSERT_EQ(api.cuGraphLaunch(outer, streams[1]), cu_success);
  EXPECT_EQ(runs(), 4U);
  EXPECT_EQ(unordered(), 0U);
}

TEST_F(CallGraphs, captures_that_run_at_the_same_time_are_kept_apart) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  begin(streams[0]);
  begin(streams[1]);
  for (const CuStream stream : {streams[0], streams[1], streams[0], streams[1], streams[2]}) {
    ASSERT_EQ(launch(k, stream), cu_success);
  }
  const CuGraphExec first = end(streams[0]);
  ASSERT_EQ(launch(k, streams[1]), cu_success);
  const CuGraphExec second = end(streams[1]);
  ASSERT_EQ(api.cuGraphLaunch(first, streams[0]), cu_success);
  ASSERT_EQ(api.cuGraphLaunch(second, streams[1]), cu_success);
  EXPECT_EQ(runs(), 6U);
  EXPECT_EQ(unordered(), 0U);
}

TEST_F(CallGraphs, events_of_captures_go_with_them) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  ASSERT_EQ(api.cuGraphLaunch(captured(k, streams[0]), streams[0]), cu_success);
  const std::int64_t before = alive();
  for (int time = 0; time < 3; ++time) {
    begin(streams[0]);
    EXPECT_EQ(launch(k, streams[0]), cu_success);
    CuGraph graph = nullptr;
    EXPECT_EQ(api.cuStreamEndCapture(streams[0], &graph), cu_success);
    EXPECT_EQ(api.cuGraphDestroy(graph), cu_success);
  }
  EXPECT_EQ(alive(), before);
  begin(streams[0]);
  fork(streams[0], streams[1]);
  EXPECT_EQ(launch(k, streams[0]), cu_success);
  own.cuStreamEndCapture = [](CuStream, CuGraph*) { return CuResult{904}; };
  CuGraph graph = nullptr;
  EXPECT_EQ(api.cuStreamEndCapture(streams[0], &graph), CuResult{904});
  own.cuStreamEndCapture = api.cuStreamEndCapture;
  EXPECT_EQ(launch(k, streams[1]), cu_success) << "the capture goes on";
  fork(streams[1], streams[0]);
  watch("k");
  EXPECT_EQ(api.cuGraphLaunch(end(streams[0]), streams[0]), cu_success);
  EXPECT_EQ(runs(), 2U);
  EXPECT_EQ(unordered(), 0U);
}

TEST_F(CallGraphs, nothing_is_added_to_a_capture_that_is_broken) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  const CuGraphExec graph = captured(k, streams[0]);
  begin(streams[0]);
  EXPECT_EQ(launch(k, streams[0]), cu_success);
  EXPECT_NE(api.cuStreamSynchronize(streams[0]), cu_success);
  own.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CuStream, void**, void**) { return cu_success; };
  EXPECT_EQ(launch(k, streams[0]), cu_error_capture_invalidated);
  EXPECT_EQ(ask("cuGraphLaunch", graph, streams[0]), cu_error_capture_invalidated);
  own.cuLaunchKernel = api.cuLaunchKernel;
  CuGraph none = nullptr;
  EXPECT_EQ(api.cuStreamEndCapture(streams[0], &none), cu_error_capture_invalidated);
  ASSERT_EQ(api.cuGraphLaunch(captured(k, streams[0]), streams[1]), cu_success);
  EXPECT_EQ(unordered(), 0U);
}

// What the driver forbids while a stream is captured is not asked of it.
TEST_F(CallGraphs, blocks_grow_in_captures) {
  const CuModule module = loaded(two_kernels);
  const CuFunction k = function_of(module, "k");
  ASSERT_EQ(launch(k, streams[0], 1), cu_success);
  begin(streams[0]);
  static int waits = 0;
  waits = 0;
  own.cuEventSynchronize = [](CuEvent) {
    ++waits;
    return CuResult{700};
  };
  EXPECT_EQ(launch(k, streams[0], 4), CuResult{700}) << "kernels may still use the old one";
  EXPECT_EQ(waits, 1);
  own.cuEventSynchronize = api.cuEventSynchronize;
  EXPECT_EQ(launch(k, streams[0], 4), cu_success);
  const CuGraphExec graph = end(streams[0]);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[1]), cu_success);
  EXPECT_TRUE(wrote(4));
  own.cuEventSynchronize = [](CuEvent) { return CuResult{700}; };
  EXPECT_EQ(launch(k, streams[0], 8), CuResult{700}) << "the graph may still run";
  own.cuEventSynchronize = api.cuEventSynchronize;
  EXPECT_EQ(launch(k, streams[0], 8), cu_success);
  EXPECT_TRUE(wrote(8));
}

TEST_F(CallGraphs, what_demarc_copies_for_itself_is_no_node) {
  const CuStream of_the_thread = reinterpret_cast<CuStream>(std::uintptr_t{2});  // NOLINT: a handle
  begin(of_the_thread);
  const std::int64_t before = alive();
  const CuModule module =
      loaded(two_kernels + ".visible .global .align 4 .u32 table[2] = {7, 9};\n" +
             test::kernel_of("reads",
                             "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [table+4];\n"
                             "st.global.u32 [%rd1], %r1;"));
  EXPECT_EQ(alive(), before + 1) << "the module";
  EXPECT_EQ(launch(function_of(module, "k"), of_the_thread, 2), cu_success);
  EXPECT_EQ(launch(function_of(module, "reads"), of_the_thread), cu_success);
  own.cuStreamCreateWithPriority = [](CuStream*, unsigned, int) { return CuResult{2}; };
  EXPECT_EQ(launch(function_of(module, "k"), of_the_thread, 8), CuResult{2});
  CuModule none = nullptr;
  EXPECT_EQ(api.cuModuleLoadData(&none, two_kernels.c_str()), CuResult{2});
  own.cuStreamCreateWithPriority = api.cuStreamCreateWithPriority;
  const CuGraphExec graph = end(of_the_thread);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 9U);
}

TEST_F(CallGraphs, what_would_take_nodes_their_order_is_refused_once_they_have_one) {
  const auto ask_all = [&] {
    std::vector<std::optional<CuResult>> answers;
    for (const char* name :
         {"cuGraphAddChildGraphNode", "cuGraphExecChildGraphNodeSetParams", "cuGraphDestroyNode",
          "cuGraphRemoveDependencies", "cuGraphRemoveDependencies_v2"}) {
      answers.push_back(ask(name, nullptr, nullptr, nullptr, std::size_t{0}, nullptr));
    }
    return answers;
  };
  const CuGraphExec plain = captured(function_of(loaded(plain_kernel), "plain"), streams[0]);
  EXPECT_THAT(ask_all(), testing::Each(std::nullopt));
  EXPECT_EQ(ask("cuGraphLaunch", plain, streams[0]), std::nullopt);
  EXPECT_EQ(ask("cuStreamEndCapture", streams[0], nullptr), std::nullopt);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(counters.refused, 0U);
  captured(function_of(loaded(two_kernels), "k"), streams[0]);
  EXPECT_THAT(ask_all(), testing::Each(cu_error_not_supported));
  EXPECT_EQ(counters.refused, 5U);
  ASSERT_EQ(told.size(), 5U);
  EXPECT_THAT(told[2],
              HasSubstr("cuGraphDestroyNode was refused, because kernels with local variables"));
}

TEST_F(CallGraphs, captures_into_a_graph_that_there_is_take_no_kernels_with_local_variables) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  const CuFunction plain = function_of(loaded(plain_kernel), "plain");
  const CuGraphExec graph = captured(k, streams[0]);
  EXPECT_EQ(
      ask("cuStreamBeginCaptureToGraph", streams[0], nullptr, nullptr, nullptr, std::size_t{0}, 0),
      std::nullopt);
  begin(streams[0]);
  EXPECT_EQ(launch(k, streams[0]), cu_error_not_supported);
  EXPECT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_error_not_supported);
  EXPECT_EQ(launch(plain, streams[0]), cu_success);
  EXPECT_EQ(launch(k, streams[1]), cu_success) << "in no capture";
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[0], HasSubstr("cuStreamBeginCaptureToGraph"));
  end(streams[0]);
}

TEST_F(CallGraphs, graphs_that_kernels_launch_are_refused) {
  constexpr unsigned long long device = 4;
  unsigned long long params[4] = {device | 1};
  EXPECT_EQ(ask("cuGraphInstantiateWithFlags", nullptr, nullptr, device | 2),
            cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphInstantiateWithFlags", nullptr, nullptr, ~device), std::nullopt);
  EXPECT_EQ(ask("cuGraphInstantiateWithParams", nullptr, nullptr, &params[0]),
            cu_error_not_supported);
  params[0] = ~device;
  EXPECT_EQ(ask("cuGraphInstantiateWithParams", nullptr, nullptr, &params[0]), std::nullopt);
  EXPECT_EQ(ask("cuGraphInstantiateWithParams", nullptr, nullptr, nullptr), std::nullopt);
  EXPECT_THAT(told, ElementsAre(HasSubstr("kernels launch"), HasSubstr("kernels launch")));
}

TEST_F(CallGraphs, a_module_stays_as_long_as_a_graph_may_have_its_kernels) {
  const CuModule first = loaded(plain_kernel);
  ASSERT_EQ(launch(function_of(first, "plain"), streams[0]), cu_success);
  EXPECT_EQ(ask("cuModuleUnload", first), std::nullopt) << "nothing was captured";
  serve(false);
  api.cuModuleUnload(first);
  serve(true);
  const CuModule module = loaded(two_kernels);
  const CuModule plain = loaded(plain_kernel);
  const CuModule added = loaded(plain_kernel);
  const CuModule launched = loaded(plain_kernel);
  const CuGraphExec graph = captured(function_of(module, "k"), streams[0], 4);
  captured(function_of(plain, "plain"), streams[0]);
  ASSERT_EQ(launch(function_of(launched, "plain"), streams[0]), cu_success);
  CuKernelNode node{};
  node.function = function_of(added, "plain");
  EXPECT_EQ(ask("cuGraphAddKernelNode_v2", nullptr, nullptr, nullptr, std::size_t{0}, &node),
            std::nullopt);
  const std::int64_t before = alive();
  for (const CuModule one : {module, plain, added}) {
    EXPECT_EQ(api.cuModuleUnload(one), cu_success);
  }
  ASSERT_EQ(alive(), before);
  const DevicePointer mine = allocated(4096);
  write(mine, std::vector<std::uint8_t>(4096, 3));
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
  EXPECT_TRUE(wrote(4));
  EXPECT_THAT(read<std::uint8_t>(mine, 4096), testing::Each(3)) << "its block is still its own";
  const std::int64_t with_it = alive();
  EXPECT_EQ(api.cuModuleUnload(launched), cu_success);
  EXPECT_EQ(alive(), with_it - 1);
}

TEST_F(CallGraphs, what_left_no_event_is_never_followed) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  const CuGraphExec graph = captured(k, streams[0]);
  ASSERT_EQ(launch(k, streams[0]), cu_success);
  own.cuEventRecord = [](CuEvent, CuStream) { return CuResult{400}; };
  EXPECT_EQ(launch(k, streams[1]), CuResult{400});
  own.cuEventRecord = api.cuEventRecord;
  const std::uint64_t before = runs();
  EXPECT_EQ(launch(k, streams[1]), CuResult{400});
  EXPECT_EQ(launch(k, streams[1], 8), CuResult{400}) << "nor does it lose its block";
  EXPECT_EQ(api.cuGraphLaunch(graph, streams[1]), CuResult{400});
  EXPECT_EQ(runs(), before);
  const CuFunction other = function_of(loaded(two_kernels), "k");
  own.cuEventCreate = [](CuEvent*, unsigned) { return CuResult{2}; };
  EXPECT_EQ(launch(other, streams[1]), CuResult{2});
  own.cuEventCreate = api.cuEventCreate;
  const std::int64_t living = alive();
  own.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CuStream, void**, void**) { return CuResult{719}; };
  EXPECT_EQ(launch(other, streams[1]), CuResult{719});
  EXPECT_EQ(alive(), living) << "an event of nothing";
  own.cuLaunchKernel = api.cuLaunchKernel;
  EXPECT_EQ(launch(other, streams[1]), cu_success);
}

// A module whose own order is lost takes that along into the order of graphs.
TEST_F(CallGraphs, what_left_no_event_is_not_forgotten_by_a_capture) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  own.cuEventRecord = [](CuEvent, CuStream) { return CuResult{400}; };
  EXPECT_EQ(launch(k, streams[1]), CuResult{400});
  own.cuEventRecord = api.cuEventRecord;
  const CuGraphExec graph = captured(k, streams[0]);
  EXPECT_EQ(api.cuGraphLaunch(graph, streams[0]), CuResult{400});
  EXPECT_EQ(runs(), 1U);
}

TEST_F(CallGraphs, a_context_takes_the_order_of_graphs_along) {
  const CuFunction k = function_of(loaded(two_kernels), "k");
  static int waits = 0;
  waits = 0;
  own.cuEventSynchronize = [](CuEvent) {
    ++waits;
    return CuResult{700};
  };
  for (const char* name : {"cuCtxDestroy", "cuCtxDestroy_v2"}) {
    EXPECT_EQ(ask(name, nullptr), std::nullopt);
  }
  const CuGraphExec graph = captured(k, streams[0]);
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
  const std::int64_t before = alive();
  for (const char* name : {"cuCtxDestroy", "cuCtxDestroy_v2"}) {
    EXPECT_EQ(ask(name, nullptr), std::nullopt);
  }
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(alive(), before - 1) << "the event";
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
}

TEST_F(CallGraphs, graphs_keep_to_the_stream_that_was_meant) {
  captured(function_of(loaded(two_kernels), "k"), streams[0]);
  static std::vector<std::pair<std::uintptr_t, std::uintptr_t>> launches;
  launches.clear();
  own.cuGraphLaunch = [](CuGraphExec graph, CuStream stream) {
    launches.emplace_back(reinterpret_cast<std::uintptr_t>(graph),
                          reinterpret_cast<std::uintptr_t>(stream));
    return CuResult{719};
  };
  const auto number = [](CuStream stream) { return reinterpret_cast<std::uintptr_t>(stream); };
  const auto graph = std::uintptr_t{64};
  EXPECT_EQ(ask("cuGraphLaunch", graph, nullptr), CuResult{719});
  EXPECT_EQ(ask("cuGraphLaunch", graph, streams[1]), CuResult{719});
  EXPECT_EQ(ask("cuGraphLaunch_ptsz", graph, nullptr), CuResult{719});
  EXPECT_THAT(launches,
              ElementsAre(std::pair(graph, std::uintptr_t{0}), std::pair(graph, number(streams[1])),
                          std::pair(graph, std::uintptr_t{2})));
  static std::uintptr_t ended = 0;
  own.cuStreamEndCapture = [](CuStream stream, CuGraph*) {
    ended = reinterpret_cast<std::uintptr_t>(stream);
    return cu_success;
  };
  EXPECT_EQ(ask("cuStreamEndCapture_ptsz", nullptr, nullptr), cu_success);
  EXPECT_EQ(ended, 2U);
}

TEST_F(CallGraphs, a_graph_that_was_launched_in_the_drivers_place_is_counted_once) {
  const CuGraphExec graph = captured(function_of(loaded(two_kernels), "k"), streams[0]);
  const auto& counted = hook->counters().graphs;
  const std::uint64_t before = counted.load();
  ASSERT_EQ(api.cuGraphLaunch(graph, streams[0]), cu_success);
  EXPECT_EQ(counted.load(), before + 1);
}

}  // namespace
}  // namespace demarc::cuda
