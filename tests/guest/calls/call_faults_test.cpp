// What becomes of a coloured program's calls where the driver fails, is older, or hands out what it
// had handed out before.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CallFaults : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  // The calling thread's mode of capturing, as the driver would keep it.
  static inline int mode = 0;
  CallFaults() {
    mode = 0;
    own.cuThreadExchangeStreamCaptureMode = [](int* exchanged) {
      std::swap(mode, *exchanged);
      return cu_success;
    };
  }
  static CuFunction numbered(std::uintptr_t number) {
    return reinterpret_cast<CuFunction>(number);  // NOLINT: a handle
  }
  std::optional<CuResult> ask_to_launch(CuFunction function) {
    return ask("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr);
  }
};

constexpr CuResult launch_failed = 719;

const std::string small_kernel = test::kernel_of("k", "mov.u32 %r1, 1;");

TEST_F(CallFaults,
       memory_that_a_stream_freed_is_not_given_while_it_cannot_be_told_where_the_stream_is) {
  const DevicePointer a = allocated(window_bytes);
  ASSERT_EQ(api.cuMemFreeAsync(a, nullptr), cu_success);
  EXPECT_EQ(api.cuMemFreeAsync(a, nullptr), cu_error_invalid_value) << "twice";
  EXPECT_EQ(api.cuMemFree_v2(a), cu_error_invalid_value) << "twice";
  static int waited = 0;
  waited = 0;
  own.cuEventSynchronize = [](CuEvent) {
    ++waited;
    return cu_error_not_ready;
  };
  for (const auto query : {+[](CuEvent) { return mode == 2 ? cu_error_not_ready : cu_success; },
                           +[](CuEvent) { return launch_failed; }}) {
    own.cuEventQuery = query;
    DevicePointer b = 0;
    EXPECT_EQ(api.cuMemAlloc_v2(&b, 64), cu_error_out_of_memory);
    EXPECT_EQ(mode, 0) << "the program's own is back";
    std::size_t free = 7;
    EXPECT_EQ(api.cuMemGetInfo_v2(&free, nullptr), cu_success);
    EXPECT_EQ(free, 0U);
  }
  EXPECT_EQ(waited, 2) << "it is waited for where there is no other room";
  own.cuEventSynchronize = [](CuEvent) { return cu_success; };
  const std::int64_t alive = test::fake_symbol<std::int64_t()>("fake_live_objects")();
  EXPECT_EQ(allocated(window_bytes), a);
  EXPECT_EQ(test::fake_symbol<std::int64_t()>("fake_live_objects")(), alive - 1)
      << "the event is destroyed";
}

TEST_F(CallFaults, what_is_free_is_told_without_waiting) {
  const DevicePointer a = allocated(4096);
  ASSERT_EQ(api.cuMemFreeAsync(a, nullptr), cu_success);
  own.cuEventSynchronize = [](CuEvent) { return launch_failed; };
  std::size_t total = 0;
  EXPECT_EQ(ask("cuMemGetInfo_v2", nullptr, &total), cu_success);
  EXPECT_EQ(total, window_bytes);
  EXPECT_EQ(taken, 0U) << "what the stream has come by is given back";
  const DevicePointer b = allocated(4096);
  ASSERT_EQ(api.cuMemFreeAsync(b, nullptr), cu_success);
  EXPECT_EQ(allocated(4096), b) << "and used again before more of the share is";
}

TEST_F(CallFaults, memory_stays_allocated_where_the_driver_does_not_let_it_be_freed) {
  const DevicePointer a = allocated(4096);
  own.cuCtxSynchronize = [] { return launch_failed; };
  EXPECT_EQ(api.cuMemFree_v2(a), launch_failed);
  own.cuEventRecord = [](CuEvent, CuStream) { return launch_failed; };
  EXPECT_EQ(api.cuMemFreeAsync(a, nullptr), launch_failed);
  own.cuEventCreate = [](CuEvent*, unsigned) { return CuResult{2}; };
  EXPECT_EQ(api.cuMemFreeAsync(a, nullptr), CuResult{2});
  own.cuStreamIsCapturing = [](CuStream, int*) { return CuResult{400}; };
  EXPECT_EQ(api.cuMemFreeAsync(a, nullptr), CuResult{400});
  std::uint32_t value = 0;
  own.cuCtxGetCurrent = [](CuContext*) { return CuResult{4}; };
  own.cuCtxGetDevice = [](CuDevice*) { return CuResult{201}; };
  EXPECT_EQ(ask("cuPointerGetAttribute", &value, 1, a), CuResult{4});
  EXPECT_EQ(ask("cuPointerGetAttribute", &value, 9, a), CuResult{201});
  EXPECT_EQ(ask("cuPointerGetAttribute", nullptr, 2, a), cu_error_invalid_value);
  EXPECT_EQ(read<std::uint8_t>(a, 4096).size(), 4096U) << "it is still the program's";
  own = api;
  own.cuStreamIsCapturing = nullptr;
  EXPECT_EQ(api.cuMemFreeAsync(a, nullptr), cu_success) << "a driver that captures nothing";
}

TEST_F(CallFaults, copies_end_with_the_first_error_of_the_driver) {
  const DevicePointer a = allocated(4096);
  write(a, std::vector<std::uint8_t>(4096, 3));
  std::vector<std::uint8_t> host(4096, 1);
  const std::uint64_t alive = test::fake_symbol<std::uint64_t()>("fake_allocated_bytes")();
  own.cuStreamSynchronize = [](CuStream) { return launch_failed; };
  EXPECT_EQ(api.cuMemcpyDtoH_v2(host.data(), a, 64), launch_failed)
      << "what is waited for has failed";
  EXPECT_EQ(ask("cuMemcpyDtoHAsync_v2", host.data(), a, std::size_t{64}, nullptr), cu_success);
  EXPECT_EQ(api.cuMemcpyDtoD_v2(a, a + 64, 64), cu_success);
  own = api;
  own.cuMemcpy2DAsync_v2 = [](const CuCopy2d*, CuStream) { return launch_failed; };
  EXPECT_EQ(api.cuMemcpyHtoD_v2(a, host.data(), 64), launch_failed);
  EXPECT_EQ(api.cuMemcpyDtoH_v2(host.data(), a, 64), launch_failed);
  own = api;
  EXPECT_EQ(read<std::uint8_t>(a, 1)[0], 3);
  own.cuMemAllocAsync = [](DevicePointer*, std::size_t, CuStream) { return CuResult{2}; };
  EXPECT_EQ(api.cuMemcpyHtoD_v2(a, host.data(), 64), CuResult{2});
  own = api;
  for (const int call : {0, 1, 2, 3}) {
    test::fake_symbol<void(int)>("fake_fail_next_launch")(launch_failed);
    EXPECT_EQ(call == 0   ? api.cuMemcpyHtoD_v2(a, host.data(), 64)
              : call == 1 ? api.cuMemcpyDtoH_v2(host.data(), a, 64)
              : call == 2 ? api.cuMemcpyDtoD_v2(a, a + 64, 64)
                          : api.cuMemsetD8_v2(a, 1, 64),
              launch_failed)
        << call;
  }
  EXPECT_EQ(test::fake_symbol<std::uint64_t()>("fake_allocated_bytes")(), alive)
      << "the memory between is freed";
  static auto* const real = api.cuMemFreeAsync;
  own.cuMemFreeAsync = [](DevicePointer address, CuStream stream) {
    static_cast<void>(real(address, stream));
    return CuResult{400};
  };
  EXPECT_EQ(api.cuMemcpyHtoD_v2(a, host.data(), 64), CuResult{400});
}

TEST_F(CallFaults, code_that_the_driver_does_not_take_is_not_kept) {
  const std::string text = test::module_head +
                           std::string(".visible .global .align 4 .u32 seen[4] = {1};\n") +
                           small_kernel;
  const std::int64_t alive = test::fake_symbol<std::int64_t()>("fake_live_objects")();
  CuModule module = nullptr;
  const auto fails = [&](CuResult code) {
    EXPECT_EQ(api.cuModuleLoadData(&module, text.c_str()), code);
    EXPECT_EQ(module, nullptr);
    EXPECT_EQ(mode, 0);
    EXPECT_EQ(test::fake_symbol<std::int64_t()>("fake_live_objects")(), alive)
        << "what was loaded is unloaded";
    const DriverApi before = own;
    own = api;
    own.cuThreadExchangeStreamCaptureMode = before.cuThreadExchangeStreamCaptureMode;
  };
  own.cuModuleLoadDataEx = [](CuModule*, const void*, unsigned, int*, void**) {
    return mode == 2 ? CuResult{218} : launch_failed;
  };
  fails(CuResult{218});
  own.cuModuleGetFunction = [](CuFunction*, CuModule, const char*) { return CuResult{500}; };
  fails(CuResult{500});
  own.cuFuncGetAttribute = [](int*, int, CuFunction) { return CuResult{400}; };
  fails(CuResult{400});
  own.cuMemcpy2DAsync_v2 = [](const CuCopy2d*, CuStream) { return launch_failed; };
  fails(launch_failed);
  own.cuStreamSynchronize = [](CuStream) { return CuResult{700}; };
  fails(CuResult{700});
  own.cuModuleGetGlobal_v2 = [](DevicePointer*, std::size_t*, CuModule, const char*) {
    return CuResult{500};
  };
  fails(CuResult{500});
  own.cuMemcpyHtoDAsync_v2 = [](DevicePointer, const void*, std::size_t, CuStream) {
    return launch_failed;
  };
  fails(launch_failed);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(taken, 0U) << "its variables are given back";
  const DevicePointer all = allocated(window_bytes);
  EXPECT_EQ(api.cuModuleLoadData(&module, text.c_str()), cu_error_out_of_memory);
  EXPECT_THAT(told, ElementsAre(HasSubstr("the share is full")));
  EXPECT_EQ(api.cuMemFree_v2(all), cu_success);
  ASSERT_EQ(api.cuModuleLoadData(&module, text.c_str()), cu_success);
  EXPECT_EQ(ask_to_launch(function_of(module, "k")), std::nullopt);
}

TEST_F(CallFaults, what_loading_copies_goes_beside_the_streams_of_the_program) {
  static std::vector<std::uintptr_t> streams;
  streams.clear();
  own.cuStreamSynchronize = [](CuStream stream) {
    streams.push_back(reinterpret_cast<std::uintptr_t>(stream));
    return cu_success;
  };
  loaded(test::module_head + std::string(".visible .global .u32 seen[4];\n") + small_kernel);
  EXPECT_THAT(streams, ElementsAre(2, 2)) << "the calling thread's default stream";
}

// A context that was destroyed takes its modules along, and no call tells of them.
TEST_F(CallFaults, handles_that_the_driver_hands_out_again_are_those_of_the_new_code) {
  own.cuModuleLoadDataEx = [](CuModule* module, const void*, unsigned, int*, void**) {
    *module = reinterpret_cast<CuModule>(std::uintptr_t{64});  // NOLINT: a handle
    return cu_success;
  };
  own.cuModuleGetFunction = [](CuFunction* function, CuModule, const char*) {
    *function = numbered(128);
    return cu_success;
  };
  own.cuFuncGetAttribute = [](int*, int, CuFunction) { return cu_success; };
  own.cuModuleGetGlobal_v2 = [](DevicePointer* address, std::size_t*, CuModule, const char*) {
    *address = 4096;
    return cu_success;
  };
  own.cuMemcpyHtoDAsync_v2 = [](DevicePointer, const void*, std::size_t, CuStream) {
    return cu_success;
  };
  const CuModule module = loaded(test::module_head + small_kernel);
  EXPECT_EQ(ask_to_launch(numbered(128)), std::nullopt);
  EXPECT_EQ(loaded(test::module_head + std::string(".visible .global .u32 seen;\n") +
                   test::kernel_of("k", test::with_locals)),
            module);
  own.cuStreamGetCaptureInfo = nullptr;
  own.cuStreamIsCapturing = [](CuStream, int* capturing) {
    *capturing = 1;
    return cu_success;
  };
  own.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CuStream, void**, void**) { return cu_success; };
  EXPECT_EQ(ask_to_launch(numbered(128)), cu_error_not_supported);
  EXPECT_THAT(told, ElementsAre(HasSubstr("does not tell captures apart")));
  DevicePointer seen = 0;
  EXPECT_EQ(ask("cuModuleGetGlobal_v2", &seen, nullptr, module, "seen"), cu_success);
  EXPECT_TRUE(in_window(seen));
}

TEST_F(CallFaults, functions_of_a_librarys_kernels_are_known_and_others_are_not) {
  const std::string text = test::module_head + small_kernel;
  const CuModule module = loaded(text);
  CuLibrary library = nullptr;
  ASSERT_EQ(api.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            cu_success);
  static std::vector<CuKernel> asked;
  asked.clear();
  CuKernel kernel = nullptr;
  ASSERT_EQ(api.cuLibraryGetKernel(&kernel, library, "k"), cu_success);
  own.cuKernelGetFunction = nullptr;
  EXPECT_EQ(ask_to_launch(numbered(128)), cu_error_not_supported);
  own.cuKernelGetFunction = [](CuFunction* function, CuKernel) {
    *function = numbered(128);
    return launch_failed;
  };
  EXPECT_EQ(ask_to_launch(numbered(128)), cu_error_not_supported);
  own.cuKernelGetFunction = [](CuFunction* function, CuKernel of) {
    asked.push_back(of);
    *function = numbered(128);
    return cu_success;
  };
  EXPECT_EQ(ask_to_launch(numbered(192)), cu_error_not_supported);
  EXPECT_EQ(ask_to_launch(numbered(128)), std::nullopt);
  EXPECT_THAT(asked, ElementsAre(kernel, kernel)) << "not the module's function";
  EXPECT_EQ(ask_to_launch(numbered(128)), std::nullopt);
  EXPECT_EQ(asked.size(), 2U) << "it is kept";
  EXPECT_EQ(ask_to_launch(function_of(module, "k")), std::nullopt);
  EXPECT_EQ(ask("cuLibraryUnload", library), std::nullopt) << "the driver unloads it too";
  EXPECT_EQ(ask_to_launch(numbered(128)), cu_error_not_supported);
  EXPECT_EQ(ask_to_launch(reinterpret_cast<CuFunction>(kernel)), cu_error_not_supported);
  EXPECT_EQ(ask_to_launch(function_of(module, "k")), std::nullopt);
}

// A second context of the program has constants of its own, which were not written.
TEST_F(CallFaults, kernels_of_a_library_are_refused_in_another_context) {
  const std::string text = test::module_head + small_kernel;
  const CuFunction of_module = function_of(loaded(text), "k");
  CuLibrary library = nullptr;
  ASSERT_EQ(api.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            cu_success);
  CuKernel kernel = nullptr;
  ASSERT_EQ(api.cuLibraryGetKernel(&kernel, library, "k"), cu_success);
  const auto of_library = reinterpret_cast<CuFunction>(kernel);
  CuKernelNode node{};
  node.function = of_library;
  const auto add = [&] {
    return ask("cuGraphAddKernelNode", nullptr, nullptr, nullptr, std::size_t{0}, &node);
  };
  EXPECT_EQ(ask_to_launch(of_library), std::nullopt);
  EXPECT_EQ(add(), std::nullopt);
  own.cuCtxGetCurrent = [](CuContext* context) {
    *context = nullptr;
    return cu_success;
  };
  EXPECT_EQ(ask_to_launch(of_library), cu_error_not_supported);
  EXPECT_EQ(add(), cu_error_not_supported);
  EXPECT_EQ(ask_to_launch(of_module), std::nullopt) << "a module is of one context";
  own.cuCtxGetCurrent = [](CuContext*) -> CuResult { return launch_failed; };
  EXPECT_EQ(ask_to_launch(of_library), cu_error_not_supported);
  EXPECT_THAT(told,
              testing::Each(HasSubstr("in another context than the one that loaded the library")));
  EXPECT_EQ(told.size(), 3U);
  own.cuCtxGetCurrent = api.cuCtxGetCurrent;
  EXPECT_EQ(api.cuLibraryUnload(library), cu_success);
}

}  // namespace
}  // namespace demarc::cuda
