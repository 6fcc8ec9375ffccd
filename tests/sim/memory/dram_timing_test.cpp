// Activations of a channel and its refreshes, followed by hand: see small_memory.hpp. A request of
// cycle 0 activates its row at cycle 12.
#include <gtest/gtest.h>

#include "demarc/sim/memory/synthetic.hpp"
#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

TEST(DramTiming, activations_of_two_banks_are_a_gap_apart) {
  Spec spec = small_memory();
  const std::vector<Asked> two{{.sm = 0, .address = 0},
                               {.sm = 1, .address = other_bank | other_set}};
  EXPECT_EQ(arrivals(spec, two), (Times{miss, miss + 2}));  // burst behind burst
  spec.activate_gap_cycles = 30_cycles;
  EXPECT_EQ(arrivals(spec, two), (Times{miss, miss + 30}));
}

TEST(DramTiming, a_fifth_activation_waits_until_the_window_of_the_first_ends) {
  Spec spec = small_memory();
  spec.address.bank.rows = {0x1000, 0x2000, 0x4000};
  spec.banks = 8;
  spec.l2 = {2, 8};
  std::vector<Asked> five;
  for (std::uint32_t i = 0; i < 5; ++i) five.push_back({.sm = i % 4, .address = 0x1000ULL * i});
  EXPECT_EQ(arrivals(spec, five).back(), miss + 8);
  spec.activate_window_cycles = 100_cycles;
  const Times times = arrivals(spec, five);
  EXPECT_EQ(times[3], miss + 6);
  EXPECT_EQ(times[4], miss + 100);
}

TEST(DramTiming, a_refresh_that_is_due_holds_the_channel) {
  Spec spec = small_memory();
  spec.refresh_interval_cycles = 1000_cycles;
  spec.refresh_cycles = 50_cycles;
  // For the second request the row could be activated at 1012: the refresh ends at 1050.
  EXPECT_EQ(arrivals(spec, {{.at = 500, .address = 0}, {.at = 1000, .address = other_bank}}),
            (Times{500 + miss, 1050 + miss - 12}));
}

TEST(DramTiming, a_refresh_closes_the_rows) {
  Spec spec = small_memory();
  const std::vector<Asked> one_row{{.at = 500, .address = 0}, {.at = 1200, .address = 0x200}};
  EXPECT_EQ(arrivals(spec, one_row)[1], 1200 + miss - 9);
  spec.refresh_interval_cycles = 1000_cycles;
  spec.refresh_cycles = 50_cycles;
  EXPECT_EQ(arrivals(spec, one_row)[1], 1200 + miss);
}

Spec with_turns_of(std::uint32_t turn) {
  Spec spec = small_memory();
  spec.l2 = {2, 8};
  spec.turn = turn;
  return spec;
}

// Cycles of 16 loads, one after the other, beside writers without end; of as many lines each, so
// far from the first.
std::uint64_t beside_writers(const Spec& spec, const std::vector<std::uint64_t>& more = {}) {
  Simulation gpu(spec);
  std::vector<Step> loads;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const std::uint64_t line = 0x400000 + (2 * i * other_row);
    Step load = access(StepKind::load, {line | 1}, true);
    for (const std::uint64_t far : more)
      load.lines[load.count++] = LineEntry::from_word((line + far) | 1).value();
    loads.push_back(load);
  }
  const auto reader = gpu.add_client({"reader", sms({0}), launch_of({{loads}}), {}});
  Walk writes;
  writes.kind = StepKind::store;
  writes.blocks = 6;
  writes.threads = 64;
  writes.rounds = 1000;
  writes.instructions = 0;
  gpu.add_client({"writers", sms({1, 2, 3}), walk_source(writes), {}});
  const auto ran = gpu.run_launches(reader, 1, 400'000_cycles);
  EXPECT_TRUE(ran) << ran.error().message;
  return gpu.statistics(reader).run_cycles.at(0).raw();
}

// A write of a line takes eight cycles of the bus; the loads go on while the last ones end.
TEST(DramTiming, a_load_among_writes_waits_for_as_many_as_a_turn_has) {
  const std::uint64_t longer =
      beside_writers(with_turns_of(100)) - beside_writers(with_turns_of(20));
  EXPECT_GE(longer, 16U * 80U * 7U);
  EXPECT_LE(longer, 2U * 16U * 80U * 8U);
}

TEST(DramTiming, a_bank_opens_one_row_in_a_turn) {
  const Spec spec = with_turns_of(100);
  const std::uint64_t alone = beside_writers(spec);
  EXPECT_LE(beside_writers(spec, {other_bank}), alone + 16U * 100U);
  EXPECT_GE(beside_writers(spec, {other_row}), alone + 16U * 100U * 7U);
  EXPECT_LE(beside_writers(spec, {other_row}), alone + 16U * 100U * 10U);
  // The other bank is still at work when the first has closed its row.
  EXPECT_GE(beside_writers(spec, {other_row, other_bank, other_bank + 0x100, other_bank + 0x200}),
            alone + 16U * 100U * 5U);
}

TEST(DramTiming, a_turn_whose_last_row_a_refresh_closes_ends) {
  Spec spec = with_turns_of(100);
  spec.refresh_interval_cycles = 90_cycles;
  spec.refresh_cycles = 1_cycles;
  EXPECT_LE(beside_writers(spec, {other_row, other_row + 0x100}), 100'000U);
}

// Three writes wait, a bank has opened a row for a load, and the fourth comes with a second load
// that needs another row: its turn begins with the fourth.
TEST(DramTiming, a_turn_begins_when_the_other_direction_waits) {
  std::vector<Asked> asked;
  for (std::uint64_t i = 0; i < 6; ++i) {
    asked.push_back(
        {.at = i < 5 ? 20 * i : 510, .address = i * other_row, .kind = StepKind::store});
  }
  asked.push_back({.at = 500, .sm = 1, .address = other_set});
  asked.push_back({.at = 501, .sm = 2, .address = other_set + other_row});
  const Times times = arrivals(small_memory(), asked);
  EXPECT_EQ(times[6], 500 + miss);
  EXPECT_EQ(times[7], 500 + miss + 40);  // a row cycle later
}

// Stores of `lines` lines of one set of two ways: all but two of them go to DRAM, or wait. A load
// that hits lets time pass.
std::uint64_t written_after(std::uint64_t lines) {
  Simulation gpu(small_memory());
  std::vector<Asked> asked;
  for (std::uint64_t i = 0; i < lines; ++i) {
    asked.push_back({.at = 20 * i, .address = i * other_row, .kind = StepKind::store});
  }
  asked.push_back({.at = 5000, .address = asked.back().address});
  (void)arrivals(gpu, asked);
  return gpu.dram().write_sectors;
}

TEST(DramTiming, writes_gather_until_so_many_wait_and_are_drained_together) {
  EXPECT_EQ(written_after(2 + 3), 0);
  EXPECT_EQ(written_after(2 + 4), 4);
}

// Acknowledged without the port and the link of the SM on the way back.
constexpr std::uint64_t stored = hit - 2;

TEST(SliceQueues, a_store_does_not_wait_for_a_load_that_has_no_miss_register) {
  Spec spec = small_memory();
  spec.miss_registers = 1;
  EXPECT_EQ(arrivals(spec, {{.at = 0, .sm = 0, .address = 0},
                            {.at = 0, .sm = 1, .address = other_bank},
                            {.at = 5, .sm = 2, .address = other_set, .kind = StepKind::store}})[2],
            5 + stored);
}

// Programs that load lines and write them leave dirty lines only: each load and each store of a new
// line then needs room for a write.
TEST(SliceQueues, stores_find_room_for_writes_beside_loads_that_need_it) {
  Simulation gpu(small_memory());
  std::vector<Step> stores;
  for (std::uint64_t i = 0; i < 64; ++i)
    stores.push_back(access(StepKind::store, {0x800000 + ((i * other_row) | 15)}));
  const auto writer = gpu.add_client({"writer", sms({0}), launch_of({{stores}}), {}});
  std::vector<std::vector<Step>> warps;
  for (std::uint64_t warp = 0; warp < 4; ++warp) {
    std::vector<Step> steps;
    for (std::uint64_t i = 0; i < 64; ++i) {
      const std::uint64_t line = (warp * 64 + i) * other_row;
      steps.push_back(access(StepKind::load, {line | 15}));
      steps.push_back(access(StepKind::store, {line | 15}, true));
    }
    warps.push_back(steps);
  }
  gpu.add_client({"updater", sms({1, 2, 3}), launch_of({warps, warps, warps}), {}});
  const auto ran = gpu.run_launches(writer, 4, 1'000'000_cycles);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_LE(gpu.statistics(writer).run_cycles.at(3), 20'000_cycles);
}

TEST(Ports, stores_and_atomics_take_their_own_time_on_the_way_in) {
  Spec spec = small_memory();
  const std::vector<Asked> all{{.at = 0, .sm = 0, .address = 0},
                               {.at = 500, .sm = 0, .address = 0},
                               {.at = 1000, .sm = 0, .address = 0, .kind = StepKind::store},
                               {.at = 1500, .sm = 0, .address = 0, .kind = StepKind::atomic}};
  EXPECT_EQ(arrivals(spec, all), (Times{miss, 500 + hit, 1000 + stored, 1500 + hit}));
  spec.port_write_ticks = Ticks(3 * 256);
  spec.port_atomic_ticks = Ticks(5 * 256);
  EXPECT_EQ(arrivals(spec, all), (Times{miss + 2, 500 + hit, 1000 + stored + 2, 1500 + hit + 4}));
}

// Data of the load is at the port at cycle 54, the store from 41 to 61.
TEST(Ports, what_comes_from_dram_waits_for_stores) {
  Spec spec = small_memory();
  spec.port_write_ticks = Ticks(20 * 256);
  const std::uint64_t alone = arrivals(spec, {{.address = 0}}).at(0);
  EXPECT_EQ(alone, miss + 19);
  const Times beside =
      arrivals(spec, {{.at = 0, .sm = 0, .address = 0},
                      {.at = 30, .sm = 1, .address = other_set, .kind = StepKind::store}});
  EXPECT_EQ(beside.at(0), alone + 7);
}

// SM 0 sends six stores, the first of which is at the port from cycle 11 to 111; SM 2, of another
// GPC, sends one a little later.
TEST(Ports, gpcs_take_turns) {
  Spec spec = small_memory();
  spec.port_write_ticks = Ticks(100 * 256);
  std::vector<Asked> asked(6, {.at = 0, .sm = 0, .address = 0, .kind = StepKind::store});
  asked.push_back({.at = 10, .sm = 2, .address = 0, .kind = StepKind::store});
  const Times times = arrivals(spec, asked);
  EXPECT_EQ(times[0], stored + 99);
  EXPECT_EQ(times[6], stored + 199);
  EXPECT_EQ(times[1], stored + 299);
  EXPECT_EQ(times[5], stored + 699);
}

// An atomic is at the port from cycle 41 to 81. Data of three loads comes at 54, 56 and 58: the
// first passes until 101, an atomic until 141, and then two loads make up for it until 181.
TEST(Ports, while_both_wait_data_from_dram_passes_for_as_long_as_that_of_sms) {
  Spec spec = small_memory();
  spec.l2 = {2, 8};
  spec.port_write_ticks = Ticks(20 * 256);
  spec.port_atomic_ticks = Ticks(40 * 256);
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(0x800));
  std::vector<Asked> asked{{.address = 0}, {.sm = 1, .address = 0x80}, {.address = 0x100}};
  for (std::uint64_t at = 30; at < 33; ++at)
    asked.push_back({.at = at, .sm = 2, .address = 0x800, .kind = StepKind::atomic});
  const Times times = arrivals(gpu, asked);
  EXPECT_EQ(times[0], miss + 19 + 101 - 74);
  EXPECT_EQ(times[1], miss + 19 + 161 - 74);
  EXPECT_EQ(times[2], miss + 19 + 181 - 74);
  EXPECT_EQ(times[3], 30 + hit + 39);
  EXPECT_EQ(times[4], 30 + hit + 39 + 60);
  EXPECT_EQ(times[5], 30 + hit + 39 + 140);
}

TEST(Ports, the_address_of_a_load_does_not_wait_for_the_data_of_stores) {
  Spec spec = small_memory();
  spec.port_write_ticks = Ticks(20 * 256);
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(0));
  EXPECT_EQ(arrivals(gpu, {{.at = 0, .sm = 0, .address = 0},
                           {.at = 0, .sm = 1, .address = other_set, .kind = StepKind::store}})
                .at(0),
            hit);
}

TEST(Links, what_carries_data_out_takes_its_own_time) {
  const std::vector<Asked> all{{.at = 0, .sm = 0, .address = 0},
                               {.at = 500, .sm = 0, .address = 0},
                               {.at = 1000, .sm = 0, .address = 0, .kind = StepKind::store},
                               {.at = 1500, .sm = 0, .address = 0, .kind = StepKind::atomic}};
  Spec spec = small_memory();
  spec.sm_store_ticks = Ticks(3 * 256);
  EXPECT_EQ(arrivals(spec, all), (Times{miss, 500 + hit, 1000 + stored + 2, 1500 + hit + 2}));
  spec = small_memory();
  spec.gpc_store_ticks = Ticks(3 * 256);
  EXPECT_EQ(arrivals(spec, all), (Times{miss, 500 + hit, 1000 + stored + 3, 1500 + hit}));
  spec.gpc_atomic_ticks = Ticks(6 * 256);
  EXPECT_EQ(arrivals(spec, all), (Times{miss, 500 + hit, 1000 + stored + 3, 1500 + hit + 6}));
}

}  // namespace
}  // namespace demarc::sim::memory::test
