// Tests predicted hit rates and bandwidths on runs whose traffic is known by hand.
#include "demarc/locality/predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "demarc/locality/pages.hpp"
#include "predict/l2_model.hpp"
#include "small_device.hpp"
#include "sms.hpp"

namespace demarc::locality {
namespace {

using test::reading;
using test::small_device;

TEST(Predict, data_read_once_never_hits) {
  const CachePrediction result = predict_caches(reading(64, 128, 1), small_device());
  EXPECT_EQ(result.l1_hit_rate, 0);
  EXPECT_EQ(result.l2_hit_rate, 0);
  EXPECT_EQ(result.l1_sectors, 64U * 4);
  EXPECT_EQ(result.dram_bytes, 64U * 128);
  EXPECT_TRUE(result.complete);
}

TEST(Predict, a_hit_rate_that_cannot_be_is_named) {
  Sensitivity sensitivity;
  sensitivity.whole.l1_hit_rate = 1;
  EXPECT_TRUE(check_rates(sensitivity));
  for (CachePrediction* const one : {&sensitivity.whole, &sensitivity.half}) {
    for (double* const rate : {&one->l1_hit_rate, &one->l2_hit_rate, &one->l2_read_hit_rate}) {
      for (const double wrong : {1.25, -0.25}) {
        const double right = std::exchange(*rate, wrong);
        const auto checked = check_rates(sensitivity);
        ASSERT_FALSE(checked) << wrong;
        EXPECT_EQ(checked.error().kind, ErrorKind::check_failed);
        EXPECT_EQ(checked.error().message,
                  fmt::format("the prediction is wrong: a hit rate of {} with {} of the L2 is not "
                              "between 0 and 1",
                              wrong, one == &sensitivity.half ? "half" : "the whole"));
        *rate = right;
      }
    }
  }
  EXPECT_TRUE(check_rates(sensitivity));
}

TEST(Predict, the_interval_is_that_of_parts_of_the_requests) {
  // Ten lines once, then the first of them ten times, by a block on each SM; a store in between.
  AccessRuns runs = reading(2, 0x100000, 21);
  runs.accesses.resize(2);
  runs.accesses[1].kind = AccessKind::store;
  for (locality::Run& run : runs.runs) {
    if (run.step < 10) run.address += 128 * run.step;
    if (run.step == 10) run.access = 1;
  }
  const CachePrediction cut = predict_caches(runs, small_device(), {.max_requests = 40});
  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(cut.l1_interval, (RateInterval{0, 1}));
  EXPECT_EQ(cut.l2_interval, (RateInterval{0, 1})) << "where the store alone comes to it";
  EXPECT_EQ(cut.requests, 40U);
  for (const PredictOptions& half :
       {PredictOptions{.max_requests = 20}, PredictOptions{.max_lines = 20}}) {
    const CachePrediction first = predict_caches(runs, small_device(), half);
    EXPECT_EQ(first.requests, 20U);
    EXPECT_FALSE(first.complete);
    EXPECT_EQ(first.l1_interval, (RateInterval{0, 0}));
  }
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

TEST(Predict, dram_bytes_are_those_read_and_those_written) {
  AccessRuns runs = reading(16, 128, 1);
  runs.accesses.push_back({});
  runs.accesses[1].kind = AccessKind::store;
  for (std::uint32_t b = 0; b < 16; ++b) {
    runs.runs.push_back({.address = 0x80000 + 128 * b,
                         .stride = 4,
                         .block = b,
                         .count = 32,
                         .step = 1,
                         .access = 1});
  }
  std::stable_sort(runs.runs.begin(), runs.runs.end(),
                   [](const auto& a, const auto& b) { return a.block < b.block; });
  const CachePrediction result = predict_caches(runs, small_device());
  EXPECT_EQ(result.dram_read_bytes, 16U * 128);
  EXPECT_EQ(result.dram_bytes, 2U * 16 * 128);
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
  EXPECT_GT(result.half_l2_slowdown, 1.2);
}

TEST(Predict, the_two_sms_of_a_tpc_ask_the_l2_once_for_what_both_want) {
  gpu::Device device = small_device();
  device.topology.tpcs = {{.gpc = {}, .sms = demarc::test::sm_list({0, 1}), .bit = {}, .side = {}}};
  EXPECT_EQ(predict_caches(reading(2, 0, 1), device).l2_sectors, 4U);
  EXPECT_EQ(predict_caches(reading(2, 0, 1), small_device()).l2_sectors, 8U);
}

TEST(Predict, loads_that_pass_the_l1_never_hit_there) {
  AccessRuns runs = reading(64, 128, 4);
  runs.accesses[0].passes_l1 = true;
  const CachePrediction result = predict_caches(runs, small_device());
  EXPECT_EQ(result.l1_hit_rate, 0);
  EXPECT_DOUBLE_EQ(result.l2_read_hit_rate, 0.75);
}

TEST(Predict, a_kernel_with_few_threads_cannot_ask_for_all_of_the_bandwidth) {
  const gpu::Device device = small_device();
  const Sensitivity few = predict_sensitivity(reading(2, 128, 1), device);
  EXPECT_LT(few.dram_demand_share, 0.01);
  EXPECT_GT(predict_sensitivity(reading(20000, 128, 1), device).dram_demand_share, 0.05);
}

TEST(Predict, a_workload_that_runs_over_and_over_loses_only_what_half_the_l2_does_not_keep) {
  const auto sweep = [](std::uint32_t lines) {
    const AccessRuns runs = reading(lines, 128, 1);
    return predict_repeated(std::vector<RepeatedKernel>{{&runs, 0, 1}}, small_device());
  };
  const Sensitivity small = sweep(2048);  // a quarter of the L2
  EXPECT_DOUBLE_EQ(small.half_l2_slowdown, 1);
  EXPECT_DOUBLE_EQ(small.half.l2_hit_rate, 1);
  EXPECT_EQ(small.dram_demand_share, 0);
  const Sensitivity fits_whole = sweep(6144);
  EXPECT_DOUBLE_EQ(fits_whole.whole.l2_hit_rate, 1);
  EXPECT_LT(fits_whole.half.l2_hit_rate, 0.1);
  EXPECT_GT(fits_whole.half_l2_slowdown, 1.5);
  const Sensitivity fits_neither = sweep(16384);
  EXPECT_DOUBLE_EQ(fits_neither.half_l2_slowdown, 1);
  EXPECT_GT(fits_neither.dram_demand_share, 0.1);
}

TEST(Predict, kernels_weigh_as_often_as_they_are_launched) {
  const AccessRuns runs = reading(16384, 128, 1);
  const std::vector<RepeatedKernel> once{{&runs, 0, 1}};
  const std::vector<RepeatedKernel> thrice{{&runs, 0, 3}};
  const Sensitivity a = predict_repeated(once, small_device());
  const Sensitivity b = predict_repeated(thrice, small_device());
  EXPECT_DOUBLE_EQ(b.time_s, 3 * a.time_s);
  EXPECT_EQ(b.whole.dram_bytes, 3 * a.whole.dram_bytes);
  EXPECT_DOUBLE_EQ(b.dram_demand_share, a.dram_demand_share);
  EXPECT_DOUBLE_EQ(b.whole.l2_hit_rate, a.whole.l2_hit_rate);
}

TEST(Predict, of_a_run_that_is_too_long_the_beginning_counts_from_empty_caches) {
  const AccessRuns runs = reading(2048, 128, 1);
  const std::vector<RepeatedKernel> kernels{{&runs, 0, 1}};
  const Sensitivity cut = predict_repeated(kernels, small_device(), {.max_requests = 512});
  EXPECT_FALSE(cut.whole.complete);
  EXPECT_EQ(cut.whole.l2_hit_rate, 0);
  const Sensitivity beginning = predict_repeated(kernels, small_device(), {.beginning = true});
  EXPECT_FALSE(beginning.whole.complete);
  EXPECT_EQ(beginning.whole.dram_bytes, 2048U * 128);
}

constexpr SectorMask all_four = 0xf;

TEST(L2Model, a_read_that_misses_brings_in_the_other_half_of_its_64_bytes) {
  L2Model l2(1U << 20U, 1, 128, 32);
  EXPECT_EQ(l2.access(0, 7, 0b0001, AccessKind::load).dram_read, 2U);
  EXPECT_EQ(l2.access(0, 7, 0b0010, AccessKind::load).hits, 1U);
  EXPECT_EQ(l2.access(0, 7, 0b0100, AccessKind::load).hits, 0U);
}

// The line's home is the half whose first reader leaves nothing for the other half to fetch.
std::uint32_t home_of(std::uint64_t line) {
  L2Model l2(1U << 20U, 2, 128, 32);
  l2.access(0, line, all_four, AccessKind::load);
  return l2.access(1, line, all_four, AccessKind::load).hits == 4 ? 1 : 0;
}

TEST(L2Model, a_line_read_from_the_far_half_is_in_both_and_from_the_home_half_in_one) {
  const std::uint64_t line = 12345;
  const std::uint32_t home = home_of(line);
  L2Model from_far(1U << 20U, 2, 128, 32);
  EXPECT_EQ(from_far.access(1 - home, line, all_four, AccessKind::load).dram_read, 4U);
  EXPECT_EQ(from_far.access(home, line, all_four, AccessKind::load).hits, 4U);
  L2Model from_home(1U << 20U, 2, 128, 32);
  EXPECT_EQ(from_home.access(home, line, all_four, AccessKind::load).dram_read, 4U);
  const auto second = from_home.access(1 - home, line, all_four, AccessKind::load);
  EXPECT_EQ(second.hits, 0U);
  EXPECT_EQ(second.dram_read, 0U);
  EXPECT_EQ(from_home.access(1 - home, line, all_four, AccessKind::load).hits, 4U);
}

TEST(L2Model, holds_of_what_is_gone_through_again_what_no_miss_took_the_place_of) {
  const auto held = [](std::uint64_t bytes, std::uint32_t halves) {
    L2Model l2(1U << 20U, halves, 128, 32);
    l2.fill(bytes);
    constexpr std::uint64_t lines = 1U << 16U;
    std::uint64_t found = 0;
    for (std::uint64_t line = 0; line < lines; ++line) {
      const auto traffic = l2.access(0, line * 64 + 5, all_four, AccessKind::load);
      found += traffic.dram_read == 0 ? 1 : 0;
    }
    return static_cast<double>(found) / lines;
  };
  EXPECT_EQ(held(1U << 20U, 1), 1);
  // h = exp(-(1 - h) x)
  EXPECT_NEAR(held(3U << 19U, 1), 0.417, 0.01);
  EXPECT_NEAR(held(1U << 21U, 1), 0.203, 0.01);
  EXPECT_NEAR(held(1U << 20U, 2), 0.417, 0.01) << "half of the lines are there twice";
  EXPECT_EQ(held(~std::uint64_t{0}, 1), 0);
}

TEST(L2Model, an_atomic_misses_at_its_home_half_alone) {
  const std::uint64_t line = 12345;
  const std::uint32_t home = home_of(line);
  L2Model at_home(1U << 20U, 2, 128, 32);
  EXPECT_EQ(at_home.access(home, line, 1, AccessKind::atomic).hits, 0U);
  L2Model from_far(1U << 20U, 2, 128, 32);
  EXPECT_EQ(from_far.access(1 - home, line, 1, AccessKind::atomic).hits, 1U);
}

TEST(TranslationVerdict, streaming_speaks_for_the_iommu_alone) {
  const PageSplit split = split_pages(reading(4096, 4096, 1), 4, 4096);
  EXPECT_EQ(split.returns, 0U);
  EXPECT_EQ(judge_translation(split).architecture, Translation::centralised);
}

TEST(TranslationVerdict, coming_back_to_pages_of_ones_own_speaks_for_gmmus) {
  // Each GPU's 4096 blocks go four times over 1024 pages of its own: twice what a TLB holds.
  AccessRuns runs = reading(16384, 0, 1);
  for (locality::Run& run : runs.runs)
    run.address += (std::uint64_t{run.block} / 4096 * 1024 + run.block % 1024) * 4096;
  const PageSplit split = split_pages(runs, 4, 4096);
  EXPECT_EQ(split.first_touches, 4096U);
  EXPECT_EQ(split.local_returns, 3U * 4096);
  EXPECT_EQ(judge_translation(split).architecture, Translation::distributed);
  // With pages of 64 KiB a TLB holds them all.
  EXPECT_EQ(judge_translation(split_pages(runs, 4, 65536)).architecture, Translation::centralised);
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

TEST(SplitPages, a_page_lies_where_it_is_touched_most) {
  // For one page the first block reads a line once, the second one three times.
  AccessRuns runs = reading(2, 0, 3);
  runs.runs.erase(runs.runs.begin(), runs.runs.begin() + 2);
  const PageSplit split = split_pages(runs, 2, 4096);
  EXPECT_EQ(split.pages_by_sharers, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(split.shared_access_share, 1);
  EXPECT_EQ(split.remote_access_share, 0.25);
  EXPECT_EQ(split.first_pages, (std::vector<std::uint64_t>{0x10000}));
  EXPECT_EQ(split.accesses, (std::vector<std::vector<std::uint64_t>>{{32}, {96}}));
}

TEST(SplitPages, no_more_pages_are_listed_than_asked_for) {
  const PageSplit split = split_pages(reading(8, 4096, 1), 2, 4096, 3);
  EXPECT_EQ(split.pages, 8U);
  EXPECT_EQ(split.first_pages.size(), 3U);
  EXPECT_EQ(split.accesses[0].size(), 3U);
}

TEST(Predict, as_many_blocks_run_at_a_time_as_threads_and_shared_memory_leave_room_for) {
  gpu::Device device = small_device();
  device.sm.blocks = 4;
  device.sm.threads = 96;
  const auto blocks = [&device](std::uint32_t shared) {
    return predict_caches(reading(64, 128, 1), device, {.shared_bytes_per_block = shared})
        .blocks_per_sm;
  };
  EXPECT_EQ(blocks(0), 3U);
  device.sm.threads = 1024;
  EXPECT_EQ(blocks(0), 4U);
  device.sm.shared_bytes = 10'000;
  device.sm.shared_reserved_bytes = 1000;
  EXPECT_EQ(blocks(4000), 2U);
  EXPECT_EQ(blocks(20'000), 1U) << "it runs all the same";
}

// A card describes its slices in the map of its addresses, if at all.
TEST(Predict, the_l2_is_as_wide_as_the_slices_found_and_no_limit_where_none_are_known) {
  const AccessRuns runs = reading(100'000, 128, 1);
  const std::vector<RepeatedKernel> kernels{{&runs, 0, 1}};
  const Sensitivity described = predict_repeated(kernels, small_device());
  gpu::Device card = small_device();
  card.l2.slices = 1;
  const Sensitivity unknown = predict_repeated(kernels, card);
  EXPECT_EQ(unknown.l2_demand_share, 0);
  EXPECT_EQ(unknown.time_s, described.time_s) << "here the SMs wait for DRAM";
  card.address_map.emplace();
  card.address_map->slices = 16;
  const Sensitivity probed = predict_repeated(kernels, card);
  EXPECT_EQ(probed.time_s, described.time_s);
  EXPECT_EQ(probed.l2_demand_share, described.l2_demand_share);
  EXPECT_GT(probed.l2_demand_share, 0);
}

// What an L1 keeps that the description does not tell of is that of such a card.
TEST(Predict, an_l1_without_a_size_has_that_of_its_compute_capability) {
  AccessRuns runs;  // one block goes twice over each of several lengths
  runs.block = {32, 1, 1};
  runs.accesses.resize(1);
  for (const std::uint32_t kib : {60U, 112U, 160U, 224U, 320U}) {
    for (std::uint32_t step = 0; step < 2 * kib; step += 4) {  // 32 lines of a warp each time
      const auto number = static_cast<std::uint32_t>(runs.runs.size());
      runs.runs.push_back({.address = (std::uint64_t{kib} << 20U) + (step % kib << 10U),
                           .stride = 128,
                           .count = 32,
                           .request = number,
                           .step = number});
    }
  }
  gpu::Device device = small_device();
  const auto rate = [&](gpu::ComputeCapability capability, std::uint64_t kib) {
    device.compute_capability = capability;
    device.l1.size_bytes = kib << 10U;
    return predict_caches(runs, device).l1_hit_rate;
  };
  std::map<std::uint64_t, double> of_size;
  for (const std::uint64_t kib : {48U, 64U, 96U, 128U, 192U, 256U, 384U, 512U})
    of_size[kib] = rate({}, kib);
  EXPECT_NE(of_size[96], of_size[128]);
  EXPECT_NE(of_size[192], of_size[256]);
  const std::vector<std::pair<gpu::ComputeCapability, std::uint64_t>> sizes{
      {{7, 5}, 96}, {{8, 0}, 192}, {{9, 0}, 256}, {{10, 0}, 256}, {{8, 6}, 128}, {{12, 0}, 128}};
  for (const auto& [capability, kib] : sizes) {
    EXPECT_EQ(rate(capability, 0), of_size[kib]) << kib;
    EXPECT_NE(of_size[kib], of_size[kib / 2]) << kib;
    EXPECT_NE(of_size[kib], of_size[kib * 2]) << kib;
  }
}

TEST(Predict, what_shared_memory_takes_is_not_left_for_the_l1) {
  AccessRuns runs = reading(1, 0, 1);
  runs.runs.clear();
  for (std::uint32_t line = 0; line < 2 * 96; ++line)  // 12 KiB, twice
    runs.runs.push_back({.address = std::uint64_t{line % 96} * 128,
                         .stride = 4,
                         .count = 32,
                         .request = line,
                         .step = line});
  gpu::Device device = small_device();
  device.sm.shared_bytes = 30'000;
  device.sm.blocks = 1;
  const auto rate = [&](std::uint32_t shared) {
    return predict_caches(runs, device, {.shared_bytes_per_block = shared}).l1_hit_rate;
  };
  EXPECT_EQ(rate(20'000), 0.5);
  EXPECT_EQ(rate(21'000), 0);
  EXPECT_EQ(rate(40'000), 0);
  device.sm.shared_bytes = 32'768;
  EXPECT_EQ(rate(21'000), 0.5) << "as large as the L1: a memory of its own";
}

// For two kernels: one that always hits and one that always misses.
TEST(Predict, rates_of_several_kernels_are_over_all_of_their_sectors) {
  gpu::Device device = small_device();
  const AccessRuns again = reading(64, 0, 4);
  AccessRuns stream = reading(16384, 128, 1);
  for (locality::Run& run : stream.runs) run.address += 1U << 30U;
  const std::vector<RepeatedKernel> both{{&again, 0, 3}, {&stream, 0, 1}};
  const CachePrediction all = predict_repeated(both, device).whole;
  const std::vector<RepeatedKernel> one{{&stream, 0, 1}};
  const CachePrediction streamed = predict_repeated(one, device).whole;
  EXPECT_EQ(streamed.l2_read_sectors, 16384U * 4);
  EXPECT_EQ(all.l1_sectors, 16384U * 4 + 3 * 64 * 4 * 4);
  const double l1_hits = all.l1_hit_rate * static_cast<double>(all.l1_sectors);
  EXPECT_NEAR(l1_hits, 3 * (64 * 4 - 2) * 4, 1e-6) << "each SM misses its line once a launch";
  EXPECT_EQ(all.l2_sectors, 16384U * 4 + 3 * 2 * 4);
  EXPECT_EQ(all.l2_read_sectors, all.l2_sectors);
  EXPECT_DOUBLE_EQ(all.l2_read_hit_rate, all.l2_hit_rate);
  EXPECT_NEAR(all.l2_read_hit_rate * static_cast<double>(all.l2_read_sectors), 3 * 4, 1e-6)
      << "what the first SM misses the second finds";
  EXPECT_EQ(all.sms, 2U);
  EXPECT_GT(all.dram_read_bytes, streamed.dram_read_bytes);
}

TEST(Predict, the_most_requests_are_those_of_all_kernels_together) {
  const AccessRuns runs = reading(64, 128, 1);
  const std::vector<RepeatedKernel> kernels{{&runs, 0, 1}, {&runs, 0, 1}};
  const auto complete = [&](std::uint64_t most) {
    return predict_repeated(kernels, small_device(), {.max_requests = most}).whole;
  };
  EXPECT_TRUE(complete(129).complete);
  EXPECT_FALSE(complete(64).complete);
  EXPECT_EQ(complete(64).l1_sectors, 64U * 4) << "the second was not begun";
  EXPECT_FALSE(complete(100).complete);
  EXPECT_GT(complete(100).l1_sectors, 64U * 4);
}

}  // namespace
}  // namespace demarc::locality
