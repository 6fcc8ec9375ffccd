// Tests to the cycle how long loads and stores take on a small memory system.
#include <gtest/gtest.h>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

// A launch that is not finished after `cycles - 1` cycles and is after `cycles`.
void expect_takes(const Spec& spec, std::shared_ptr<Source> source, std::uint64_t number) {
  const Cycles cycles(number);
  Simulation gpu(spec);
  const auto client = gpu.add_client({"test", sms({0}), std::move(source), {}});
  ASSERT_TRUE(gpu.run_for(cycles - 1_cycles));
  EXPECT_TRUE(gpu.statistics(client).run_cycles.empty()) << gpu.statistics(client).run_cycles[0];
  ASSERT_TRUE(gpu.run_for(cycles - gpu.now()));
  ASSERT_EQ(gpu.statistics(client).run_cycles.size(), 1U);
  EXPECT_EQ(gpu.statistics(client).run_cycles[0], cycles);
}

TEST(ExactCycles, an_l2_hit_takes_the_sum_of_its_way) {
  const Spec spec = small_memory();
  EXPECT_EQ(spec.l2_hit_latency(), Cycles(hit));
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(0));
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}}), Times{hit});
}

TEST(ExactCycles, an_l2_miss_adds_controller_row_column_and_burst) {
  const Spec spec = small_memory();
  EXPECT_EQ(spec.dram_latency(), Cycles(miss));
  Simulation gpu(spec);
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}}), Times{miss});
}

TEST(ExactCycles, the_cycle_before_a_load_is_not_ready) {
  expect_takes(small_memory(), launch_of({{{access(StepKind::load, {0x1})}}}), miss);
}

TEST(ExactCycles, another_sector_of_a_line_under_way_uses_the_same_register_and_its_row) {
  Spec spec = small_memory();
  spec.miss_registers = 1;
  Simulation gpu(spec);
  // The second burst follows the first on the bus.
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 5, .sm = 1, .address = 32}}),
            (Times{miss, miss + 2}));
}

TEST(ExactCycles, a_miss_under_a_miss_waits_for_the_same_data) {
  Simulation gpu(small_memory());
  // Both are answered by one fill; the port sends one sector a cycle.
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 5, .sm = 1, .address = 4}}),
            (Times{miss, miss + 1}));
  EXPECT_EQ(gpu.dram().read_sectors, 1U);
}

TEST(ExactCycles, a_hit_passes_a_miss_that_is_under_way) {
  Simulation gpu(small_memory());
  gpu.touch(PhysicalAddress(other_set));
  EXPECT_EQ(
      arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 5, .sm = 1, .address = other_set}}),
      (Times{miss, 5 + hit}));
}

TEST(ExactCycles, with_all_registers_taken_a_miss_starts_when_one_is_free) {
  for (const std::uint32_t registers : {1U, 2U}) {
    Spec spec = small_memory();
    spec.miss_registers = registers;
    Simulation gpu(spec);
    const auto times = arrivals(gpu, {{.at = 0, .sm = 0, .address = 0},
                                      {.at = 0, .sm = 1, .address = other_bank | other_set}});
    // Lookups at 12 and 13. Free register: the second burst ends two cycles after the first.
    // None: it starts its row when the data of the first is there, at cycle 55.
    EXPECT_EQ(times[0], miss);
    EXPECT_EQ(times[1], registers == 1 ? 55 + 9 + 11 + 2 + 20 + 18 : miss + 2) << registers;
  }
}

TEST(ExactCycles, with_all_registers_taken_a_read_past_the_cache_starts_when_one_is_free) {
  Spec spec = small_memory();
  spec.miss_registers = 1;
  Simulation gpu(spec);
  const std::array<Request, 2> two{
      Request{.sm = SmIndex(0), .address = PhysicalAddress(0)},
      Request{.sm = SmIndex(1), .address = PhysicalAddress(other_bank), .cached = false}};
  EXPECT_EQ(gpu.timed(two).value()[1].first.raw(), 55 + 9 + 11 + 2 + 20 + 18U);
}

// With all registers taken for reads past the cache, one waits and a load through it does not.
TEST(ExactCycles, registers_for_reads_past_the_cache_are_a_part_of_all) {
  for (const std::uint32_t registers : {0U, 1U}) {
    Spec spec = small_memory();
    spec.miss_registers = 3;
    spec.uncached_registers = registers;
    Simulation gpu(spec);
    const auto times = [&](bool cached) {
      const std::array<Request, 2> pair{
          Request{.sm = SmIndex(0), .address = PhysicalAddress(0), .cached = false},
          Request{.sm = SmIndex(1), .address = PhysicalAddress(other_bank), .cached = cached}};
      const auto done = gpu.timed(pair).value();
      return Times{done[0].first.raw(), done[1].first.raw()};
    };
    // With one, the second begins when the data of the first is there, at cycle 55; afterwards both
    // rows are open, which saves 9 cycles.
    const bool waits = registers == 1;
    EXPECT_EQ(times(false), (Times{miss, waits ? 55 + 9 + 11 + 2 + 20 + 18 : miss + 2}));
    EXPECT_EQ(times(false), (Times{miss - 9, waits ? 46 + 11 + 2 + 20 + 18 : miss - 9 + 2}));
    EXPECT_EQ(times(true), (Times{miss - 9, miss - 9 + 2})) << registers;
  }
}

// The second read past the cache waits for the register of the first; the load behind it does not.
TEST(ExactCycles, a_load_does_not_wait_for_a_read_past_the_cache_that_lacks_a_register) {
  Spec spec = small_memory();
  spec.miss_registers = 3;
  spec.uncached_registers = 1;
  Simulation gpu(spec);
  const auto past = [](std::uint32_t sm, std::uint64_t address) {
    return Request{.sm = SmIndex(sm), .address = PhysicalAddress(address), .cached = false};
  };
  const Request load{.at = Cycles(8), .sm = SmIndex(2), .address = PhysicalAddress(other_set)};
  const auto done = gpu.timed(std::array{past(0, 0), past(1, other_bank), load}).value();
  EXPECT_EQ(done[0].first.raw(), miss);
  EXPECT_EQ(done[1].first.raw(), 55 + 9 + 11 + 2 + 20 + 18U);
  Simulation without(spec);
  EXPECT_EQ(done[2].first, without.timed(std::array{past(0, 0), load}).value()[1].first);
}

// Both registers are taken when the reads past the cache come. The first of these gets the one that
// is free first, and the second waits for it.
TEST(ExactCycles, a_read_past_the_cache_that_waited_for_any_register_waits_for_one_of_its_kind) {
  Spec spec = small_memory();
  spec.miss_registers = 2;
  spec.uncached_registers = 1;
  Simulation gpu(spec);
  const std::array<Request, 5> five{
      Request{.sm = SmIndex(0), .address = PhysicalAddress(0)},
      Request{.sm = SmIndex(1), .address = PhysicalAddress(other_bank | other_set)},
      Request{.at = Cycles(3), .sm = SmIndex(0), .address = PhysicalAddress(0), .cached = false},
      Request{.at = Cycles(5), .sm = SmIndex(1), .address = PhysicalAddress(0), .cached = false},
      Request{.at = Cycles(7), .sm = SmIndex(2), .address = PhysicalAddress(0x200)}};
  const auto done = gpu.timed(five).value();
  EXPECT_LT(done[2].first, done[3].first);
  EXPECT_LT(done[4].first, done[3].first);
}

TEST(ExactCycles, with_all_registers_taken_a_hit_is_not_held_up) {
  Spec spec = small_memory();
  spec.miss_registers = 1;
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(other_set));
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0},
                           {.at = 0, .sm = 1, .address = other_bank},
                           {.at = 9, .sm = 2, .address = other_set}})[2],
            9 + hit);
}

TEST(ExactCycles, an_open_row_saves_the_activation) {
  Simulation gpu(small_memory());
  EXPECT_EQ(
      arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 200, .sm = 0, .address = 0x200}}),
      (Times{miss, 200 + miss - 9}));
  EXPECT_EQ(gpu.dram().activations, 1U);
}

TEST(ExactCycles, another_row_of_the_bank_adds_the_precharge) {
  Simulation gpu(small_memory());
  EXPECT_EQ(
      arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 200, .sm = 0, .address = other_row}}),
      (Times{miss, 200 + miss + 7}));
}

TEST(ExactCycles, two_rows_of_a_bank_are_a_row_cycle_apart) {
  Simulation gpu(small_memory());
  // Activations at 12 and 12 + 40.
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0},
                           {.at = 0, .sm = 1, .address = other_row | other_set}}),
            (Times{miss, miss + 40}));
}

TEST(ExactCycles, a_row_left_alone_is_closed) {
  Spec spec = small_memory();
  spec.row_idle_cycles = 100_cycles;
  Simulation gpu(spec);
  EXPECT_EQ(
      arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 500, .sm = 0, .address = other_row}}),
      (Times{miss, 500 + miss}));
}

TEST(ExactCycles, one_sm_sends_one_request_a_cycle) {
  Simulation gpu(small_memory());
  gpu.touch(PhysicalAddress(0));
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 0, .sm = 0, .address = 0}}),
            (Times{hit, hit + 1}));
}

TEST(ExactCycles, a_port_serves_one_sm_after_the_other) {
  Simulation gpu(small_memory());
  gpu.touch(PhysicalAddress(0));
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 0, .sm = 2, .address = 0}}),
            (Times{hit, hit + 1}));
}

TEST(ExactCycles, ports_of_two_slices_serve_at_the_same_time_unless_they_are_one) {
  for (const bool shared : {false, true}) {
    Spec spec = small_memory();
    spec.address.module.rows = {0x4000};
    spec.slices = 2;
    spec.ports = 2;
    spec.port_of_slice = PerIndex<SliceIndex, std::uint32_t>{0, shared ? 0U : 1U};
    Simulation gpu(spec);
    gpu.touch(PhysicalAddress(0));
    gpu.touch(PhysicalAddress(0x4000));
    EXPECT_EQ(
        arrivals(gpu, {{.at = 0, .sm = 0, .address = 0}, {.at = 0, .sm = 1, .address = 0x4000}}),
        (Times{hit, shared ? hit + 1 : hit}));
  }
}

TEST(ExactCycles, sms_of_one_gpc_share_its_link) {
  Spec spec = small_memory();
  spec.gpc_ticks = Ticks(512);  // two cycles a sector
  spec.address.module.rows = {0x4000};
  spec.slices = 2;
  spec.ports = 2;
  spec.port_of_slice = PerIndex<SliceIndex, std::uint32_t>{0, 1};
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(0));
  gpu.touch(PhysicalAddress(0x4000));
  for (const std::uint32_t other : {1U, 2U}) {  // 1: the same GPC, 2: another
    EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0},
                             {.at = 0, .sm = other, .address = 0x4000}}),
              (Times{hit + 4, other == 1 ? hit + 6 : hit + 4}));
  }
}

TEST(ExactCycles, distance_is_added_on_the_way) {
  Spec spec = small_memory();
  spec.distances = {0, 13, 0, 0};
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(0));
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 1, .address = 0}}), Times{hit + 13});
}

TEST(ExactCycles, an_l1_hit_takes_its_own_time) {
  // The second load waits for the first, starts one cycle after nothing, and hits.
  expect_takes(small_memory(),
               launch_of({{{access(StepKind::load, {0x1}), access(StepKind::load, {0x1}, true)}}}),
               miss + 6);
}

TEST(ExactCycles, a_load_of_two_lines_takes_two_cycles_of_the_unit) {
  // Lines of two banks: the second leaves a cycle later and its burst follows the first.
  expect_takes(small_memory(), launch_of({{{access(StepKind::load, {0x1, other_bank | 1})}}}),
               miss + 2);
}

TEST(ExactCycles, instructions_of_a_warp_are_dependent) {
  Step work;
  work.kind = StepKind::work;
  work.instructions = 5;
  expect_takes(small_memory(), launch_of({{{work}}}), 20);
}

TEST(ExactCycles, warps_of_an_sm_share_its_issue_slots) {
  Step work;
  work.kind = StepKind::work;
  work.instructions = 100;
  // Four warps of 100 instructions, one a cycle: 400 cycles; two: bound by dependence, 400 too.
  expect_takes(small_memory(), launch_of({{{work}, {work}, {work}, {work}}}), 400);
  expect_takes(small_memory(), launch_of({{{work}, {work}}}), 400);
}

TEST(ExactCycles, a_barrier_holds_until_the_last_warp) {
  Step work;
  work.kind = StepKind::work;
  work.instructions = 10;
  const Step barrier = access(StepKind::barrier, {});
  // The second warp arrives at 40; both go on one cycle later.
  expect_takes(small_memory(), launch_of({{{barrier, work}, {work, barrier}}}), 41 + 40);
}

TEST(ExactCycles, a_full_l1_holds_the_next_load_until_data_is_there) {
  Spec spec = small_memory();
  spec.l1_miss_registers = 1;
  // The second line leaves when the first has arrived, at 71, finds its bank closed and its
  // register free.
  expect_takes(spec, launch_of({{{access(StepKind::load, {0x1, other_bank | 1})}}}), 2 * miss);
}

TEST(ExactCycles, writes_waiting_are_drained_after_one_turn_of_the_bus) {
  Spec spec = small_memory();
  spec.write_high = 2;
  spec.write_low = 0;
  Simulation gpu(spec);
  // Two dirty lines of set 0, evicted by two loads: two writes wait, so the bus turns.
  const auto store = [](std::uint64_t address) {
    return Asked{.at = 0, .sm = 0, .address = address, .kind = StepKind::store};
  };
  arrivals(gpu, {store(0)});
  arrivals(gpu, {store(0x100)});
  EXPECT_EQ(gpu.dram().write_sectors, 0U);
  arrivals(gpu, {{.at = 0, .sm = 0, .address = 0x200}, {.at = 0, .sm = 0, .address = 0x300}});
  ASSERT_TRUE(gpu.run_for(1000_cycles));
  EXPECT_EQ(gpu.dram().write_sectors, 2U);
  EXPECT_EQ(gpu.dram().turnarounds, 2U);  // there and back
}

}  // namespace
}  // namespace demarc::sim::memory::test
