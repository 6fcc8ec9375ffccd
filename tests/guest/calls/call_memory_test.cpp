// Allocations of a program whose memory lies in a share.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

class MemoryCallsOfPrograms : public test::ProgramCalls<test::ColorKind::remainders> {};

TEST_F(MemoryCallsOfPrograms, what_is_asked_of_an_address_is_told_of_its_allocation) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(api.cuMemGetInfo_v2(&free, &total), cu_success);
  EXPECT_EQ(total, window_bytes);
  EXPECT_EQ(free, window_bytes);
  const DevicePointer a = allocated(1000);
  ASSERT_EQ(api.cuMemGetInfo_v2(&free, &total), cu_success);
  EXPECT_EQ(free, window_bytes - 1024);
  DevicePointer base = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(ask("cuMemGetAddressRange_v2", &base, &bytes, a + 999), cu_success);
  EXPECT_EQ(base, a);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_EQ(ask("cuMemGetAddressRange_v2", &base, &bytes, a + 1000), cu_error_not_found);
  EXPECT_EQ(ask("cuMemGetAddressRange_v2", &base, &bytes, DevicePointer{4096}), std::nullopt);
  const auto told_of = [&](int attribute, auto value) {
    EXPECT_EQ(ask("cuPointerGetAttribute", static_cast<void*>(&value), attribute, a + 8),
              cu_success)
        << attribute;
    return value;
  };
  CuContext context = nullptr;
  ASSERT_EQ(api.cuCtxGetCurrent(&context), cu_success);
  EXPECT_EQ(told_of(1, CuContext{}), context);
  EXPECT_EQ(told_of(2, 0U), cu_memory_device);
  EXPECT_EQ(told_of(3, DevicePointer{}), a + 8);
  EXPECT_EQ(told_of(7, DevicePointer{}), a);
  EXPECT_EQ(told_of(8, 9U), 0U) << "not managed";
  EXPECT_EQ(told_of(9, 9), 0) << "the card's number";
  EXPECT_EQ(told_of(11, DevicePointer{}), a);
  EXPECT_EQ(told_of(12, std::size_t{}), 1000U);
  EXPECT_EQ(told_of(17, &context), nullptr) << "no pool";
  std::uint64_t value = 0;
  EXPECT_EQ(ask("cuPointerGetAttribute", &value, 4, a), cu_error_invalid_value)
      << "the host has no address of it";
  EXPECT_EQ(ask("cuPointerGetAttribute", &value, 2, a + 1000), cu_error_invalid_value);
  EXPECT_EQ(ask("cuPointerGetAttribute", &value, 2, DevicePointer{4096}), std::nullopt);
  const int attributes[] = {2, 4};
  unsigned type = 0;
  void* host = &type;
  void* values[] = {&type, &host};
  EXPECT_EQ(ask("cuPointerGetAttributes", 2U, &attributes[0], &values[0], a), cu_success);
  EXPECT_EQ(type, cu_memory_device);
  EXPECT_EQ(host, nullptr);
  EXPECT_EQ(ask("cuPointerGetAttributes", 2U, &attributes[0], &values[0], a + 1000),
            cu_error_invalid_value);
  const int more_attributes[] = {4, 2, 99};
  void* unknown = nullptr;
  void* some_values[] = {&host, &type, &unknown};
  EXPECT_EQ(ask("cuPointerGetAttributes", 2U, &more_attributes[0], &some_values[0], a), cu_success)
      << "as many as were asked for";
  EXPECT_EQ(ask("cuPointerGetAttributes", 3U, &more_attributes[0], &some_values[0], a),
            cu_error_invalid_value);
  some_values[0] = nullptr;
  EXPECT_EQ(ask("cuPointerGetAttributes", 1U, &more_attributes[0], &some_values[0], a),
            cu_error_invalid_value);
  EXPECT_EQ(ask("cuPointerGetAttributes", 1U, nullptr, &some_values[0], a), cu_error_invalid_value);
  EXPECT_EQ(ask("cuPointerGetAttributes", 1U, &more_attributes[0], nullptr, a),
            cu_error_invalid_value);
  EXPECT_EQ(ask("cuPointerGetAttributes", 2U, &attributes[0], &values[0], DevicePointer{4096}),
            std::nullopt);
  base = 0;
  EXPECT_EQ(ask("cuMemGetAddressRange_v2", &base, nullptr, a + 1), cu_success);
  EXPECT_EQ(base, a);
  EXPECT_EQ(ask("cuMemFree_v2", DevicePointer{4096}), std::nullopt) << "not the share's";
  EXPECT_EQ(api.cuMemFreeAsync(window + window_bytes - 512, nullptr), cu_error_invalid_value);
  EXPECT_EQ(ask("cuPointerSetAttribute", &value, 6, a), cu_error_not_supported);
  EXPECT_EQ(ask("cuPointerSetAttribute", &value, 6, DevicePointer{4096}), std::nullopt);
}

TEST_F(MemoryCallsOfPrograms, allocations_that_cannot_be_made_are_refused) {
  DevicePointer address = 7;
  EXPECT_EQ(api.cuMemAlloc_v2(&address, 0), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemAlloc_v2(&address, window_bytes + 1), cu_error_out_of_memory);
  EXPECT_EQ(record->refused_bytes(), window_bytes + 1);
  EXPECT_EQ(ask("cuMemAlloc_v2", nullptr, std::size_t{64}), cu_error_invalid_value);
  std::size_t pitch = 7;
  EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, std::size_t{0}, std::size_t{4}, 4U),
            cu_error_invalid_value);
  for (const std::size_t width : {std::size_t{window_bytes + 1}, ~std::size_t{0}}) {
    ASSERT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, width, std::size_t{4}, 4U),
              cu_error_invalid_value);
  }
  constexpr std::size_t one_behind_all = (std::size_t{1} << 55U) + 1;  // rows, of 512 bytes
  EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, std::size_t{64}, one_behind_all, 4U),
            cu_error_out_of_memory);
  EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, std::size_t{64}, ~std::size_t{0}, 4U),
            cu_error_out_of_memory);
  EXPECT_EQ(address, 7U);
  EXPECT_EQ(pitch, 7U);
  EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, std::size_t{513}, std::size_t{3}, 4U),
            cu_success);
  EXPECT_EQ(pitch, 1024U);
  EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, nullptr, std::size_t{64}, std::size_t{4}, 4U),
            cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, std::size_t{64}, std::size_t{0}, 4U),
            cu_error_invalid_value);
  std::size_t bytes = 0;
  EXPECT_EQ(ask("cuMemGetAddressRange_v2", nullptr, &bytes, address), cu_success);
  EXPECT_EQ(bytes, 3072U);
  EXPECT_EQ(api.cuMemFree_v2(address + 512), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemFree_v2(address), cu_success);
  for (const auto& [width, expected] :
       {std::pair<std::size_t, std::size_t>{1, 512}, {512, 512}, {window_bytes, window_bytes}}) {
    EXPECT_EQ(ask("cuMemAllocPitch_v2", &address, &pitch, width, std::size_t{1}, 4U), cu_success);
    EXPECT_EQ(pitch, expected);
    EXPECT_EQ(api.cuMemFree_v2(address), cu_success);
  }
  EXPECT_EQ(api.cuMemFree_v2(allocated(1)), cu_success);
}

TEST_F(MemoryCallsOfPrograms, a_reset_leaves_what_kernels_find_their_memory_by) {
  const DevicePointer a = allocated(8);
  write(a, std::vector<std::uint32_t>{4, 5});
  CuContext context = nullptr;
  ASSERT_EQ(api.cuCtxGetCurrent(&context), cu_success);
  EXPECT_EQ(ask("cuDevicePrimaryCtxReset", CuDevice{0}), cu_success);
  EXPECT_EQ(ask("cuDevicePrimaryCtxReset_v2", CuDevice{0}), cu_success);
  ASSERT_EQ(api.cuCtxSetCurrent(nullptr), cu_success);
  EXPECT_EQ(ask("cuDevicePrimaryCtxReset_v2", CuDevice{0}), cu_success) << "no context is needed";
  ASSERT_EQ(api.cuCtxSetCurrent(context), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a, 2), (std::vector<std::uint32_t>{4, 5}));
  own.cuCtxSynchronize = []() -> CuResult { return 700; };
  EXPECT_EQ(ask("cuDevicePrimaryCtxReset_v2", CuDevice{0}), 700) << "what is broken stays so";
}

TEST_F(MemoryCallsOfPrograms, memory_that_a_stream_frees_is_used_again_once_it_has_come_there) {
  DevicePointer a = 0;
  ASSERT_EQ(api.cuMemAllocAsync(&a, window_bytes - 4096, nullptr), cu_success);
  EXPECT_TRUE(in_window(a));
  EXPECT_EQ(api.cuMemFreeAsync(a + 1, nullptr), cu_error_invalid_value);
  ASSERT_EQ(api.cuMemFreeAsync(a, nullptr), cu_success);
  DevicePointer b = 0;
  EXPECT_EQ(ask("cuMemAllocFromPoolAsync", &b, window_bytes - 4096, nullptr, nullptr), cu_success);
  EXPECT_EQ(b, a);
  CuStream stream = nullptr;
  ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  own.cuEventCreate = [](CuEvent*, unsigned) { return CuResult{700}; };
  ASSERT_EQ(api.cuMemFreeAsync(b, stream), cu_success) << "nothing becomes a node of the graph";
  own.cuEventCreate = api.cuEventCreate;
  CuGraph graph = nullptr;
  ASSERT_EQ(api.cuStreamEndCapture(stream, &graph), cu_success);
  EXPECT_EQ(api.cuMemAlloc_v2(&a, window_bytes - 4096), cu_error_out_of_memory)
      << "the graph may be launched again";
  EXPECT_EQ(api.cuGraphDestroy(graph), cu_success);
  EXPECT_EQ(api.cuStreamDestroy_v2(stream), cu_success);
  EXPECT_EQ(ask("cuMemFreeAsync", DevicePointer{4096}, nullptr), std::nullopt);
}

// No thread can wait for the card while a stream is captured, by whatever thread.
TEST_F(MemoryCallsOfPrograms, memory_is_freed_while_another_stream_is_captured) {
  const DevicePointer a = allocated(window_bytes - 4096);
  CuStream stream = nullptr;
  ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  EXPECT_EQ(ask("cuMemFree_v2", a + 1), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemFree_v2", a), cu_success);
  EXPECT_EQ(ask("cuMemFree_v2", a), cu_error_invalid_value) << "a second time";
  DevicePointer b = 0;
  EXPECT_EQ(ask("cuMemAlloc_v2", &b, window_bytes - 4096), cu_error_out_of_memory)
      << "kernels of it may still run";
  CuGraph graph = nullptr;
  ASSERT_EQ(api.cuStreamEndCapture(stream, &graph), cu_success);
  EXPECT_EQ(ask("cuMemAlloc_v2", &b, window_bytes - 4096), cu_success);
  EXPECT_EQ(b, a);
  EXPECT_EQ(ask("cuMemFree_v2", b), cu_success);
  EXPECT_EQ(api.cuGraphDestroy(graph), cu_success);
  EXPECT_EQ(api.cuStreamDestroy_v2(stream), cu_success);
  EXPECT_EQ(taken, 0U);
}

TEST_F(MemoryCallsOfPrograms, no_program_sets_the_l2_aside_for_itself) {
  EXPECT_EQ(ask("cuCtxSetLimit", 6, std::size_t{1} << 20U), cu_error_unsupported_limit);
  EXPECT_EQ(ask("cuCtxSetLimit", 2, std::size_t{1} << 20U), std::nullopt) << "the heap of malloc";
  EXPECT_EQ(ask("cuCtxResetPersistingL2Cache"), cu_error_not_supported);
  EXPECT_EQ(ask("cuLogsRegisterCallback", nullptr, nullptr, nullptr), cu_error_not_supported);
}

}  // namespace
}  // namespace demarc::cuda
