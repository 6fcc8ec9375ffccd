// Work that follows each other, on a driver of which each call is noted.
#include "calls/launch_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "calls/local_users.hpp"
#include "demarc/base/result.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr CuResult ordered_failure = 719;

class LaunchOrders : public testing::Test {
 protected:
  LaunchOrders() {
    noted.clear();
    last_event = 0;
    failing.clear();
    api.cuEventCreate = [](CuEvent* event, unsigned) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle
      *event = reinterpret_cast<CuEvent>(static_cast<std::uintptr_t>(++last_event));
      return note("create", *event);
    };
    api.cuEventRecord = [](CuEvent event, CuStream) { return note("record", event); };
    api.cuStreamWaitEvent = [](CuStream, CuEvent event, unsigned) { return note("wait", event); };
    api.cuEventSynchronize = [](CuEvent event) { return note("synchronize", event); };
    api.cuEventDestroy_v2 = [](CuEvent event) { return note("destroy", event); };
  }
  static CuResult note(const std::string& what, CuEvent event) {
    noted.push_back(fmt::format("{} {}", what, reinterpret_cast<std::uintptr_t>(event)));
    return what == failing ? ordered_failure : cu_success;
  }
  CuResult run(LaunchOrder& one, CuResult result = cu_success) {
    return one.run(api, nullptr, [result] {
      noted.emplace_back("work");
      return result;
    });
  }
  static std::vector<std::string> since() { return std::exchange(noted, {}); }

  static inline std::vector<std::string> noted;
  static inline int last_event = 0;
  static inline std::string failing;  // this function
  DriverApi api{};
  LaunchOrder order;
};

TEST_F(LaunchOrders, each_piece_waits_for_the_one_before) {
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("create 1", "work", "record 1"));
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("wait 1", "work", "record 1"));
  EXPECT_EQ(order.wait(api), cu_success);
  EXPECT_THAT(since(), ElementsAre("synchronize 1"));
  order.forget(api);
  EXPECT_THAT(since(), ElementsAre("destroy 1"));
  EXPECT_EQ(order.wait(api), cu_success);
  EXPECT_THAT(since(), IsEmpty());
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("create 2", "work", "record 2"));
}

TEST_F(LaunchOrders, work_that_did_not_begin_is_followed_by_none) {
  EXPECT_EQ(run(order, ordered_failure), ordered_failure);
  EXPECT_THAT(since(), ElementsAre("create 1", "work", "destroy 1"));
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("create 2", "work", "record 2"));
  EXPECT_EQ(run(order, ordered_failure), ordered_failure);
  EXPECT_THAT(since(), ElementsAre("wait 2", "work"));
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("wait 2", "work", "record 2"));
}

TEST_F(LaunchOrders, nothing_runs_that_cannot_wait_or_be_waited_for) {
  failing = "create";
  EXPECT_EQ(run(order), ordered_failure);
  EXPECT_THAT(since(), ElementsAre("create 1"));
  failing.clear();
  EXPECT_EQ(run(order), cu_success);
  static_cast<void>(since());
  failing = "wait";
  EXPECT_EQ(run(order), ordered_failure);
  EXPECT_THAT(since(), ElementsAre("wait 2"));
  failing = "synchronize";
  EXPECT_EQ(order.wait(api), ordered_failure);
}

TEST_F(LaunchOrders, what_left_no_event_is_followed_by_nothing) {
  failing = "record";
  EXPECT_EQ(run(order), ordered_failure);
  failing.clear();
  static_cast<void>(since());
  EXPECT_EQ(run(order), ordered_failure);
  EXPECT_EQ(order.wait(api), ordered_failure);
  EXPECT_THAT(since(), IsEmpty());
  LaunchOrder joined;
  joined.join(order);
  EXPECT_EQ(joined.wait(api), ordered_failure) << "nor in the order that it becomes a part of";
  LaunchOrder whole;
  joined.join(whole);
  EXPECT_EQ(joined.wait(api), ordered_failure);
}

TEST_F(LaunchOrders, joined_ones_are_waited_for_all_and_then_have_one_event) {
  LaunchOrder other;
  EXPECT_EQ(run(order), cu_success);
  EXPECT_EQ(run(other), cu_success);
  static_cast<void>(since());
  order.join(other);
  EXPECT_EQ(other.wait(api), cu_success);
  EXPECT_THAT(since(), IsEmpty()) << "it has none any more";
  EXPECT_EQ(order.wait(api), cu_success);
  EXPECT_THAT(since(), ElementsAre("synchronize 1", "synchronize 2"));
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("wait 1", "wait 2", "work", "record 1", "destroy 2"));
  EXPECT_EQ(run(order), cu_success);
  EXPECT_THAT(since(), ElementsAre("wait 1", "work", "record 1"));
}

TEST_F(LaunchOrders, are_forgotten_with_all_of_their_events) {
  LaunchOrder other;
  EXPECT_EQ(run(order), cu_success);
  EXPECT_EQ(run(other), cu_success);
  order.join(other);
  static_cast<void>(since());
  order.forget(api);
  EXPECT_THAT(since(), ElementsAre("destroy 1", "destroy 2"));
}

class LocalUsersOfModules : public LaunchOrders {
 protected:
  LocalUsersOfModules() {
    capturing = 0;
    api.cuStreamGetCaptureInfo = [](CuStream, int* status, unsigned long long* id) {
      *status = capturing;
      *id = 7;
      return cu_success;
    };
  }
  // Whether another thread could have the module's lock while a kernel of it is launched.
  bool is_free_while_launched(LocalUsers::ModuleOrder& module) {
    bool is_free = false;
    const auto launch = [&] {
      std::thread([&] {
        is_free = std::unique_lock(module.mutex, std::try_to_lock).owns_lock();
      }).join();
      return cu_success;
    };
    EXPECT_EQ(users.launch(
                  module, nullptr, [](const auto&) { return cu_success; }, launch),
              cu_success);
    return is_free;
  }
  static inline int capturing = 0;
  LocalUsers users{api, [](const std::string& line) { ADD_FAILURE() << line; }};
};

TEST_F(LocalUsersOfModules, hold_the_lock_of_their_module_until_its_kernels_are_in_graphs) {
  LocalUsers::ModuleOrder module;
  EXPECT_FALSE(is_free_while_launched(module)) << "its launches follow each other";
  capturing = 1;
  EXPECT_TRUE(is_free_while_launched(module)) << "all that are in graphs have one order";
  capturing = 0;
  EXPECT_TRUE(is_free_while_launched(module));
  LocalUsers::ModuleOrder other;
  EXPECT_FALSE(is_free_while_launched(other)) << "it was not captured";
}

}  // namespace
}  // namespace demarc::cuda
