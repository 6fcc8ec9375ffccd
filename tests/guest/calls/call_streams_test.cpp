// In which stream Demarc carries out what a coloured program calls, for what it waits, and what it
// hands on to the driver.
#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The driver's functions write down how they were called and do nothing.
class CallStreams : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  using Streams = std::vector<std::uintptr_t>;
  static inline Streams launched;
  static inline Streams waited;
  static inline std::vector<CuCopy2d> copied;
  static constexpr std::uintptr_t stream_number = 0x1000;
  CuStream stream = reinterpret_cast<CuStream>(stream_number);  // NOLINT: a handle
  static std::uintptr_t number(CuStream of) { return reinterpret_cast<std::uintptr_t>(of); }

  CallStreams() {
    forget();
    own.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CuStream in, void**, void**) {
      launched.push_back(number(in));
      return cu_success;
    };
    own.cuMemAllocAsync = [](DevicePointer* address, std::size_t, CuStream in) {
      launched.push_back(number(in));
      *address = 4096;
      return cu_success;
    };
    own.cuMemcpy2DAsync_v2 = [](const CuCopy2d* copy, CuStream in) {
      launched.push_back(number(in));
      copied.push_back(*copy);
      return cu_success;
    };
    own.cuMemFreeAsync = [](DevicePointer, CuStream in) {
      launched.push_back(number(in));
      return cu_success;
    };
    own.cuStreamSynchronize = [](CuStream in) {
      waited.push_back(number(in));
      return cu_success;
    };
  }
  static void forget() {
    launched.clear();
    waited.clear();
    copied.clear();
  }
  // All went that way, and that was waited for.
  void expect(const std::string& name, const std::optional<CuResult>& answer, std::uintptr_t way,
              const Streams& waits) {
    EXPECT_EQ(answer, cu_success) << name;
    EXPECT_THAT(launched, testing::AllOf(testing::Not(IsEmpty()), testing::Each(way))) << name;
    EXPECT_EQ(waited, waits) << name;
    forget();
  }
  // With a stream behind its arguments, which only what ends with "Async" has.
  template <class... Arguments>
  void in_its_stream(const std::string& name, bool waits, Arguments... arguments) {
    const bool has_one = name.find("Async") != std::string::npos;
    const Streams none;
    expect(name, ask(name.c_str(), arguments..., stream), has_one ? stream_number : 0,
           waits ? Streams{0} : none);
    const std::string per_thread = name + (has_one ? "_ptsz" : "_ptds");
    const CuStream null = nullptr;
    expect(per_thread, ask(per_thread.c_str(), arguments..., null), 2, waits ? Streams{2} : none);
    if (!has_one) return;
    expect(per_thread, ask(per_thread.c_str(), arguments..., stream), stream_number, none);
  }
};

TEST_F(CallStreams, copies_keep_to_the_stream_that_was_meant) {
  const DevicePointer a = allocated(4096);
  const DevicePointer b = a + 1024;
  std::vector<char> host(4096);
  constexpr std::size_t bytes = 64;
  const auto at_host = reinterpret_cast<DevicePointer>(host.data());
  in_its_stream("cuMemcpy", true, a, at_host, bytes);
  in_its_stream("cuMemcpy", true, at_host, a, bytes);
  in_its_stream("cuMemcpy", false, a, b, bytes);
  in_its_stream("cuMemcpyAsync", false, a, at_host, bytes);
  in_its_stream("cuMemcpyPeer", false, a, nullptr, b, nullptr, bytes);
  in_its_stream("cuMemcpyPeerAsync", false, a, nullptr, b, nullptr, bytes);
  in_its_stream("cuMemcpyHtoD_v2", true, a, host.data(), bytes);
  in_its_stream("cuMemcpyHtoDAsync_v2", false, a, host.data(), bytes);
  in_its_stream("cuMemcpyDtoH_v2", true, host.data(), a, bytes);
  in_its_stream("cuMemcpyDtoHAsync_v2", false, host.data(), a, bytes);
  in_its_stream("cuMemcpyDtoD_v2", false, a, b, bytes);
  in_its_stream("cuMemcpyDtoDAsync_v2", false, a, b, bytes);
  CuCopy2d flat{};
  flat.source_type = cu_memory_host;
  flat.source_host = host.data();
  flat.target_type = cu_memory_device;
  flat.target_device = a;
  flat.source_pitch = flat.target_pitch = flat.width_bytes = bytes;
  flat.height = 2;
  in_its_stream("cuMemcpy2D_v2", true, &flat);
  in_its_stream("cuMemcpy2DUnaligned_v2", true, &flat);
  in_its_stream("cuMemcpy2DAsync_v2", false, &flat);
  CuCopy3d box{};
  box.source.type = cu_memory_host;
  box.source.host = host.data();
  box.target.type = cu_memory_unified;
  box.target.device = a;
  box.source.pitch = box.target.pitch = box.width_bytes = bytes;
  box.source.height = box.target.height = box.height = box.depth = 2;
  in_its_stream("cuMemcpy3D_v2", true, &box);
  in_its_stream("cuMemcpy3DAsync_v2", false, &box);
}

TEST_F(CallStreams, fills_keep_to_the_stream_that_was_meant) {
  const DevicePointer a = allocated(4096);
  constexpr std::size_t count = 16;
  constexpr std::size_t pitch = 128;
  constexpr std::size_t rows = 3;
  in_its_stream("cuMemsetD8_v2", false, a, std::uint8_t{1}, count);
  in_its_stream("cuMemsetD16_v2", false, a, std::uint16_t{1}, count);
  in_its_stream("cuMemsetD32_v2", false, a, 1U, count);
  in_its_stream("cuMemsetD8Async", false, a, std::uint8_t{1}, count);
  in_its_stream("cuMemsetD16Async", false, a, std::uint16_t{1}, count);
  in_its_stream("cuMemsetD32Async", false, a, 1U, count);
  in_its_stream("cuMemsetD2D8_v2", false, a, pitch, std::uint8_t{1}, count, rows);
  in_its_stream("cuMemsetD2D16_v2", false, a, pitch, std::uint16_t{1}, count, rows);
  in_its_stream("cuMemsetD2D32_v2", false, a, pitch, 1U, count, rows);
  in_its_stream("cuMemsetD2D8Async", false, a, pitch, std::uint8_t{1}, count, rows);
  in_its_stream("cuMemsetD2D16Async", false, a, pitch, std::uint16_t{1}, count, rows);
  in_its_stream("cuMemsetD2D32Async", false, a, pitch, 1U, count, rows);
}

TEST_F(CallStreams, the_driver_is_told_what_memory_the_other_side_is) {
  const DevicePointer a = allocated(4096);
  std::vector<char> host(64);
  const auto at_host = reinterpret_cast<DevicePointer>(host.data());
  void* pinned = nullptr;
  ASSERT_EQ(api.cuMemHostAlloc(&pinned, 64, 0), cu_success);
  const auto at_pinned = reinterpret_cast<DevicePointer>(pinned);
  constexpr std::size_t bytes = 64;
  const auto other_sides = [&](const char* name, auto... arguments) {
    forget();
    EXPECT_EQ(ask(name, arguments...), cu_success) << name;
    EXPECT_EQ(copied.size(), 1U) << name;
    return copied.empty() ? CuCopy2d{} : copied[0];
  };
  EXPECT_EQ(other_sides("cuMemcpyHtoD_v2", a, at_host, bytes).source_type, cu_memory_host);
  EXPECT_EQ(other_sides("cuMemcpyDtoH_v2", at_host, a, bytes).target_type, cu_memory_host);
  EXPECT_EQ(other_sides("cuMemcpyDtoD_v2", a, at_host, bytes).source_type, cu_memory_device);
  EXPECT_EQ(other_sides("cuMemcpyDtoD_v2", at_host, a, bytes).target_type, cu_memory_device);
  EXPECT_EQ(other_sides("cuMemcpy", a, at_host, bytes).source_type, cu_memory_host)
      << "of which the driver knows nothing";
  EXPECT_EQ(other_sides("cuMemcpy", a, at_pinned, bytes).source_type, cu_memory_unified);
  EXPECT_EQ(other_sides("cuMemcpy", at_pinned, a, bytes).target_type, cu_memory_unified);
  const CuCopy2d whole = other_sides("cuMemcpyHtoD_v2", a, at_host, bytes);
  EXPECT_EQ(whole.source_host, host.data());
  EXPECT_EQ(whole.target_type, cu_memory_device) << "memory between";
  EXPECT_EQ(whole.width_bytes, bytes);
  EXPECT_EQ(whole.height, 1U);
  EXPECT_EQ(api.cuMemFreeHost(pinned), cu_success);
}

TEST_F(CallStreams, copies_get_as_many_blocks_as_their_rows_need_up_to_a_limit) {
  const DevicePointer a = allocated(3000 * 64);
  static std::array<unsigned, 7> sizes;
  own.cuLaunchKernel = [](CuFunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CuStream, void**, void**) {
    sizes = {gx, gy, gz, bx, by, bz, shared};
    return cu_success;
  };
  EXPECT_EQ(api.cuMemcpyDtoD_v2(a, a + 70000, 61440), cu_success);
  EXPECT_THAT(sizes, ElementsAre(16, 1, 1, 256, 1, 1, 0));
  EXPECT_EQ(ask("cuMemsetD32_v2", a, 1U, std::size_t{61440 / 4}), cu_success);
  EXPECT_THAT(sizes, ElementsAre(16, 1, 1, 256, 1, 1, 0));
  for (const unsigned rows : {5U, 3000U}) {
    EXPECT_EQ(ask("cuMemsetD2D8_v2", a, std::size_t{64}, std::uint8_t{1}, std::size_t{64},
                  std::size_t{rows}),
              cu_success);
    EXPECT_THAT(sizes, ElementsAre(1, std::min(rows, 1024U), 1, 256, 1, 1, 0));
  }
}

TEST_F(CallStreams, what_is_empty_is_not_copied) {
  const DevicePointer a = allocated(4096);
  CuCopy2d flat{};
  flat.source_type = flat.target_type = cu_memory_device;
  flat.source_device = a;
  flat.target_device = a + 64;
  flat.source_pitch = flat.target_pitch = 64;
  for (const auto& [width, height] : {std::pair{0, 2}, std::pair{2, 0}}) {
    flat.width_bytes = static_cast<std::size_t>(width);
    flat.height = static_cast<std::size_t>(height);
    EXPECT_EQ(ask("cuMemcpy2DAsync_v2", &flat, stream), cu_success);
    EXPECT_EQ(
        ask("cuMemsetD2D8_v2", a, std::size_t{64}, std::uint8_t{1}, flat.width_bytes, flat.height),
        cu_success);
  }
  EXPECT_THAT(launched, IsEmpty());
  EXPECT_EQ(ask("cuMemcpy2D_v2", nullptr), std::nullopt) << "the driver refuses it";
  EXPECT_EQ(ask("cuMemcpy3D_v2", nullptr), std::nullopt);
  constexpr std::size_t wraps = (std::size_t{1} << 63U) + 1;
  EXPECT_EQ(ask("cuMemsetD16_v2", a, std::uint16_t{1}, wraps), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemsetD2D16_v2", a, std::size_t{64}, std::uint16_t{1}, wraps, std::size_t{1}),
            cu_error_invalid_value);
  EXPECT_THAT(launched, IsEmpty());
}

// Sizes whose product or sum is small again once it has no room in 64 bits.
TEST_F(CallStreams, nothing_is_copied_whose_length_no_number_holds) {
  const DevicePointer a = allocated(4096);
  constexpr std::size_t half = std::size_t{1} << 63U;
  CuCopy2d flat{};
  flat.source_type = flat.target_type = cu_memory_device;
  flat.source_device = flat.target_device = a;
  flat.source_pitch = 128;
  flat.height = 3;
  for (const auto& [pitch, width] : {std::pair{half, 64}, std::pair{half - 32, 128}}) {
    flat.target_pitch = pitch;
    flat.width_bytes = static_cast<std::size_t>(width);
    EXPECT_EQ(ask("cuMemcpy2D_v2", &flat), cu_error_invalid_value) << pitch;
  }
  CuCopy3d box{};
  box.source.type = box.target.type = cu_memory_device;
  box.source.device = box.target.device = a;
  box.source.pitch = 128;
  box.source.height = box.target.height = 2;
  box.height = 1;
  box.depth = 3;
  for (const auto& [pitch, width] : {std::pair{half / 2, 64}, std::pair{half / 2 - 16, 128}}) {
    box.target.pitch = pitch;
    box.width_bytes = static_cast<std::size_t>(width);
    EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_error_invalid_value) << pitch;
  }
  EXPECT_THAT(launched, IsEmpty());
}

TEST_F(CallStreams, copies_may_fill_an_allocation_to_its_end_and_no_further) {
  const DevicePointer a = allocated(4096);
  allocated(4096);
  CuCopy2d flat{};
  flat.source_type = flat.target_type = cu_memory_device;
  flat.source_device = a;
  flat.target_device = a + 2048;
  flat.source_pitch = flat.target_pitch = 1024;
  flat.height = 2;
  for (const bool fits : {true, false}) {
    flat.width_bytes = fits ? 1024 : 1025;
    flat.source_pitch = flat.target_pitch = flat.width_bytes;
    EXPECT_EQ(ask("cuMemcpy2D_v2", &flat), fits ? cu_success : cu_error_invalid_value);
  }
  flat.height = 1;
  flat.source_pitch = flat.target_pitch = 0;
  flat.width_bytes = 2048;
  EXPECT_EQ(ask("cuMemcpy2D_v2", &flat), cu_success) << "one row has no pitch";
  CuCopy3d box{};
  box.source.type = box.target.type = cu_memory_device;
  box.source.device = a;
  box.target.device = a + 2048;
  box.width_bytes = 512;
  box.height = 2;
  box.depth = 1;
  box.source.pitch = box.target.pitch = 1024;
  EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_success) << "one plane has no height";
  box.depth = 2;
  box.source.height = box.target.height = 1;
  EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_error_invalid_value);
  box.source.pitch = box.target.pitch = 512;
  box.source.height = box.target.height = 2;
  EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_success);
  EXPECT_EQ(api.cuMemcpyDtoD_v2(a + 4000, a, 96), cu_success);
  EXPECT_EQ(api.cuMemcpyDtoD_v2(a + 4000, a, 97), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemcpyDtoD_v2(a, a + 4000, 97), cu_error_invalid_value);
}

TEST_F(CallStreams, launches_of_kernels_with_local_variables_are_the_programs_own) {
  own = api;
  const CuModule module = loaded(test::module_head + test::kernel_of("k", test::with_locals));
  const CuFunction k = function_of(module, "k");
  static struct {
    CuFunction function;
    std::array<unsigned, 7> sizes;
    CuStream stream;
    void** arguments;
    void** extra;
  } seen;
  own.cuLaunchKernel = [](CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CuStream in, void** arguments,
                          void** extra) {
    seen = {function, {gx, gy, gz, bx, by, bz, shared}, in, arguments, extra};
    return cu_success;
  };
  static std::vector<std::string> order;
  static auto* const real_wait = api.cuStreamWaitEvent;
  static auto* const real_record = api.cuEventRecord;
  order.clear();
  own.cuStreamWaitEvent = [](CuStream in, CuEvent event, unsigned flags) {
    order.push_back(fmt::format("wait {}", number(in)));
    return real_wait(nullptr, event, flags);
  };
  own.cuEventRecord = [](CuEvent event, CuStream in) {
    order.push_back(fmt::format("record {}", number(in)));
    return real_record(event, nullptr);
  };
  own.cuStreamGetCaptureInfo = [](CuStream, int*, unsigned long long*) { return cu_success; };
  std::size_t free = 0;
  const auto room = [&] {
    EXPECT_EQ(api.cuMemGetInfo_v2(&free, nullptr), cu_success);
    return window_bytes - free;
  };
  void* arguments[1] = {};
  void* extra[1] = {};
  EXPECT_EQ(ask("cuLaunchKernel", k, 2U, 3U, 4U, 5U, 6U, 7U, 8U, stream, &arguments[0], &extra[0]),
            cu_success);
  EXPECT_EQ(seen.function, k);
  EXPECT_THAT(seen.sizes, ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.arguments, &arguments[0]);
  EXPECT_EQ(seen.extra, &extra[0]);
  const std::size_t threads = 2 * 3 * 4 * 5 * 6 * 7;
  EXPECT_GE(room(), threads * 16);
  EXPECT_LT(room(), threads * 16 + 1024) << "not more than all threads need";
  own.cuEventSynchronize = [](CuEvent) { return CuResult{700}; };
  EXPECT_EQ(ask("cuLaunchKernel_ptsz", k, 5040U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr),
            cu_success)
      << "there is room for so many";
  EXPECT_EQ(seen.stream, reinterpret_cast<CuStream>(2)) << "the thread's own";
  EXPECT_EQ(ask("cuLaunchKernel", k, 5041U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr),
            CuResult{700})
      << "the place is not changed while kernels run";
  own.cuEventSynchronize = api.cuEventSynchronize;
  static CuLaunchConfig used;
  own.cuLaunchKernelEx = [](const CuLaunchConfig* config, CuFunction function, void** given,
                            void** more) {
    used = *config;
    seen.function = function;
    seen.arguments = given;
    seen.extra = more;
    return cu_success;
  };
  CuLaunchAttribute attribute{};
  const CuLaunchConfig config{{1, 2, 3}, {4, 5, 6}, 7, nullptr, &attribute, 1};
  seen = {};
  EXPECT_EQ(ask("cuLaunchKernelEx_ptsz", &config, k, &arguments[0], &extra[0]), cu_success);
  EXPECT_EQ(seen.function, k);
  EXPECT_EQ(seen.arguments, &arguments[0]);
  EXPECT_EQ(seen.extra, &extra[0]);
  EXPECT_EQ(used.stream, reinterpret_cast<CuStream>(2));
  EXPECT_EQ(used.attribute_count, 1U);
  static std::vector<int> used_attributes;
  own.cuLaunchKernelEx = [](const CuLaunchConfig* given, CuFunction, void**, void**) {
    used_attributes.clear();
    for (unsigned i = 0; i < given->attribute_count; ++i) {
      used_attributes.push_back(given->attributes[i].id);
    }
    return cu_success;
  };
  CuLaunchAttribute three[3] = {{4, {}, {}}, {6, {}, {}}, {9, {}, {}}};
  const CuLaunchConfig overlapping{{1, 1, 1}, {1, 1, 1}, 0, stream, &three[0], 3};
  EXPECT_EQ(ask("cuLaunchKernelEx", &overlapping, k, nullptr, nullptr), cu_success);
  EXPECT_THAT(used_attributes, ElementsAre(4, 9)) << "it does not begin before others have ended";
  EXPECT_THAT(order, ElementsAre("record 4096", "wait 2", "record 2", "wait 2", "record 2",
                                 "wait 4096", "record 4096"));
  EXPECT_EQ(ask("cuLaunchKernelEx", nullptr, k, nullptr, nullptr), std::nullopt);
  EXPECT_EQ(ask("cuLaunchCooperativeKernel", k, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr),
            cu_error_not_supported);
  order.clear();
  own.cuStreamWaitEvent = [](CuStream, CuEvent, unsigned) { return CuResult{400}; };
  EXPECT_EQ(ask("cuLaunchKernel", k, 1U, 1U, 1U, 1U, 1U, 1U, 0U, stream, nullptr, nullptr),
            CuResult{400});
  own.cuStreamWaitEvent = api.cuStreamWaitEvent;
  own.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CuStream, void**, void**) { return CuResult{719}; };
  EXPECT_EQ(ask("cuLaunchKernel", k, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr),
            CuResult{719});
  own.cuStreamGetCaptureInfo = [](CuStream, int*, unsigned long long*) { return CuResult{401}; };
  EXPECT_EQ(ask("cuLaunchKernel", k, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr),
            CuResult{401});
  EXPECT_THAT(order, IsEmpty()) << "what did not start is not recorded";
  own = api;
  const std::int64_t alive = test::fake_symbol<std::int64_t()>("fake_live_objects")();
  EXPECT_EQ(api.cuModuleUnload(module), cu_success);
  EXPECT_EQ(test::fake_symbol<std::int64_t()>("fake_live_objects")(), alive - 2)
      << "the module and its event";
}

TEST_F(CallStreams, options_of_code_are_handed_on) {
  own = api;
  const std::string text = test::module_head + test::kernel_of("k", "mov.u32 %r1, 1;");
  static struct {
    std::vector<int> options;
    std::vector<void*> values;
    unsigned library_count;
    int library_option;
    void* library_value;
  } seen;
  static auto* const real_module = api.cuModuleLoadDataEx;
  static auto* const real_library = api.cuLibraryLoadData;
  own.cuModuleLoadDataEx = [](CuModule* module, const void* image, unsigned count, int* options,
                              void** values) {
    seen = {std::vector(options, options + count), std::vector(values, values + count), 0, 0,
            nullptr};
    const CuResult code = real_module(module, image, count, options, values);
    values[0] = &seen;  // as a size of a log
    return code;
  };
  own.cuLibraryLoadData = [](CuLibrary* library, const void* image, int* options, void** values,
                             unsigned count, int* library_options, void** library_values,
                             unsigned library_count) {
    seen = {std::vector(options, options + count), std::vector(values, values + count),
            library_count, library_options[0], library_values[0]};
    return real_library(library, image, options, values, count, library_options, library_values,
                        library_count);
  };
  constexpr int split = 34;  // on all processors, if the program does not say
  int options[2] = {0, 4};
  void* values[2] = {};
  int library_options[2] = {1, 7};  // the first one is a promise that is not kept
  void* library_values[2] = {&seen, nullptr};
  CuModule module = nullptr;
  EXPECT_EQ(ask("cuModuleLoadDataEx", &module, text.c_str(), 2U, &options[0], &values[0]),
            cu_success);
  EXPECT_THAT(seen.options, ElementsAre(0, 4, split));
  EXPECT_THAT(seen.values, ElementsAre(nullptr, nullptr, nullptr));
  EXPECT_EQ(values[0], &seen) << "what the driver says reaches the program";
  EXPECT_NE(module, nullptr);
  options[1] = split;
  values[1] = &options;
  EXPECT_EQ(ask("cuModuleLoadDataEx", &module, text.c_str(), 2U, &options[0], &values[0]),
            cu_success);
  EXPECT_THAT(seen.options, ElementsAre(0, split));
  EXPECT_EQ(seen.values[1], &options);
  for (const char* name : {"cuModuleLoadData", "cuModuleLoadFatBinary"}) {
    EXPECT_EQ(ask(name, &module, text.c_str()), cu_success);
    EXPECT_THAT(seen.options, ElementsAre(split));
  }
  for (const auto answer : {+[](int* version) { return CuResult(((*version = 12090), 0)); },
                            +[](int*) { return CuResult{100}; }}) {
    own.cuDriverGetVersion = answer;
    EXPECT_EQ(ask("cuModuleLoadDataEx", &module, text.c_str(), 1U, &options[0], &values[0]),
              cu_success);
    EXPECT_THAT(seen.options, ElementsAre(0)) << "this driver does not know the other one";
  }
  own.cuDriverGetVersion = api.cuDriverGetVersion;
  CuLibrary library = nullptr;
  EXPECT_EQ(ask("cuLibraryLoadData", &library, text.c_str(), &options[0], &values[0], 1U,
                &library_options[0], &library_values[0], 2U),
            cu_success);
  EXPECT_THAT(seen.options, ElementsAre(0, split));
  EXPECT_EQ(seen.library_count, 1U);
  EXPECT_EQ(seen.library_option, 7);
  EXPECT_EQ(seen.library_value, nullptr);
  EXPECT_NE(library, nullptr);
  const std::string folder = test::fresh_folder("call_streams").string();
  ASSERT_TRUE(write_file(folder + "/k.ptx", text));
  EXPECT_EQ(ask("cuModuleLoad", &module, (folder + "/k.ptx").c_str()), cu_success);
  EXPECT_THAT(seen.options, ElementsAre(split));
  EXPECT_EQ(ask("cuLibraryLoadFromFile", &library, (folder + "/k.ptx").c_str(), &options[0],
                &values[0], 1U, &library_options[0], &library_values[0], 2U),
            cu_success);
  EXPECT_EQ(seen.library_option, 7);
  library_values[1] = &seen;
  EXPECT_EQ(ask("cuLibraryLoadData", &library, text.c_str(), &options[0], &values[0], 1U,
                &library_options[0], &library_values[0], 2U),
            cu_error_invalid_value)
      << "the stand-in knows no such value";
  EXPECT_EQ(seen.library_value, &seen);
  ASSERT_TRUE(write_file(folder + "/none", ""));
  told.clear();
  EXPECT_EQ(ask("cuModuleLoad", &module, (folder + "/none").c_str()), cu_error_no_binary);
  EXPECT_THAT(told, ElementsAre(HasSubstr(folder + "/none")));
  EXPECT_EQ(ask("cuModuleLoad", nullptr, folder.c_str()), cu_error_invalid_value);
  EXPECT_EQ(ask("cuModuleLoad", &module, nullptr), cu_error_invalid_value);
  EXPECT_EQ(ask("cuModuleLoadData", nullptr, text.c_str()), cu_error_invalid_value);
  EXPECT_EQ(ask("cuModuleLoadData", &module, nullptr), cu_error_invalid_value);
}

}  // namespace
}  // namespace demarc::cuda
