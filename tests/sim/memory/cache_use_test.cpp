// What kernels find in the L1, and what their cache operators do to the caches.
#include <gtest/gtest.h>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

// Of one warp of one block.
std::string one_warp(const std::string& steps) {
  return "kernel threads=32\nblock\nwarp\n" + steps;
}

ClientStatistics after(const Spec& spec, const std::string& steps, std::uint32_t launches = 1) {
  return statistics_of(spec, one_warp(steps), launches);
}

using Runs = std::vector<Cycles>;

TEST(KernelCaches, AKernelFindsNothingInTheL1AndAllThatIsLeftInTheL2) {
  EXPECT_EQ(after(small_memory(), "load 0x0/1\n", 3).run_cycles,
            (Runs{Cycles(miss), Cycles(hit), Cycles(hit)}));
}

TEST(KernelCaches, EachKernelOfALaunchFindsTheL1Empty) {
  const std::string twice = "load 0x0/1\nwait load 0x0/1\n";
  EXPECT_EQ(after(small_memory(), twice + one_warp(twice)).l1_hit_sectors, 2U);
}

TEST(CacheUse, ALoadPastTheL1TakesAnL2HitAndLeavesNothingInTheL1) {
  const Spec spec = small_memory();
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load 0x0/1\n").run_cycles[0], Cycles(miss + 6));
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load.cg 0x0/1\n").run_cycles[0], Cycles(miss + hit));
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait load 0x0/1\n").run_cycles[0], Cycles(miss + hit));
}

TEST(CacheUse, ALineThatStreamsIsTheFirstThatTheL1GivesUp) {
  Spec spec = small_memory();
  spec.l1 = {1, 2};
  spec.l2 = {2, 8};
  const std::string last = "wait load 0x2000/1\nwait load 0x0/1\n";
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load 0x1000/1\n" + last).l1_hit_sectors, 0U);
  EXPECT_EQ(after(spec, "load 0x0/1\nwait load.cs 0x1000/1\n" + last).l1_hit_sectors, 1U);
}

TEST(CacheUse, ALineThatStreamsIsTheFirstThatTheL2GivesUp) {
  const std::string last = "wait load.cg 0x200/1\nwait load.cg 0x0/1\n";
  const Spec spec = small_memory();
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait load.cg 0x100/1\n" + last).l2_hit_sectors, 0U);
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait load.cg.cs 0x100/1\n" + last).l2_hit_sectors, 1U);
  EXPECT_EQ(after(spec, "load.cg 0x0/1\nwait store.cs 0x100/1\n" + last).l2_hit_sectors, 1U);
}

}  // namespace
}  // namespace demarc::sim::memory::test
