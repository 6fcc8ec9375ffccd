// Allocations of a process in the window of its coloured memory.
#include "calls/window_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace demarc::cuda {
namespace {

using color::LinearByte;

constexpr DevicePointer window = DevicePointer{1} << 40U;
constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

// Lends stretches one behind the other, and again what came back, in the order of their places.
struct StretchOwner {
  std::uint64_t bytes;
  std::map<LinearByte, std::uint64_t> lent;
  std::vector<std::uint64_t> asked;

  Result<color::Extent> take(std::uint64_t wanted) {
    asked.push_back(wanted);
    const std::uint64_t whole = (wanted + 2 * mib - 1) / (2 * mib) * (2 * mib);
    LinearByte first;
    for (const auto& [begin, length] : lent) {
      if (begin - first >= whole) break;
      first = begin + length;
    }
    if (LinearByte(bytes) - first < whole) return missing_capability("no room for {}", wanted);
    lent.emplace(first, whole);
    return color::Extent{first, whole};
  }
  WindowMemory::Owner owner() {
    return {[this](std::uint64_t wanted) { return take(wanted); },
            [this](const color::Extent& stretch) {
              ASSERT_EQ(lent.at(stretch.first), stretch.bytes);
              lent.erase(stretch.first);
            }};
  }
};

TEST(WindowMemories, tell_what_lies_in_them) {
  StretchOwner owner{64 * mib, {}, {}};
  const WindowMemory memory(window, owner.bytes, owner.owner());
  EXPECT_FALSE(memory.contains(window - 1));
  EXPECT_TRUE(memory.contains(window));
  EXPECT_TRUE(memory.contains(window + 64 * mib - 1));
  EXPECT_FALSE(memory.contains(window + 64 * mib));
  EXPECT_FALSE(memory.touches(window - 8, 0));
  EXPECT_FALSE(memory.touches(window - 8, 8));
  EXPECT_TRUE(memory.touches(window - 8, 9));
  EXPECT_TRUE(memory.touches(window + 64 * mib - 1, 1));
  EXPECT_TRUE(memory.touches(window + 64 * mib - 1, 0));
  EXPECT_FALSE(memory.touches(window + 64 * mib, 1));
}

TEST(WindowMemories, know_the_allocation_that_an_address_lies_in) {
  StretchOwner owner{64 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  const DevicePointer first = memory.allocate(100).value();
  const DevicePointer second = memory.allocate(600).value();
  EXPECT_EQ(second, first + 512);
  EXPECT_EQ(memory.usage().used_bytes, 512U + 1024U);
  const auto found = memory.find(second + 599);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, second);
  EXPECT_EQ(found->bytes, 600U);
  EXPECT_FALSE(memory.find(second + 600));
  EXPECT_FALSE(memory.find(first + 100));
  EXPECT_FALSE(memory.find(window - 1));
  EXPECT_FALSE(memory.free(second + 8));
  EXPECT_TRUE(memory.free(first));
  EXPECT_FALSE(memory.free(first));
  EXPECT_FALSE(memory.find(first));
  EXPECT_EQ(memory.allocate(512).value(), first);
}

TEST(WindowMemories, know_whose_an_allocation_is_and_in_which_stretch_it_lies) {
  using Use = WindowMemory::Use;
  StretchOwner owner{256 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  const DevicePointer internal = memory.allocate(100).value();
  const DevicePointer of_program = memory.allocate(40 * mib, Use::program).value();
  EXPECT_EQ(memory.find(internal)->use, Use::internal);
  EXPECT_EQ(memory.find(of_program + 5)->use, Use::program);
  EXPECT_EQ(memory.find(internal)->stretch, LinearByte());
  EXPECT_EQ(memory.find(of_program + 5)->stretch, std::next(owner.lent.begin())->first);
  const LinearByte other(owner.bytes - 512);
  memory.add_borrowed({other, 512});
  EXPECT_EQ(memory.find(window + other.raw())->stretch, LinearByte()) << "of another process";
}

TEST(WindowMemories, tell_their_owner_when_an_allocation_is_freed_that_was_lent) {
  StretchOwner stretches{256 * mib, {}, {}};
  std::vector<std::pair<LinearByte, std::uint64_t>> withdrawn;
  auto owner = stretches.owner();
  owner.withdraw = [&](LinearByte stretch, std::uint64_t place) {
    EXPECT_TRUE(stretches.lent.contains(stretch)) << "it is given back later";
    withdrawn.emplace_back(stretch, place);
  };
  WindowMemory memory(window, stretches.bytes, owner);
  const DevicePointer first = memory.allocate(40 * mib).value();
  const DevicePointer second = memory.allocate(100).value();
  const DevicePointer third = memory.allocate(100).value();
  const LinearByte stretch = memory.find(third)->stretch;
  EXPECT_TRUE(memory.has_stretch(stretch));
  EXPECT_FALSE(memory.has_stretch(stretch + 512));
  EXPECT_TRUE(memory.note_lent(memory.linear(third)));
  EXPECT_TRUE(memory.free(second));
  EXPECT_TRUE(withdrawn.empty());
  EXPECT_TRUE(memory.free(third));
  ASSERT_EQ(withdrawn.size(), 1U);
  EXPECT_EQ(withdrawn[0].first, stretch);
  EXPECT_EQ(withdrawn[0].second, memory.linear(third) - stretch);
  EXPECT_FALSE(memory.note_lent(memory.linear(third))) << "it is gone";
  EXPECT_TRUE(memory.free(first));
  EXPECT_EQ(withdrawn.size(), 1U);
}

TEST(WindowMemories, know_allocations_of_other_processes_and_free_none_of_them) {
  StretchOwner owner{256 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  const DevicePointer own = memory.allocate(100).value();
  const LinearByte first(128 * mib);
  const DevicePointer borrowed = memory.add_borrowed({first, 1000});
  EXPECT_EQ(borrowed, window + first.raw());
  EXPECT_EQ(memory.find(borrowed + 999)->bytes, 1000U);
  EXPECT_EQ(memory.find(borrowed + 999)->use, WindowMemory::Use::borrowed);
  EXPECT_FALSE(memory.find(borrowed + 1000));
  EXPECT_EQ(memory.add_borrowed({first, 3000}), borrowed);
  EXPECT_EQ(memory.add_borrowed({first, 2000}), borrowed);
  EXPECT_EQ(memory.find(borrowed)->bytes, 3000U) << "the longer one";
  EXPECT_EQ(memory.usage().used_bytes, 512U) << "it is not this process's";
  EXPECT_FALSE(memory.free(borrowed));
  EXPECT_TRUE(memory.find(borrowed));
  memory.remove_borrowed(borrowed);
  EXPECT_FALSE(memory.find(borrowed));
  EXPECT_TRUE(memory.free(own));
  EXPECT_TRUE(owner.lent.empty());
}

TEST(WindowMemories, share_a_stretch_and_give_it_back_once_it_is_empty) {
  StretchOwner owner{64 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  const DevicePointer small = memory.allocate(1).value();
  const DevicePointer other = memory.allocate(mib).value();
  EXPECT_THAT(owner.asked, testing::ElementsAre(32 * mib));
  EXPECT_EQ(memory.usage().taken_bytes, 32 * mib);
  EXPECT_TRUE(memory.free(small));
  EXPECT_EQ(owner.lent.size(), 1U);
  EXPECT_TRUE(memory.free(other));
  EXPECT_TRUE(owner.lent.empty());
  EXPECT_EQ(memory.usage().taken_bytes, 0U);
}

// Each goes back by itself, so that what is free in the other one stays.
TEST(WindowMemories, join_nothing_across_the_edge_of_a_stretch) {
  StretchOwner owner{128 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  const DevicePointer first = memory.allocate(15 * mib).value();
  const DevicePointer above = memory.allocate(15 * mib).value();
  EXPECT_EQ(above + 15 * mib, window + 32 * mib);
  const DevicePointer second = memory.allocate(16 * mib).value();
  const DevicePointer last = memory.allocate(16 * mib).value();
  EXPECT_EQ(last, second + 16 * mib);
  EXPECT_TRUE(memory.free(second));
  EXPECT_TRUE(memory.free(above));
  EXPECT_TRUE(memory.free(first));
  EXPECT_EQ(owner.lent.size(), 1U) << "the first one is empty";
  EXPECT_EQ(memory.allocate(16 * mib).value(), second) << "it is free in the second one";
  const DevicePointer again = memory.allocate(15 * mib).value();
  EXPECT_EQ(again, first);
  EXPECT_TRUE(memory.free(second));
  EXPECT_TRUE(memory.free(last));
  EXPECT_EQ(owner.lent.size(), 1U) << "the second one is empty";
  EXPECT_EQ(memory.allocate(15 * mib).value(), above) << "it is free in the first one";
}

TEST(WindowMemories, take_what_is_left_where_it_is_less_than_a_stretch) {
  StretchOwner owner{34 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  EXPECT_TRUE(memory.allocate(32 * mib));
  EXPECT_TRUE(memory.allocate(2 * mib));
  EXPECT_THAT(owner.asked, testing::ElementsAre(34 * mib, 32 * mib, 2 * mib));
  const auto full = memory.allocate(1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "no room for 512");
}

// A stencil reads a row or a plane below its first buffer.
TEST(WindowMemories, keep_a_page_free_below_the_first_allocation) {
  for (const std::uint64_t bytes : {std::uint64_t{1}, 30 * mib, 40 * mib}) {
    StretchOwner owner{64 * mib, {}, {}};
    WindowMemory memory(window, owner.bytes, owner.owner());
    const DevicePointer first = memory.allocate(bytes).value();
    EXPECT_EQ(first, window + 2 * mib) << bytes;
    const DevicePointer second = memory.allocate(1).value();
    EXPECT_GE(second, first + bytes) << "what is free below is not given to the next one";
    EXPECT_TRUE(memory.free(second));
    EXPECT_TRUE(memory.free(first));
    EXPECT_TRUE(owner.lent.empty()) << "the page goes back with its stretch";
    EXPECT_EQ(memory.usage().taken_bytes, 0U);
  }
}

TEST(WindowMemories, give_the_page_below_too_where_a_program_asks_for_all) {
  for (const std::uint64_t bytes : {63 * mib, 64 * mib}) {
    StretchOwner owner{64 * mib, {}, {}};
    WindowMemory memory(window, owner.bytes, owner.owner());
    EXPECT_EQ(memory.allocate(bytes).value(), window) << bytes;
  }
}

TEST(WindowMemories, use_again_what_the_first_allocation_left) {
  StretchOwner owner{64 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  const DevicePointer first = memory.allocate(20 * mib).value();
  EXPECT_TRUE(memory.allocate(1));
  EXPECT_TRUE(memory.free(first));
  EXPECT_EQ(memory.allocate(20 * mib).value(), first);
  EXPECT_EQ(owner.asked.size(), 1U);
}

TEST(WindowMemories, ask_for_a_page_more_only_for_their_first_stretch) {
  StretchOwner owner{
      256 * mib, {{LinearByte(), 8 * mib}}, {}};  // another process has the window's beginning
  WindowMemory memory(window, owner.bytes, owner.owner());
  EXPECT_EQ(memory.allocate(64 * mib).value(), window + 8 * mib);
  EXPECT_TRUE(memory.allocate(64 * mib));
  EXPECT_THAT(owner.asked, testing::ElementsAre(66 * mib, 64 * mib));
}

TEST(WindowMemories, refuse_what_no_share_has) {
  StretchOwner owner{64 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  EXPECT_FALSE(memory.allocate(0));
  EXPECT_FALSE(memory.allocate(64 * mib + 1));
  EXPECT_FALSE(memory.allocate(~std::uint64_t{0}));
  EXPECT_TRUE(owner.asked.empty());
  EXPECT_TRUE(memory.allocate(64 * mib));
}

TEST(WindowMemories, refuse_stretches_that_do_not_fit) {
  for (const color::Extent& wrong :
       {color::Extent{{}, 32 * mib - 1}, color::Extent{LinearByte(33 * mib), 32 * mib},
        color::Extent{LinearByte(65 * mib), 32 * mib}}) {
    WindowMemory memory(
        window, 64 * mib,
        {[&](std::uint64_t) { return Result<color::Extent>(wrong); }, [](const color::Extent&) {}});
    const auto made = memory.allocate(32 * mib);
    ASSERT_FALSE(made) << wrong.first;
    EXPECT_EQ(made.error().kind, ErrorKind::check_failed);
    EXPECT_EQ(memory.usage().taken_bytes, 0U);
  }
}

RC_GTEST_PROP(WindowMemories, never_give_a_byte_twice_and_lose_none, ()) {
  StretchOwner owner{256 * mib, {}, {}};
  WindowMemory memory(window, owner.bytes, owner.owner());
  std::map<DevicePointer, std::uint64_t> live;
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps; ++step) {
    if (live.empty() || *rc::gen::inRange(0, 5) < 3) {
      const std::uint64_t bytes = *rc::gen::inRange<std::uint64_t>(1, 40 * mib);
      const auto address = memory.allocate(bytes);
      if (!address) continue;
      const auto next = live.lower_bound(*address);
      if (next != live.end()) RC_ASSERT(*address + bytes <= next->first);
      if (next != live.begin()) {
        const auto& [begin, length] = *std::prev(next);
        RC_ASSERT(begin + length <= *address);
      }
      RC_ASSERT(memory.contains(*address) && memory.contains(*address + bytes - 1));
      live.emplace(*address, bytes);
    } else {
      const auto chosen =
          std::next(live.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(live)));
      RC_ASSERT(memory.free(chosen->first));
      live.erase(chosen);
    }
  }
  for (const auto& [address, bytes] : live) RC_ASSERT(memory.free(address));
  RC_ASSERT(owner.lent.empty());
  RC_ASSERT(memory.usage().used_bytes == 0U);
  RC_ASSERT(memory.allocate(256 * mib));
}

}  // namespace
}  // namespace demarc::cuda
