#include "demarc/locality/predict.hpp"

#include <gtest/gtest.h>

namespace demarc::locality {
namespace {

gpu::Device small_device() {
  gpu::Device device;
  device.name = "small";
  device.sm_clock_hz = 1e9;
  device.sm.shared_bytes = 0;
  for (std::uint32_t t = 0; t < 2; ++t) {
    gpu::Tpc tpc;
    tpc.sms = {t};
    device.topology.tpcs.push_back(tpc);
  }
  device.l1.size_bytes = 32768;
  device.l2.size_bytes = 1U << 20U;
  device.l2.slices = 16;
  device.dram.bandwidth_bytes_per_s = 1e11;
  return device;
}

// `blocks` blocks of 32 threads; block b reads 128 bytes at base + step * b, `times` times.
AccessRuns reading(std::uint32_t blocks, std::uint64_t step, std::uint32_t times) {
  AccessRuns runs;
  runs.grid = {blocks, 1, 1};
  runs.block = {32, 1, 1};
  runs.accesses.resize(1);
  for (std::uint32_t b = 0; b < blocks; ++b)
    for (std::uint32_t k = 0; k < times; ++k)
      runs.runs.push_back({.address = 0x10000 + step * b,
                           .stride = 4,
                           .block = b,
                           .count = 32,
                           .request = k,
                           .step = k});
  return runs;
}

TEST(Predict, data_read_once_never_hits) {
  const CachePrediction result = predict_caches(reading(64, 128, 1), small_device());
  EXPECT_EQ(result.l1_hit_rate, 0);
  EXPECT_EQ(result.l2_hit_rate, 0);
  EXPECT_EQ(result.l1_sectors, 64U * 4);
  EXPECT_EQ(result.dram_bytes, 64U * 128);
  EXPECT_TRUE(result.complete);
}

TEST(Predict, a_block_that_reads_its_line_again_hits_in_l1) {
  const CachePrediction result = predict_caches(reading(64, 128, 4), small_device());
  EXPECT_DOUBLE_EQ(result.l1_hit_rate, 0.75);
  EXPECT_EQ(result.l2_hit_rate, 0);
}

TEST(Predict, a_line_that_all_blocks_read_misses_once_a_sm_in_l1_and_once_in_l2) {
  const CachePrediction result = predict_caches(reading(64, 0, 1), small_device());
  EXPECT_DOUBLE_EQ(result.l1_hit_rate, 62.0 / 64);
  EXPECT_DOUBLE_EQ(result.l2_hit_rate, 0.5);
  EXPECT_EQ(result.dram_bytes, 128U);
}

TEST(Predict, stores_reach_the_l2_and_are_written_back) {
  AccessRuns runs = reading(16, 128, 1);
  runs.accesses[0].kind = AccessKind::store;
  const CachePrediction result = predict_caches(runs, small_device());
  EXPECT_EQ(result.l1_sectors, 0U);
  EXPECT_EQ(result.l2_hit_rate, 1);
  EXPECT_EQ(result.dram_bytes, 16U * 128);
}

TEST(Predict, half_the_l2_hurts_what_fits_only_into_the_whole) {
  // Two sweeps over three quarters of the L2, in different blocks.
  AccessRuns runs;
  runs.grid = {12288, 1, 1};
  runs.block = {32, 1, 1};
  runs.accesses.resize(1);
  for (std::uint32_t b = 0; b < 12288; ++b)
    runs.runs.push_back(
        {.address = 0x10000 + 128 * std::uint64_t{b % 6144}, .stride = 4, .block = b, .count = 32});
  const Sensitivity result = predict_sensitivity(runs, small_device());
  EXPECT_GT(result.whole.l2_hit_rate, 0.45);
  EXPECT_LT(result.half.l2_hit_rate, 0.1);
  EXPECT_GT(result.half_l2_slowdown, 1.7);
}

TEST(SplitPages, counts_pages_by_the_gpus_that_touch_them) {
  // Block b reads line b and all read page 0: 64 blocks over 8 KiB, two GPUs.
  const PageSplit split = split_pages(reading(64, 128, 1), 2, 4096);
  EXPECT_EQ(split.pages, 2U);
  EXPECT_EQ(split.pages_by_sharers, (std::vector<std::uint64_t>{2, 0}));
  EXPECT_EQ(split.remote_access_share, 0);
  const PageSplit whole = split_pages(reading(64, 128, 1), 2, 65536);
  EXPECT_EQ(whole.pages_by_sharers, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(whole.remote_access_share, 0.5);
}

}  // namespace
}  // namespace demarc::locality
