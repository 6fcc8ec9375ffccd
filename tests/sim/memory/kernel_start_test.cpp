// From the launch of a kernel to the first instruction of its blocks, and what of an SM they take.
#include <gtest/gtest.h>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

TEST(KernelStart, blocks_begin_when_they_have_their_registers) {
  Spec spec = small_memory();
  const std::string two = "block\nwarp\nwork +10\nblock\nwarp\nwork +10\n";
  // 33 registers of 32 threads are five units of 256.
  const std::string many = "kernel threads=32 registers=33\n" + two;
  spec.registers = 2559;
  EXPECT_EQ(statistics_of(spec, many).run_cycles[0], 80_cycles);
  spec.registers = 2560;
  EXPECT_EQ(statistics_of(spec, many).run_cycles[0], 40_cycles);
  spec.registers = 1;
  EXPECT_EQ(statistics_of(spec, "kernel threads=32\n" + two).run_cycles[0], 40_cycles);  // not said
}

TEST(KernelStart, a_block_begins_after_its_time) {
  Spec spec = small_memory();
  spec.block_start_cycles = 17_cycles;
  EXPECT_EQ(statistics_of(spec, "kernel threads=32\nblock\nwarp\nwork +5\n").run_cycles[0],
            37_cycles);
}

TEST(KernelStart, reads_of_a_launch_come_one_after_the_other_and_fill_no_cache) {
  Spec spec = small_memory();
  spec.launch_misses = 2;
  // The second finds its row open. The load of the kernel misses, with the row open.
  const auto statistics = statistics_of(spec, "kernel threads=32\nblock\nwarp\nload 0x0/1\n", 2);
  EXPECT_EQ(statistics.run_cycles[0], Cycles(miss + 2 * (miss - 9)));
  EXPECT_EQ(statistics.run_cycles[1], Cycles(2 * (miss - 9) + hit));
  EXPECT_EQ(statistics.load_sectors, 2U);
  EXPECT_EQ(statistics.l2_miss_sectors, 1U);
}

TEST(KernelStart, times_of_kernels_leave_the_pauses_out) {
  const std::string kernel = "kernel threads=32\nblock\nwarp\nwork +5\n";
  const auto statistics = statistics_of(small_memory(), kernel + kernel, 2);
  const std::vector<Cycles> whole{43_cycles, 43_cycles};
  const std::vector<Cycles> kernels{40_cycles, 40_cycles};
  EXPECT_EQ(statistics.run_cycles, whole);
  EXPECT_EQ(statistics.kernel_cycles, kernels);
}

TEST(KernelStart, a_kernel_ends_when_its_last_store_is_acknowledged) {
  const std::string store = "kernel threads=32\nblock\nwarp\nstore 0x0/1\n";
  const auto statistics = statistics_of(small_memory(), store, 2);
  EXPECT_EQ(statistics.run_cycles, (std::vector<Cycles>{Cycles(hit - 2), Cycles(hit - 2)}));
}

TEST(FloatLanes, compute_for_one_warp_after_the_other_and_a_work_without_floats_does_not_wait) {
  Spec spec = small_memory();
  const std::string two =
      "kernel threads=64\nblock\nwarp\nwork +4 float=4\nwarp\nwork +4 float=4\n";
  const std::string half =
      "kernel threads=64\nblock\nwarp\nwork +4 float=2\nwarp\nwork +4 float=2\n";
  const std::string none = "kernel threads=64\nblock\nwarp\nwork +4\nwarp\nwork +4\n";
  EXPECT_EQ(statistics_of(spec, two).run_cycles[0], 16_cycles);
  spec.float_ticks = Ticks(16 * 256);  // 16 cycles each
  EXPECT_EQ(statistics_of(spec, two).run_cycles[0], 128_cycles);
  EXPECT_EQ(statistics_of(spec, none).run_cycles[0], 16_cycles);
  // A share of 128 in 255 is the next above a half.
  EXPECT_EQ(statistics_of(spec, half).run_cycles[0], 65_cycles);
}

// A long stretch is issued in slices; each takes its part of the floats.
TEST(FloatLanes, compute_for_all_slices_of_a_long_stretch) {
  Spec spec = small_memory();
  spec.float_ticks = Ticks(8 * 256);
  EXPECT_EQ(
      statistics_of(spec, "kernel threads=32\nblock\nwarp\nwork +300 float=300\n").run_cycles[0],
      2400_cycles);
}

TEST(SharedMemory, rows_of_all_warps_of_an_sm_come_one_after_the_other) {
  Spec spec = small_memory();
  const std::string two =
      "kernel threads=64\nblock\nwarp\nwork +1 shared=10\nwarp\nwork +1 shared=10\n";
  EXPECT_EQ(statistics_of(spec, two).run_cycles[0], 4_cycles);
  spec.shared_ticks = Ticks(256);
  EXPECT_EQ(statistics_of(spec, two).run_cycles[0], 20_cycles);
}

}  // namespace
}  // namespace demarc::sim::memory::test
