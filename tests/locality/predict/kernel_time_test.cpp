// How long a kernel takes by its traffic, with all of a device and with parts of it.
#include "predict/kernel_time.hpp"

#include <gtest/gtest.h>

#include "small_device.hpp"

namespace demarc::locality {
namespace {

using test::reading;
using test::small_device;

// One warp that reads one line; the least time of a kernel is there in any case.
TEST(KernelTime, a_warp_waits_for_the_farthest_memory_that_answers_it) {
  gpu::Device device = small_device();
  device.dram.bandwidth_bytes_per_s = 0;
  device.l2.slices = 1;
  const auto cycles = [&](std::uint32_t times, AccessKind kind = AccessKind::load) {
    AccessRuns runs = reading(1, 0, times);
    runs.accesses[0].kind = kind;
    const Sensitivity result = predict_sensitivity(runs, device);
    const double waits = predict_caches(runs, device).block_wait_cycles;
    // A store keeps its place until the L2 has it, and takes two cycles of the SM's link.
    EXPECT_DOUBLE_EQ(result.time_s, 2e-6 + std::max(waits, waits > 0 ? 0 : 2.) / 1e9);
    return waits;
  };
  EXPECT_DOUBLE_EQ(cycles(1), 650);
  EXPECT_DOUBLE_EQ(cycles(2), 650 + 35);
  EXPECT_DOUBLE_EQ(cycles(1, AccessKind::store), 0);
  device.l1.latency_cycles = 10;
  device.dram.latency_cycles = 1000;
  EXPECT_DOUBLE_EQ(cycles(3), 1000 + 2 * 10);
  AccessRuns passing = reading(1, 0, 2);
  passing.accesses[0].passes_l1 = true;
  EXPECT_DOUBLE_EQ(predict_caches(passing, device).block_wait_cycles, 1000 + 270);
  device.l2.latency_cycles = 200;
  EXPECT_DOUBLE_EQ(predict_caches(passing, device).block_wait_cycles, 1000 + 200);
  EXPECT_DOUBLE_EQ(predict_sensitivity(passing, device).time_s, 2e-6 + 1200 / 1e9);
  AccessRuns two_warps = reading(1, 0, 1);
  two_warps.block = {64, 1, 1};
  two_warps.runs[0].count = 64;
  EXPECT_DOUBLE_EQ(predict_caches(two_warps, device).block_wait_cycles, 1000)
      << "two warps wait at the same time";
  device.sm_clock_hz = 2e9;
  EXPECT_DOUBLE_EQ(predict_sensitivity(passing, device).time_s, 2e-6 + 1200 / 2e9);
  device.sm_clock_hz = 0;
  EXPECT_DOUBLE_EQ(predict_sensitivity(passing, device).time_s, 2e-6 + 1200 / 1e9);
}

TEST(KernelTime, loads_that_nobody_waits_for_are_under_way_with_the_next_that_is_waited_for) {
  AccessRuns runs = reading(1, 4096, 1);
  runs.accesses.resize(3);
  runs.accesses[0].waits = runs.accesses[2].waits = false;
  runs.runs[0].request = 0;
  for (std::uint16_t access = 1; access < 3; ++access) {
    locality::Run run = runs.runs[0];
    run.access = access;
    run.step = access;
    runs.runs.push_back(run);
  }
  // 650 for the line, with which its second read is under way; what is asked for last is awaited.
  EXPECT_DOUBLE_EQ(predict_caches(runs, small_device()).block_wait_cycles, 650 + 35);
}

// 8 blocks to an SM at a time, 16 blocks: each SM is full once, half of the SMs twice.
TEST(KernelTime, half_the_sms_hold_half_the_blocks_at_a_time) {
  gpu::Device device = small_device();
  device.dram.bandwidth_bytes_per_s = 0;
  device.l2.slices = 1;
  device.sm.blocks = 8;
  device.memory_system.emplace().sm_link_bytes = 1e9;
  device.memory_system->block_start_cycles = 350;
  const CachePrediction all = predict_caches(reading(16, 4096, 1), device);
  EXPECT_EQ(all.blocks, 16);
  EXPECT_DOUBLE_EQ(all.load_line_cycles, 16 * 650);
  EXPECT_DOUBLE_EQ(kernel_time(all, device, {1, 1}).all_s, 2e-6 + 1000e-9);
  EXPECT_DOUBLE_EQ(kernel_time(all, device, {0.5, 1}).all_s, 2e-6 + 2000e-9);
  const CachePrediction few = predict_caches(reading(8, 4096, 1), device);
  EXPECT_DOUBLE_EQ(kernel_time(few, device, {0.5, 1}).all_s, 2e-6 + 1000e-9) << "they fit";
}

// Each limit of a memory system decides in turn.
TEST(KernelTime, a_kernel_takes_as_long_as_the_slowest_part_of_its_way) {
  gpu::Device device = small_device();
  device.dram.bandwidth_bytes_per_s = 0;
  device.sm_clock_hz = 1e6;
  gpu::MemorySystem& system = device.memory_system.emplace();
  system.sm_link_bytes = 1e9;
  CachePrediction p;
  p.blocks = 2;
  p.blocks_per_sm = 1;
  p.l2_sectors = 1000;
  p.l2_read_sectors = 600;
  p.l2_atomic_sectors = 100;
  const auto cycles = [&](const CardShare& share) {
    return (kernel_time(p, device, share).all_s - 2e-6) * 1e6;
  };
  system.port_bytes = 1;
  EXPECT_NEAR(cycles({1, 1}), 600 * 32 / 16., 1e-6) << "what comes out of 16 slices";
  EXPECT_NEAR(cycles({1, 0.5}), 600 * 32 / 8., 1e-6);
  EXPECT_NEAR(cycles({0.5, 1}), 600 * 32 / 16., 1e-6);
  system.port_write_bytes = 0.25;
  EXPECT_NEAR(cycles({1, 1}), 400 * 32 / 0.25 / 16, 1e-6) << "what goes in";
  system.port_atomic_bytes = 0.125;
  EXPECT_NEAR(cycles({1, 1}), (300 * 32 / 0.25 + 100 * 32 / 0.125) / 16, 1e-6);
  system.port.rows = {1, 2};
  device.dram.stacks = 2;
  EXPECT_NEAR(cycles({1, 1}), (300 * 32 / 0.25 + 100 * 32 / 0.125) / 8, 1e-6) << "4 ports twice";
  system.port_bytes = system.port_write_bytes = system.port_atomic_bytes = 1e9;
  system.sm_link_bytes = 8;
  EXPECT_NEAR(cycles({1, 1}), 600 * 32 / 8. / 2, 1e-6) << "links of two SMs";
  EXPECT_NEAR(cycles({0.5, 1}), 600 * 32 / 8., 1e-6);
  system.gpc_link_bytes = 12;
  EXPECT_NEAR(cycles({1, 1}), 600 * 32 / 12., 1e-6) << "the link of one GPC";
  system.sm_store_bytes = 2;
  EXPECT_NEAR(cycles({1, 1}), 400 * 32 / 4., 1e-6) << "what carries data out";
  system.gpc_atomic_bytes = 3;
  EXPECT_NEAR(cycles({1, 1}), 300 * 32 / 4. + 100 * 32 / 3., 1e-6) << "atomics have their own";
  system.gpc_atomic_bytes = 0;
  system.gpc_store_bytes = 3;
  EXPECT_NEAR(cycles({1, 1}), 400 * 32 / 3., 1e-6) << "and else that of stores";
  system.gpc_store_bytes = 1;
  EXPECT_NEAR(cycles({1, 1}), 400 * 32 / 2., 1e-6) << "no less than one SM's";
  system.sm_store_bytes = system.gpc_store_bytes = 0;
  system.sm_link_bytes = system.gpc_link_bytes = 1e9;
  p.load_line_cycles = 512'000;
  EXPECT_NEAR(cycles({1, 1}), 512'000 / 256. / 2, 1e-6) << "lines under way";
  system.l1_miss_registers = 100;
  EXPECT_NEAR(cycles({0.5, 1}), 5120, 1e-6);
  p.store_line_cycles = 512'000;
  system.store_registers = 50;
  EXPECT_NEAR(cycles({1, 1}), 5120, 1e-6);
  p.l1_sectors = 80'000;
  EXPECT_NEAR(cycles({1, 1}), 80'000 * 32 / 128. / 2, 1e-6);
  p.dram_bytes = 1'000'000;
  device.dram.bandwidth_bytes_per_s = 1e7;
  EXPECT_NEAR(cycles({1, 1}), 100'000, 1e-6);
  system.refresh_interval_ns = 4000;
  system.refresh_ns = 800;
  EXPECT_NEAR(cycles({1, 0.5}), 250'000, 1e-6);
}

// What asks for all of the DRAM has half of it; what waits has lost nothing.
TEST(KernelTime, half_the_memory_costs_a_stream_twice_its_time_and_a_few_threads_nothing) {
  const gpu::Device device = small_device();
  AccessRuns stream = reading(200'000, 128, 1);
  stream.accesses[0].waits = false;
  const std::vector<RepeatedKernel> streams{{&stream, 0, 1}};
  gpu::Device slow = device;
  slow.dram.bandwidth_bytes_per_s = 1e9;
  EXPECT_NEAR(predict_repeated(streams, slow).half_memory_slowdown, 2, 0.01);
  EXPECT_DOUBLE_EQ(predict_repeated(streams, slow).half_l2_slowdown, 1);
  const AccessRuns few = reading(2, 4096, 1);
  EXPECT_DOUBLE_EQ(
      predict_repeated(std::vector<RepeatedKernel>{{&few, 0, 1}}, device).half_memory_slowdown, 1);
}

TEST(KernelTime, a_beginning_stands_for_all_blocks_of_its_launch) {
  const AccessRuns first = reading(2048, 128, 1);
  const AccessRuns all = reading(32768, 128, 1);
  const gpu::Device device = small_device();
  const std::vector<RepeatedKernel> beginning{{&first, 0, 1, 32768}};
  const std::vector<RepeatedKernel> whole{{&all, 0, 1, 32768}};
  const Sensitivity part = predict_repeated(beginning, device, {.beginning = true});
  const Sensitivity complete = predict_repeated(whole, device);
  EXPECT_NEAR(part.time_s, complete.time_s, 0.01 * complete.time_s);
  EXPECT_EQ(part.whole.dram_bytes, complete.whole.dram_bytes);
  // So does what max_requests leaves of it.
  const Sensitivity cut = predict_repeated(whole, device, {.max_requests = 4000});
  EXPECT_NEAR(cut.time_s, complete.time_s, 0.01 * complete.time_s);
}

// Loops: the requests left of a block are those of all trips.
TEST(KernelTime, blocks_under_way_count_by_their_requests) {
  AccessRuns runs = reading(1, 0, 1);
  runs.runs[0].loop = loop_index(runs, {.trips = 1000, .steps = 1, .stride = 128});
  const std::vector<RepeatedKernel> kernels{{&runs, 0, 1}};
  const Sensitivity cut = predict_repeated(kernels, small_device(), {.max_requests = 250});
  EXPECT_NEAR(static_cast<double>(cut.whole.l1_sectors), 4000, 20);
}

TEST(KernelTime, a_kernel_takes_as_long_as_the_memory_that_is_busiest) {
  gpu::Device device = small_device();
  device.l1.latency_cycles = device.l2.latency_cycles = device.dram.latency_cycles = 1e-9;
  device.dram.bandwidth_bytes_per_s = 1e6;
  const AccessRuns once = reading(64, 128, 1);
  Sensitivity result = predict_sensitivity(once, device);
  EXPECT_DOUBLE_EQ(result.time_s, 2e-6 + 64 * 128 / 1e6);
  EXPECT_DOUBLE_EQ(result.dram_demand_share, 64 * 128 / 1e6 / result.time_s);
  EXPECT_DOUBLE_EQ(result.dram_demand_bytes_s, 64 * 128 / result.time_s);
  device.dram.bandwidth_bytes_per_s = 0;
  device.l2.slices = 2;
  device.sm_clock_hz = 1e6;
  AccessRuns past_l1 = reading(64, 128, 4);
  past_l1.accesses[0].passes_l1 = true;
  result = predict_sensitivity(past_l1, device);
  const double l2_s = 64 * 4 * 128 / (64 * 1e6 * 2);
  EXPECT_DOUBLE_EQ(result.time_s, 2e-6 + l2_s);
  EXPECT_DOUBLE_EQ(result.l2_demand_share, l2_s / result.time_s);
  EXPECT_EQ(result.dram_demand_share, 0);
  device.l2.slices = 16;
  result = predict_sensitivity(past_l1, device);
  // Each SM's link takes 64 bytes a cycle where the description does not say.
  EXPECT_DOUBLE_EQ(result.time_s, 2e-6 + l2_s);
  EXPECT_DOUBLE_EQ(result.l2_demand_share, l2_s / 8 / result.time_s);
}

}  // namespace
}  // namespace demarc::locality
