// Memory that a process of a tenant shares with other processes of the tenant: what its driver
// calls return, and what it asks of its server.
#include <gmock/gmock.h>

#include "calls/ipc_handle.hpp"
#include "tenant_fixture.hpp"

namespace demarc::cuda {
namespace {

using lease::BorrowRequest;
using lease::GiveRequest;
using lease::LendRequest;
using lease::Request;
using lease::WithdrawRequest;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

// Its first allocation lies at the beginning of the window, that of another process behind it.
class MemoryOfSeveralProcesses : public ProcessesOfTenants {
 protected:
  void SetUp() override {
    ProcessesOfTenants::SetUp();
    attach();
    own = allocated(one_extent);
    static_cast<void>(server->asked());
    of_others = {color::LinearByte(server->lease.bytes - one_extent), one_extent};
    server->of_others = of_others;
  }
  std::optional<CuResult> open(const CuIpcHandle& handle, DevicePointer* address,
                               unsigned flags = 1) {
    return call("cuIpcOpenMemHandle_v2", address, handle, flags);
  }
  // The address of an allocation of another process, which begins at this place of its range.
  DevicePointer opened(std::uint64_t place, std::uint64_t bytes, const std::string& key = other) {
    DevicePointer address = 0;
    EXPECT_THAT(open(packed({key, place, bytes}).value(), &address), Optional(cu_success));
    return address;
  }
  std::optional<CuResult> close(DevicePointer address) {
    return call("cuIpcCloseMemHandle", address);
  }
  std::optional<CuResult> attribute(int which, DevicePointer address, void* value) {
    return call("cuPointerGetAttribute", value, which, address);
  }

  static constexpr const char* other = "fedcba9876543210fedcba9876543210";
  DevicePointer own = 0;
  lease::Extent of_others;
};

TEST_F(MemoryOfSeveralProcesses, has_a_handle_of_the_whole_allocation) {
  CuIpcHandle handle;
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, own + 9), Optional(cu_success));
  EXPECT_THAT(server->asked(), ElementsAre(Request(LendRequest{})));
  EXPECT_EQ(unpacked(handle), (IpcHandle{server->key, 0, one_extent}));
  EXPECT_EQ(allocated(4096), own + one_extent) << "in another range";
  DevicePointer second = 0;
  EXPECT_THAT(call("cuMemAllocAsync", &second, std::size_t{1000}, nullptr), Optional(cu_success));
  EXPECT_EQ(second, own + one_extent + 4096);
  static_cast<void>(server->asked());
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, second), Optional(cu_success));
  EXPECT_THAT(server->asked(),
              ElementsAre(Request(LendRequest{color::LinearByte(one_extent), 4096})));
  EXPECT_EQ(unpacked(handle), (IpcHandle{server->key, 4096, 1000}));
  unsigned can = 7;
  EXPECT_THAT(attribute(10, own, &can), Optional(cu_success));
  EXPECT_EQ(can, 1U);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(MemoryOfSeveralProcesses, has_no_handle_where_there_is_no_allocation) {
  CuIpcHandle handle;
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, own + one_extent),
              Optional(cu_error_invalid_value));
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, DevicePointer{4096}),
              Optional(cu_error_invalid_value));
  EXPECT_THAT(call("cuIpcGetMemHandle", nullptr, own), Optional(cu_error_invalid_value));
  EXPECT_THAT(server->asked(), IsEmpty());
  server->key = "short";
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, own), Optional(cu_error_map_failed));
  EXPECT_THAT(told, ElementsAre(HasSubstr("32 hexadecimal digits; 'short' came")));
  server->hangs_up = true;
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, own), Optional(cu_error_not_supported));
  EXPECT_THAT(told.back(), HasSubstr("cuIpcGetMemHandle was refused: demarc serve has ended"));
}

TEST_F(MemoryOfSeveralProcesses, has_no_handle_where_it_is_not_an_allocation_of_the_program) {
  CuModule module = nullptr;
  const char* text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 v;\n"
      ".visible .entry k()\n{\n.reg .b32 %r<2>;\nld.global.u32 %r1, [v];\nret;\n}\n";
  ASSERT_THAT(call("cuModuleLoadData", &module, text), Optional(cu_success));
  DevicePointer variable = 0;
  std::size_t bytes = 0;
  ASSERT_THAT(call("cuModuleGetGlobal_v2", &variable, &bytes, module, "v"), Optional(cu_success));
  CuIpcHandle handle;
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, variable), Optional(cu_error_not_supported));
  EXPECT_THAT(told, ElementsAre("cuIpcGetMemHandle was refused: processes share only memory of "
                                "cuMemAlloc and cuMemAllocAsync"));
  unsigned can = 7;
  EXPECT_THAT(attribute(10, variable, &can), Optional(cu_success));
  EXPECT_EQ(can, 0U);
}

TEST_F(MemoryOfSeveralProcesses, is_opened_at_its_place_and_known_as_own_memory_is) {
  DevicePointer address = 0;
  EXPECT_THAT(open(packed({other, 4096, 1000}).value(), &address, 0), Optional(cu_success))
      << "the flag is for other cards";
  EXPECT_EQ(address, own + of_others.first.raw() + 4096);
  EXPECT_THAT(server->asked(), Contains(Request(BorrowRequest{other})));
  DevicePointer base = 0;
  std::size_t bytes = 0;
  EXPECT_THAT(call("cuMemGetAddressRange_v2", &base, &bytes, address + 999), Optional(cu_success));
  EXPECT_EQ(base, address);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_THAT(call("cuMemGetAddressRange_v2", &base, &bytes, address + 1000),
              Optional(cu_error_not_found));
  unsigned type = 0;
  EXPECT_THAT(attribute(2, address, &type), Optional(cu_success));
  EXPECT_EQ(type, cu_memory_device);
  unsigned can = 7;
  EXPECT_THAT(attribute(10, address, &can), Optional(cu_success));
  EXPECT_EQ(can, 0U) << "the process that allocated it gives its handle";
  std::vector<std::uint32_t> words{1, 2, 3};
  EXPECT_THAT(call("cuMemcpyHtoD_v2", address, words.data(), std::size_t{12}),
              Optional(cu_success));
  std::vector<std::uint32_t> read(3);
  EXPECT_THAT(call("cuMemcpyDtoH_v2", read.data(), address, std::size_t{12}), Optional(cu_success));
  EXPECT_EQ(read, words);
  EXPECT_THAT(call("cuMemsetD8_v2", address + 1000, std::uint8_t{0}, std::size_t{1}),
              Optional(cu_error_invalid_value))
      << "behind it";
  EXPECT_EQ(block.record.max_bytes(), one_extent) << "it counts for the other process";
}

TEST_F(MemoryOfSeveralProcesses, is_given_back_when_it_was_closed_as_often_as_opened) {
  const DevicePointer address = opened(0, 1000);
  EXPECT_EQ(opened(0, 1000), address);
  EXPECT_EQ(opened(4096, 1000), address + 4096) << "another allocation in the range";
  EXPECT_THAT(server->asked(), Contains(Request(BorrowRequest{other})).Times(3));
  const Request back(GiveRequest{of_others.first});
  EXPECT_THAT(close(address + 8), Optional(cu_error_invalid_value));
  EXPECT_THAT(close(own), Optional(cu_error_invalid_value));
  EXPECT_THAT(close(address), Optional(cu_success));
  DevicePointer base = 0;
  EXPECT_THAT(call("cuMemGetAddressRange_v2", &base, nullptr, address), Optional(cu_success));
  EXPECT_THAT(close(address), Optional(cu_success));
  EXPECT_THAT(call("cuMemGetAddressRange_v2", &base, nullptr, address),
              Optional(cu_error_not_found));
  EXPECT_THAT(close(address), Optional(cu_error_invalid_value));
  EXPECT_THAT(server->asked(), IsEmpty()) << "the other allocation is open";
  EXPECT_THAT(close(address + 4096), Optional(cu_success));
  EXPECT_THAT(server->asked(), ElementsAre(back));
  EXPECT_EQ(opened(0, 1000), address) << "again";
  EXPECT_THAT(server->asked(), Contains(Request(BorrowRequest{other})));
}

TEST_F(MemoryOfSeveralProcesses, is_freed_by_the_process_that_allocated_it) {
  const DevicePointer address = opened(0, 1000);
  EXPECT_THAT(call("cuMemFree_v2", address), Optional(cu_error_invalid_value));
  EXPECT_THAT(call("cuMemFreeAsync", address, nullptr), Optional(cu_error_invalid_value));
  CuIpcHandle handle;
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, address), Optional(cu_error_invalid_value));
  EXPECT_THAT(told, ElementsAre("cuIpcGetMemHandle was refused: the memory belongs to another "
                                "process, which has to give the handle"));
  EXPECT_THAT(close(address), Optional(cu_success));
}

TEST_F(MemoryOfSeveralProcesses, is_refused_by_handles_that_lead_nowhere) {
  DevicePointer address = 7;
  const CuIpcHandle right = packed({other, 0, 1000}).value();
  EXPECT_THAT(open(right, nullptr), Optional(cu_error_invalid_value));
  EXPECT_THAT(open(right, &address, 2), Optional(cu_error_invalid_value));
  EXPECT_THAT(open(CuIpcHandle{}, &address), Optional(cu_error_invalid_handle));
  EXPECT_THAT(told, ElementsAre("cuIpcOpenMemHandle_v2 was refused: the handle does not come from "
                                "a process of a tenant"));
  EXPECT_THAT(server->asked(), IsEmpty());
  for (const auto& [place, bytes] : {std::pair<std::uint64_t, std::uint64_t>{0, one_extent + 1},
                                     {one_extent, 1},
                                     {one_extent - 1, 2},
                                     {~0ULL, 2}}) {
    EXPECT_THAT(open(packed({other, place, bytes}).value(), &address),
                Optional(cu_error_invalid_handle));
    EXPECT_THAT(told.back(),
                HasSubstr(fmt::format("names {} bytes at {} of a range of 2097152", bytes, place)));
    EXPECT_THAT(server->asked(), Contains(Request(GiveRequest{of_others.first})));
  }
  server->of_others = lease::Extent{of_others.first + 512, one_extent};
  EXPECT_THAT(open(right, &address), Optional(cu_error_map_failed));
  EXPECT_THAT(told.back(), HasSubstr("the answer of demarc serve cannot be understood"));
  server->of_others.reset();
  EXPECT_THAT(open(right, &address), Optional(cu_error_invalid_handle));
  EXPECT_EQ(told.back(), "cuIpcOpenMemHandle_v2 was refused: no process shares such memory");
  EXPECT_EQ(address, 7U);
}

TEST_F(MemoryOfSeveralProcesses, stays_open_when_another_handle_of_its_range_is_refused) {
  const DevicePointer address = opened(one_extent - 8, 8);
  DevicePointer nothing = 0;
  static_cast<void>(server->asked());
  EXPECT_THAT(open(packed({other, one_extent, 1}).value(), &nothing),
              Optional(cu_error_invalid_handle));
  EXPECT_THAT(server->asked(), testing::Not(Contains(Request(GiveRequest{of_others.first}))));
  EXPECT_THAT(close(address), Optional(cu_success));
  EXPECT_THAT(server->asked(), ElementsAre(Request(GiveRequest{of_others.first})));
}

TEST_F(MemoryOfSeveralProcesses, is_not_opened_by_the_process_that_allocated_it) {
  CuIpcHandle handle;
  ASSERT_THAT(call("cuIpcGetMemHandle", &handle, own), Optional(cu_success));
  DevicePointer address = 0;
  server->of_others = lease::Extent{{}, one_extent};
  EXPECT_THAT(open(handle, &address), Optional(cu_error_invalid_context));
  EXPECT_THAT(server->asked(), testing::Not(Contains(Request(GiveRequest{}))));
  EXPECT_THAT(told, ElementsAre("cuIpcOpenMemHandle_v2 was refused: the handle is of this process, "
                                "which has the memory already"));
}

TEST_F(MemoryOfSeveralProcesses, is_given_back_where_it_cannot_be_mapped) {
  server->of_others = lease::Extent{color::LinearByte(server->lease.bytes), one_extent};
  DevicePointer address = 0;
  EXPECT_THAT(open(packed({other, 0, 1}).value(), &address), Optional(cu_error_invalid_handle));
  EXPECT_THAT(server->asked(),
              Contains(Request(GiveRequest{color::LinearByte(server->lease.bytes)})));
}

// Other memory may lie there next, and its handle is another one.
TEST_F(MemoryOfSeveralProcesses, has_no_handle_any_more_when_it_was_freed) {
  CuIpcHandle handle;
  ASSERT_THAT(call("cuIpcGetMemHandle", &handle, own), Optional(cu_success));
  const DevicePointer kept = allocated(4096);
  const DevicePointer second = allocated(4096);
  ASSERT_THAT(call("cuIpcGetMemHandle", &handle, second), Optional(cu_success));
  static_cast<void>(server->asked());
  EXPECT_THAT(call("cuMemFree_v2", second), Optional(cu_success));
  EXPECT_THAT(server->asked(),
              ElementsAre(Request(WithdrawRequest{color::LinearByte(one_extent), 4096})));
  EXPECT_THAT(call("cuMemFree_v2", own), Optional(cu_success));
  EXPECT_THAT(server->asked(), ElementsAre(Request(WithdrawRequest{}), Request(GiveRequest{})));
  EXPECT_EQ(allocated(4096), second);
  EXPECT_THAT(call("cuMemFree_v2", second), Optional(cu_success));
  EXPECT_THAT(server->asked(), IsEmpty()) << "it was not lent";
  EXPECT_THAT(told, IsEmpty());
  ASSERT_THAT(call("cuIpcGetMemHandle", &handle, kept), Optional(cu_success));
  server->hangs_up = true;
  EXPECT_THAT(call("cuMemFree_v2", kept), Optional(cu_success));
  EXPECT_THAT(told, Contains(HasSubstr("demarc serve has ended")));
}

TEST_F(MemoryOfSeveralProcesses, has_no_handle_once_its_end_is_in_a_streams_order) {
  CuIpcHandle handle;
  const CuStream stream = nullptr;
  ASSERT_THAT(call("cuMemFreeAsync", own, stream), Optional(cu_success));
  EXPECT_THAT(call("cuIpcGetMemHandle", &handle, own), Optional(cu_error_invalid_value));
}

// Kernels may still use it.
TEST_F(MemoryOfSeveralProcesses, stays_open_while_the_card_cannot_be_waited_for) {
  const DevicePointer address = opened(0, 8);
  const auto driver = Driver::load().value();
  CuStream stream = nullptr;
  CuGraph graph = nullptr;
  ASSERT_EQ(driver->api().cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0),
            cu_success);
  ASSERT_EQ(driver->api().cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  EXPECT_THAT(close(address), Optional(cu_error_capturing));
  EXPECT_THAT(call("cuMemFree_v2", address), Optional(cu_error_invalid_value));
  ASSERT_EQ(driver->api().cuStreamEndCapture(stream, &graph), cu_success);
  EXPECT_THAT(close(address), Optional(cu_success));
  EXPECT_EQ(driver->api().cuGraphDestroy(graph), cu_success);
  EXPECT_EQ(driver->api().cuStreamDestroy_v2(stream), cu_success);
}

TEST_F(MemoryOfSeveralProcesses, is_not_shown_in_windows) {
  block.windows = WindowUse::always;
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  DevicePointer address = 0;
  EXPECT_THAT(open(packed({other, 0, 8}).value(), &address), Optional(cu_error_not_supported));
  EXPECT_THAT(told.back(), HasSubstr("runs code in windows"));
}

}  // namespace
}  // namespace demarc::cuda
