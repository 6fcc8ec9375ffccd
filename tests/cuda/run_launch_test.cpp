// A whole launch on the stand-in for libcuda, which carries out the probe kernels alone.
#include "demarc/cuda/run_launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// demarc_self_lines(lines, bytes a line, count) writes its own address into every line.
gpu::Launch self_lines(const char* kernel) {
  return gpu::parse_launch({.ptx = "lines.ptx",
                            .kernel = kernel,
                            .grid = "2",
                            .block = "32",
                            .arguments = "buf:512:iota,u64:128,u32:3"})
      .value();
}
const char* const lines_ptx = ".visible .entry demarc_self_lines(.param .u64 p0) { ret; }";

TEST(RunLaunch, fills_the_buffers_runs_the_kernels_and_reads_back) {
  const auto run =
      run_launch(test::fake_gpu(), self_lines("demarc_self_lines"), lines_ptx, "lines.ptx");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->buffers.size(), 1U);
  std::uint64_t words[64];
  ASSERT_EQ(run->buffers[0].size(), sizeof words);
  std::memcpy(words, run->buffers[0].data(), sizeof words);
  for (std::uint64_t line = 0; line < 3; ++line)
    EXPECT_EQ(words[16 * line], run->addresses[0] + 128 * line);
  // What no kernel wrote holds the first content: 32-bit words that count up.
  EXPECT_EQ(words[48], 0x6100000060U);
  ASSERT_EQ(run->kernels.size(), 1U);
  EXPECT_EQ(run->kernels[0].kernel, "demarc_self_lines");
  EXPECT_EQ(run->kernels[0].milliseconds, 1);
}

// A card without room for the buffer: only memory of the host can hold it.
TEST(RunLaunch, buffers_of_the_host_take_no_memory_of_the_card) {
  fake::FakeConfig full = fake::small_gpu();
  full.memory_bytes = 256;
  gpu::Launch launch = self_lines("demarc_self_lines");
  EXPECT_FALSE(run_launch(test::fake_gpu(full), launch, lines_ptx, "lines.ptx"));
  launch.buffers[0].host = true;
  const auto run = run_launch(test::fake_gpu(full), launch, lines_ptx, "lines.ptx");
  ASSERT_TRUE(run) << run.error().message;
  std::uint64_t words[64];
  std::memcpy(words, run->buffers[0].data(), sizeof words);
  EXPECT_EQ(words[16], run->addresses[0] + 128);
  EXPECT_EQ(words[48], 0x6100000060U);
}

TEST(RunLaunch, names_the_module_and_the_kernel_that_it_lacks) {
  const auto run = run_launch(test::fake_gpu(), self_lines("other"), lines_ptx, "lines.ptx");
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("lines.ptx: no kernel 'other'"));
}

}  // namespace
}  // namespace demarc::cuda
