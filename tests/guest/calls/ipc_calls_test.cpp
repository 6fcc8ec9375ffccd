// Memory that processes share: what another thread does meanwhile, and what is waited for. The
// server and the driver are functions of the test.
#include "calls/ipc_calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "calls/own_calls.hpp"
#include "planted_call.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr DevicePointer first_address = DevicePointer{1} << 40U;
constexpr std::uint64_t window_bytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t range_bytes = std::uint64_t{2} << 20U;
const std::string some_key = "0123456789abcdef0123456789abcdef";

class IpcAnswers : public testing::Test {
 protected:
  IpcAnswers() {
    events.clear();
    mode = 0;
    synchronized = cu_success;
    during_wait = nullptr;
    api.cuThreadExchangeStreamCaptureMode = [](int* exchanged) {
      std::swap(mode, *exchanged);
      return cu_success;
    };
    api.cuCtxSynchronize = [] {
      EXPECT_EQ(mode, 2) << "a capture of this thread forbids nothing";
      EXPECT_TRUE(OwnCalls::active());
      events.emplace_back("waited");
      if (during_wait) during_wait();
      return synchronized;
    };
    lender.lend = [this](color::LinearByte, std::uint64_t) -> Result<std::string> {
      if (during_lend) during_lend();
      return some_key;
    };
    lender.borrow = [this](const std::string&) -> Result<color::Extent> {
      events.emplace_back("borrowed");
      if (during_borrow) std::exchange(during_borrow, nullptr)();
      if (borrow_error) return tl::unexpected(*borrow_error);
      return color::Extent{color::LinearByte(window_bytes / 2), range_bytes};
    };
    lender.give_back = [](color::LinearByte) { events.emplace_back("given back"); };
  }
  template <class... Arguments>
  CuResult ask(const char* name, Arguments... arguments) {
    const test::PlantedCall planted(name, arguments...);
    const DriverCall call = planted.read();
    const auto* row = find_row(IpcCalls::rows(), call);
    return row == nullptr ? -1 : (calls.*row->answer)(call).value_or(-1);
  }
  CuResult open(DevicePointer* address, std::uint64_t place = 0) {
    return ask("cuIpcOpenMemHandle_v2", address, packed({some_key, place, 512}).value(), 1U);
  }
  DevicePointer opened(std::uint64_t place = 0) {
    DevicePointer address = 0;
    EXPECT_EQ(open(&address, place), cu_success);
    return address;
  }
  CuResult close(DevicePointer address) { return ask("cuIpcCloseMemHandle", address); }
  // Another thread begins, and gets as far as it can.
  std::thread other(const std::function<void()>& work) {
    std::atomic<bool> begun = false;
    std::thread made([&begun, work] {
      begun = true;
      work();
    });
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return made;
  }

  static inline std::vector<std::string> events;
  static inline thread_local int mode = 0;
  static inline CuResult synchronized = cu_success;
  static inline std::function<void()> during_wait;
  std::function<void()> during_lend;
  std::function<void()> during_borrow;
  std::optional<Error> borrow_error;
  DriverApi api;
  std::unique_ptr<ProgramRecord> record = std::make_unique<ProgramRecord>();
  std::vector<std::string> told;
  std::function<void(const std::string&)> tell = [this](const std::string& line) {
    told.push_back(line);
  };
  WindowMemory memory{first_address,
                      window_bytes,
                      {[](std::uint64_t) -> Result<color::Extent> {
                         return color::Extent{{}, window_bytes / 2};
                       },
                       [](const color::Extent&) {},
                       [](color::LinearByte, std::uint64_t) { events.emplace_back("withdrawn"); }}};
  MemoryCalls memory_calls{api, memory, *record};
  IpcCalls::Lender lender;
  IpcCalls calls{api, memory, memory_calls, lender, tell};
};

TEST_F(IpcAnswers, give_no_handle_of_memory_that_another_thread_frees_meanwhile) {
  const DevicePointer address = memory.allocate(512, WindowMemory::Use::program).value();
  CuIpcHandle handle{};
  during_lend = [&] { EXPECT_TRUE(memory.free(address)); };
  EXPECT_EQ(ask("cuIpcGetMemHandle", &handle, address), cu_error_invalid_value);
  EXPECT_FALSE(unpacked(handle));
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(IpcAnswers, have_memory_withdrawn_once_it_was_lent) {
  const DevicePointer address = memory.allocate(512, WindowMemory::Use::program).value();
  CuIpcHandle handle{};
  ASSERT_EQ(ask("cuIpcGetMemHandle", &handle, address), cu_success);
  EXPECT_TRUE(memory.free(address));
  EXPECT_THAT(events, ElementsAre("withdrawn"));
}

// What one of them gives back the other may have just borrowed.
TEST_F(IpcAnswers, open_and_close_for_one_thread_at_a_time) {
  std::vector<std::thread> others;
  during_borrow = [&] {
    others.push_back(other([&] { opened(4096); }));
    EXPECT_THAT(events, ElementsAre("borrowed"));
  };
  const DevicePointer address = opened();
  others.front().join();
  EXPECT_THAT(events, ElementsAre("borrowed", "borrowed"));
  EXPECT_EQ(close(address + 4096), cu_success);
  events.clear();
  during_wait = [&] {
    others.push_back(other([&] { opened(8192); }));
    EXPECT_THAT(events, ElementsAre("waited"));
  };
  EXPECT_EQ(close(address), cu_success);
  others.back().join();
  EXPECT_THAT(events, ElementsAre("waited", "given back", "borrowed"));
}

TEST_F(IpcAnswers, wait_for_the_card_before_the_last_close_and_then_alone) {
  const DevicePointer address = opened();
  EXPECT_EQ(opened(), address);
  const DevicePointer next = opened(4096);
  events.clear();
  EXPECT_EQ(close(address), cu_success);
  EXPECT_THAT(events, IsEmpty());
  EXPECT_EQ(close(address), cu_success);
  EXPECT_THAT(events, ElementsAre("waited"));
  synchronized = 719;
  EXPECT_EQ(close(next), 719);
  EXPECT_TRUE(memory.find(next)) << "it is still open";
  synchronized = cu_success;
  events.clear();
  EXPECT_EQ(close(next), cu_success);
  EXPECT_FALSE(memory.find(next));
  EXPECT_THAT(events, ElementsAre("waited", "given back"));
  EXPECT_EQ(mode, 0) << "the thread's own is back";
}

TEST_F(IpcAnswers, say_what_kind_of_refusal_the_servers_is) {
  DevicePointer address = 7;
  for (const auto& [kind, code] : {std::pair{ErrorKind::invalid_input, cu_error_invalid_handle},
                                   std::pair{ErrorKind::missing_capability, cu_error_not_supported},
                                   std::pair{ErrorKind::check_failed, cu_error_map_failed}}) {
    borrow_error = Error{kind, "no"};
    EXPECT_EQ(open(&address), code);
    EXPECT_EQ(told.back(), "cuIpcOpenMemHandle_v2 was refused: no");
  }
  EXPECT_EQ(address, 7U);
  EXPECT_EQ(close(first_address + window_bytes / 2), cu_error_invalid_value) << "nothing is open";
}

}  // namespace
}  // namespace demarc::cuda
