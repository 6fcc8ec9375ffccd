// What kernels find in the L1, and what their cache operators do to the caches.
#include <gtest/gtest.h>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

// For one warp of one block.
std::string one_warp(const std::string& steps) {
  return "kernel threads=32\nblock\nwarp\n" + steps;
}

ClientStatistics after(const Spec& spec, const std::string& steps, std::uint32_t launches = 1) {
  return statistics_of(spec, one_warp(steps), launches);
}

using Runs = std::vector<Cycles>;

TEST(KernelCaches, a_kernel_finds_nothing_in_the_l1_and_all_that_is_left_in_the_l2) {
  EXPECT_EQ(after(small_memory(), "load 0x0/1\n", 3).run_cycles,
            (Runs{Cycles(miss), Cycles(hit), Cycles(hit)}));
}

TEST(KernelCaches, each_kernel_of_a_launch_finds_the_l1_empty) {
  const std::string twice = "load 0x0/1\nwait load 0x0/1\n";
  EXPECT_EQ(after(small_memory(), twice + one_warp(twice)).l1_hit_sectors, 2U);
}

TEST(CacheUse, a_load_past_the_l1_takes_an_l2_hit_and_leaves_nothing_in_the_l1) {
  const Spec spec = small_memory();
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load 0x0/1\n").run_cycles[0], Cycles(miss + 6));
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load.cg 0x0/1\n").run_cycles[0], Cycles(miss + hit));
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait load 0x0/1\n").run_cycles[0], Cycles(miss + hit));
}

TEST(CacheUse, a_line_that_streams_is_the_first_that_the_l1_gives_up) {
  Spec spec = small_memory();
  spec.l1 = {1, 2};
  spec.l2 = {2, 8};
  const std::string last = "wait load 0x2000/1\nwait load 0x0/1\n";
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load 0x1000/1\n" + last).l1_hit_sectors, 0U);
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load.cs 0x1000/1\n" + last).l1_hit_sectors, 1U);
}

TEST(CacheUse, a_line_that_streams_is_the_first_that_the_l2_gives_up) {
  const std::string last = "wait load.cg 0x200/1\nwait load.cg 0x0/1\n";
  const Spec spec = small_memory();
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait load.cg 0x100/1\n" + last).l2_hit_sectors, 0U);
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait load.cg.cs 0x100/1\n" + last).l2_hit_sectors, 1U);
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait store.cs 0x100/1\n" + last).l2_hit_sectors, 1U);
}

// The DRAM gives no less than a burst, and the L2 keeps all of it.
TEST(CacheUse, a_miss_brings_in_the_sectors_of_its_burst) {
  Spec spec = small_memory();
  const auto hits = [&](std::uint32_t burst_sectors, const char* then) {
    spec.burst_sectors = burst_sectors;
    return after(spec, std::string("load.cg 0x0/1\nwait load.cg 0x0/") + then + "\n")
        .l2_hit_sectors;
  };
  EXPECT_EQ(hits(1, "2"), 0U);
  EXPECT_EQ(hits(2, "2"), 1U);
  EXPECT_EQ(hits(2, "4"), 0U);
  EXPECT_EQ(hits(3, "4"), 1U);
  EXPECT_EQ(hits(3, "8"), 0U) << "the last burst of a line is what is left of it";
  EXPECT_EQ(hits(4, "8"), 1U);
}

TEST(CacheUse, what_is_there_or_on_its_way_is_a_hit_as_hardware_counters_have_it) {
  const Spec spec = small_memory();
  const auto of_l1 = [&](const char* steps) { return after(spec, steps).l1_hit_sectors; };
  EXPECT_EQ(of_l1("load 0x0/1\nload 0x0/1\n"), 1U);
  EXPECT_EQ(of_l1("load 0x0/1\nload 0x0/3\n"), 1U);
  EXPECT_EQ(of_l1("load 0x0/1\nwait load 0x0/3\n"), 1U);
  const ClientStatistics on_its_way = after(spec, "load.cg 0x0/1\nload.cg 0x0/3\n");
  EXPECT_EQ(on_its_way.l2_hit_sectors, 1U);
  EXPECT_EQ(on_its_way.l2_miss_sectors, 2U);
  const ClientStatistics there = after(spec, "load.cg 0x0/1\nwait load.cg 0x0/7\n");
  EXPECT_EQ(there.l2_hit_sectors, 1U);
  EXPECT_EQ(there.l2_miss_sectors, 3U);
}

}  // namespace
}  // namespace demarc::sim::memory::test
