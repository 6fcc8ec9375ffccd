// Tests that events come out by time, and equal times in the order of their scheduling.
#include "demarc/sim/event_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>

namespace demarc::sim {
namespace {

TEST(EventQueue, equal_times_run_in_the_order_they_were_scheduled_near_and_far) {
  EventQueue<int> queue;
  queue.schedule(10000_cycles, 1);  // beyond the wheel
  queue.schedule(5_cycles, 0);
  EXPECT_EQ(queue.pop(), 0);
  queue.schedule(7000_cycles, 9);
  EXPECT_EQ(queue.pop(), 9);
  queue.schedule(10000_cycles, 2);  // within the wheel by now
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next_time(), EventQueue<int>::never);
}

RC_GTEST_PROP(EventQueue, events_come_out_as_a_stable_sort_by_time, ()) {
  EventQueue<std::size_t> queue;
  std::vector<Cycles> times;
  std::vector<bool> seen;
  std::pair<Cycles, std::size_t> last;
  bool first = true;
  const auto pop = [&] {
    const Cycles expected = queue.next_time();
    const std::size_t event = queue.pop();
    RC_ASSERT(queue.now() == expected);
    RC_ASSERT(times[event] == queue.now());
    RC_ASSERT(!seen[event]);
    seen[event] = true;
    RC_ASSERT(first || std::pair(queue.now(), event) > last);
    last = {queue.now(), event};
    first = false;
  };
  const auto steps = *rc::gen::inRange(1, 300);
  for (int i = 0; i < steps; ++i) {
    if (queue.empty() || *rc::gen::inRange(0, 3) != 0) {
      times.push_back(queue.now() + Cycles(*rc::gen::inRange(0, 20000)));
      seen.push_back(false);
      queue.schedule(times.back(), times.size() - 1);
    } else {
      pop();
    }
  }
  std::vector<bool> visited = seen;
  queue.each([&](std::size_t event) {
    RC_ASSERT(!visited[event]);
    visited[event] = true;
  });
  RC_ASSERT(std::count(visited.begin(), visited.end(), false) == 0);
  while (!queue.empty()) pop();
}

}  // namespace
}  // namespace demarc::sim
