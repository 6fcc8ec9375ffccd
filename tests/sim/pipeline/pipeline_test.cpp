// Tests where the hardware pipeline runs blocks under masks, priorities and task slots.
#include "demarc/sim/pipeline/pipeline.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "demarc/sim/pipeline/scenario.hpp"
#include "sms.hpp"

namespace demarc::sim {
namespace {

using test::sm_list;

PipelineSpec small_card() {
  PipelineSpec spec;
  spec.topology = gpu::regular_topology(2, 2, 2);
  spec.sm.threads = 2048;
  spec.sm.blocks = 4;
  spec.sm.shared_bytes = 65536;
  return spec;
}

PipelineKernel kernel(std::string name, std::uint32_t stream, std::uint64_t blocks,
                      Nanoseconds block_time) {
  PipelineKernel k;
  k.name = std::move(name);
  k.stream = stream;
  k.blocks = blocks;
  k.threads = 1024;
  k.block_time = block_time;
  return k;
}

TEST(Pipeline, blocks_spread_over_tpcs_before_they_share_one) {
  const auto run = run_pipeline(small_card(), {kernel("a", 0, 4, 10_ns)}, true).value();
  EXPECT_EQ(sms_of_kernel(run, KernelIndex(0)), sm_list({0, 2, 4, 6}));
}

TEST(Pipeline, kernels_that_no_sm_can_run_are_refused_and_those_that_just_fit_are_not) {
  PipelineSpec spec = small_card();
  spec.sm.registers = 65536;
  const auto said = [&](auto change) {
    PipelineKernel one = kernel("k", 0, 1, 10_ns);
    change(one);
    const auto run = run_pipeline(spec, {one}, false);
    return run ? std::string() : run.error().message;
  };
  const auto expect = [&](auto right, auto wrong, const std::string& message) {
    EXPECT_EQ(said(right), "") << message;
    EXPECT_EQ(said(wrong).substr(0, message.size()), message);
  };
  using Kernel = PipelineKernel;
  expect([](Kernel& k) { k.blocks = 1; }, [](Kernel& k) { k.blocks = 0; },
         "kernel 'k': blocks and the duration of a block must be above 0");
  expect([](Kernel& k) { k.block_time = 1_ns; }, [](Kernel& k) { k.block_time = 0_ns; },
         "kernel 'k': blocks and the duration of a block must be above 0");
  expect([](Kernel& k) { k.threads = 1; }, [](Kernel& k) { k.threads = 0; },
         "kernel 'k': 0 threads per block; the device allows 1 to 1024");
  expect([](Kernel& k) { k.threads = 1024; }, [](Kernel& k) { k.threads = 1025; },
         "kernel 'k': 1025 threads per block; the device allows 1 to 1024");
  expect([](Kernel& k) { k.shared_bytes = 65536; }, [](Kernel& k) { k.shared_bytes = 65537; },
         "kernel 'k': a block takes 1024 threads, ");
  expect([](Kernel& k) { k.registers_per_thread = 64; },
         [](Kernel& k) { k.registers_per_thread = 72; },
         "kernel 'k': a block takes 1024 threads, ");
  expect([](Kernel& k) { k.tpcs = TpcMask().set(3); }, [](Kernel& k) { k.tpcs = TpcMask().set(4); },
         "kernel 'k': its mask enables none of the 4 TPCs");
}

TEST(Pipeline, a_higher_priority_goes_first_from_the_next_free_room_on) {
  auto low = kernel("low", 0, 32, 10_ns);
  auto high = kernel("high", 1, 16, 10_ns);
  high.arrival = 1_ns;
  high.priority = 5;
  const auto run = run_pipeline(small_card(), {low, high}, false).value();
  EXPECT_EQ(run.kernels[KernelIndex(1)].started, 10_ns);
  EXPECT_EQ(run.kernels[KernelIndex(1)].ended, 20_ns);
  EXPECT_EQ(run.kernels[KernelIndex(0)].ended, 30_ns);
}

TEST(Pipeline, a_block_that_does_not_fit_holds_its_tpcs_for_itself) {
  auto small = kernel("small", 0, 8, 10_ns);  // one block of 1024 threads on every SM
  auto large = kernel("large", 1, 1, 10_ns);
  large.shared_bytes = 65536;
  small.shared_bytes = 1024;
  auto late = kernel("late", 2, 1, 10_ns);
  const auto run = run_pipeline(small_card(), {small, large, late}, false).value();
  EXPECT_EQ(run.kernels[KernelIndex(1)].started, 10_ns);
  EXPECT_EQ(run.kernels[KernelIndex(2)].started, 10_ns)
      << "overtook the large block on a TPC it may use";
}

TEST(Pipeline, a_task_further_down_runs_where_the_head_may_not) {
  auto head = kernel("head", 0, 100, 10_ns);
  head.tpcs = TpcMask(0b0011);
  auto other = kernel("other", 1, 8, 10_ns);
  const auto run = run_pipeline(small_card(), {head, other}, true).value();
  EXPECT_EQ(run.kernels[KernelIndex(1)].started, 0_ns);
  EXPECT_EQ(sms_of_kernel(run, KernelIndex(1)), sm_list({4, 5, 6, 7}));
}

TEST(Pipeline, a_shared_hardware_queue_makes_streams_wait_for_each_other) {
  PipelineSpec spec = small_card();
  spec.hardware_queues = 1;
  // a2 waits for a1 and blocks the queue for b1, which could run.
  const PipelineKernels kernels = {kernel("a1", 0, 1, 50_ns), kernel("a2", 0, 1, 50_ns),
                                   kernel("b1", 1, 1, 50_ns)};
  EXPECT_EQ(run_pipeline(spec, kernels, false)->kernels[KernelIndex(2)].started, 50_ns);
  spec.hardware_queues = 2;
  EXPECT_EQ(run_pipeline(spec, kernels, false)->kernels[KernelIndex(2)].started, 0_ns);
}

TEST(Pipeline, a_launched_task_keeps_its_slot_until_its_last_block_completes) {
  PipelineSpec spec = small_card();
  spec.task_slots = 1;
  const auto run =
      run_pipeline(spec, {kernel("a", 0, 1, 50_ns), kernel("b", 1, 1, 50_ns)}, false).value();
  EXPECT_EQ(run.kernels[KernelIndex(1)].started, 50_ns);
}

TEST(Pipeline, errors_name_the_kernel_that_would_hang_the_card) {
  auto k = kernel("k7", 0, 1, 1_ns);
  k.tpcs = TpcMask(0b10000);
  const auto run = run_pipeline(small_card(), {k}, false);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message,
            "kernel 'k7': its mask enables none of the 4 TPCs: the launch would hang for ever");
  k = kernel("k8", 0, 1, 1_ns);
  k.shared_bytes = 65537;
  EXPECT_NE(run_pipeline(small_card(), {k}, false).error().message.find("kernel 'k8': a block"),
            std::string::npos);
}

TEST(Scenario, errors_name_file_and_key) {
  const auto wrong = parse_scenario(R"({"schema": "demarc.scenario/1", "device": "gtx1060-3gb",
      "streams": [{"name": "A", "tpcs": "0-9"}], "kernels": []})",
                                    "s.json");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("s.json: streams[0].tpcs"), std::string::npos)
      << wrong.error().message;
  const auto unknown = parse_scenario(R"({"schema": "demarc.scenario/1", "device": "gtx1060-3gb",
      "streams": [{"name": "A"}], "kernels": [{"name": "k", "stream": "B", "blocks": 1,
      "threads": 32, "block_us": 1}]})",
                                      "s.json");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "s.json: kernels[0].stream: 'B' is not one of the streams: A");
}

// Any launches: nothing outside its mask, no SM beyond its limits at any time, all blocks run, and
// streams keep their order.
RC_GTEST_PROP(Pipeline, random_launches_respect_masks_limits_and_streams, ()) {
  PipelineSpec spec = small_card();
  spec.task_slots = *rc::gen::inRange(1U, 5U);
  spec.hardware_queues = *rc::gen::inRange(1U, 4U);
  const auto count = *rc::gen::inRange<std::size_t>(1, 20);
  PipelineKernels kernels;
  Nanoseconds arrival;
  for (std::size_t i = 0; i < count; ++i) {
    PipelineKernel k = kernel("k", *rc::gen::inRange(0U, 6U), *rc::gen::inRange(1ULL, 40ULL),
                              Nanoseconds(*rc::gen::inRange(1ULL, 50ULL)));
    arrival += Nanoseconds(*rc::gen::inRange(0ULL, 30ULL));
    k.arrival = arrival;
    k.threads = *rc::gen::inRange(1U, 1025U);
    k.shared_bytes = *rc::gen::inRange(0U, 65537U);
    k.priority = *rc::gen::inRange(0, 3);
    k.tpcs = TpcMask(*rc::gen::inRange(1ULL, 16ULL));
    kernels.push_back(k);
  }
  const auto result = run_pipeline(spec, kernels, true);
  RC_ASSERT(static_cast<bool>(result));
  PerIndex<KernelIndex, std::uint64_t> ran(count);
  std::map<SmIndex, std::map<Nanoseconds, std::int64_t>> threads, shared;
  for (const BlockRun& run : result->runs) {
    ran[run.kernel] += run.blocks;
    RC_ASSERT(kernels[run.kernel].tpcs.test(run.sm.raw() / 2));
    const std::int64_t warps = (kernels[run.kernel].threads + 31) / 32 * std::int64_t{run.blocks};
    const std::int64_t bytes = std::int64_t{kernels[run.kernel].shared_bytes} * run.blocks;
    threads[run.sm][run.start] += warps;
    threads[run.sm][run.end] -= warps;
    shared[run.sm][run.start] += bytes;
    shared[run.sm][run.end] -= bytes;
  }
  for (const KernelIndex k : kernels.keys()) {
    RC_ASSERT(ran[k] == kernels[k].blocks);
    RC_ASSERT(result->kernels[k].started >= kernels[k].arrival);
    for (const KernelIndex j : indices<KernelIndex>(k.raw())) {
      if (kernels[j].stream != kernels[k].stream) continue;
      RC_ASSERT(result->kernels[k].started >= result->kernels[j].ended);
    }
  }
  for (const auto& [sm, changes] : threads) {
    std::int64_t in_use = 0;
    for (const auto& [time, change] : changes) RC_ASSERT((in_use += change) <= 64);
  }
  for (const auto& [sm, changes] : shared) {
    std::int64_t in_use = 0;
    for (const auto& [time, change] : changes) RC_ASSERT((in_use += change) <= 65536);
  }
}

}  // namespace
}  // namespace demarc::sim
