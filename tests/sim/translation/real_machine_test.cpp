// Settings that machines of real cards need, each with the cycles that it changes, computed by hand
// (exact_cycles_test.cpp has the constants), and the built-in machines.
#include <gmock/gmock.h>

#include "recording.hpp"
#include "translation/gpu_memory.hpp"
#include "translation/network.hpp"

namespace demarc::sim::translation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TranslationRealMachine, messages_take_the_lane_that_is_free_first) {
  Settings settings;
  settings.link_lanes = 2;
  Network network(settings);
  const auto crossed = [&](std::uint32_t flits) {
    return network.cross(Node(0), Node(1), 0, flits, 100_cycles);
  };
  EXPECT_EQ(crossed(20), Cycles(100 + 20 + 140));
  EXPECT_EQ(crossed(5), Cycles(100 + 5 + 140));
  EXPECT_EQ(crossed(5), Cycles(105 + 5 + 140)) << "behind the short one";
  EXPECT_EQ(network.backlog(100_cycles), 20_cycles);
  EXPECT_EQ(network.busiest_share(30_cycles), 30.0 / (30 * 2)) << "of two lanes";
}

TEST(TranslationRealMachine, a_single_switch_lies_between_any_two) {
  Settings settings;
  settings.gpus = 4;
  settings.topology = Topology::single;
  const Network network(settings);
  EXPECT_EQ(network.hops(Node(0), Node(1)), 2U);
  EXPECT_EQ(network.hops(Node(0), Node(3)), 2U);
  EXPECT_EQ(network.hops(Node(3), network.cpu()), 2U);
}

Settings one_bank() {
  Settings settings;
  settings.l2_banks = 1;
  return settings;
}

// The L2 takes 10 cycles, the DRAM 100; the bank takes a request per cycle.
TEST(TranslationRealMachine, a_line_keeps_its_channel_busy_as_long_as_the_settings_say) {
  Settings settings = one_bank();
  settings.dram_line_cycles = 3;
  GpuMemory memory(settings);
  EXPECT_EQ(memory.read(FrameLine(0), 0_cycles), 110_cycles);
  EXPECT_EQ(memory.read(FrameLine(1), 0_cycles), 113_cycles);
  EXPECT_EQ(memory.read(FrameLine(2), 0_cycles), 116_cycles);
}

TEST(TranslationRealMachine, a_channel_that_turns_from_reads_to_writes_or_back_loses_cycles) {
  Settings settings = one_bank();
  settings.dram_turn_cycles = 7;
  GpuMemory memory(settings);
  EXPECT_EQ(memory.read(FrameLine(0), 0_cycles), 110_cycles);
  EXPECT_EQ(memory.write(FrameLine(1), 0_cycles), 11_cycles) << "the L2 takes it";
  // The write was booked at 11 + 7, for one cycle; then the channel turns again.
  EXPECT_EQ(memory.read(FrameLine(2), 0_cycles), Cycles(19 + 7 + 100));
  EXPECT_EQ(memory.read(FrameLine(3), 0_cycles), Cycles(19 + 7 + 1 + 100));
}

TEST(TranslationRealMachine, writes_wait_while_their_channel_is_too_far_behind) {
  Settings settings = one_bank();
  settings.dram_line_cycles = 5;
  const auto third_write = [&](std::uint32_t queue) {
    settings.dram_write_queue = queue;
    GpuMemory memory(settings);
    memory.write(FrameLine(0), 0_cycles);
    memory.write(FrameLine(1), 0_cycles);
    memory.write(FrameLine(2), 0_cycles);
    return memory.write(FrameLine(3), 0_cycles);
  };
  EXPECT_EQ(third_write(0), Cycles(3 + 10));
  // Three lines of 5 cycles are booked; with room for one, the fourth write begins at 10.
  EXPECT_EQ(third_write(1), Cycles(10 + 10));
  EXPECT_EQ(third_write(2), Cycles(5 + 10));
  settings.dram_write_queue = 1;
  GpuMemory memory(settings);
  for (int i = 0; i < 3; ++i) memory.write(FrameLine(0), 0_cycles);
  EXPECT_EQ(memory.write(FrameLine(0), 0_cycles), Cycles(3 + 10)) << "the L2 has the line";
}

TEST(TranslationRealMachine, a_miss_brings_the_lines_beside_it) {
  Settings settings = one_bank();
  settings.dram_fetch_lines = 2;
  settings.dram_line_cycles = 3;
  GpuMemory memory(settings);
  EXPECT_EQ(memory.read(FrameLine(3), 0_cycles), 110_cycles);
  EXPECT_EQ(memory.read(FrameLine(2), 1_cycles), 110_cycles) << "it is on its way";
  // Both lines took the channel: 10 + 2 * 3.
  EXPECT_EQ(memory.read(FrameLine(4), 2_cycles), 116_cycles);
}

// A line that was read and is then written must go back to the DRAM, as one that was only written.
TEST(TranslationRealMachine, a_line_is_written_back_once_whether_it_was_read_before_or_not) {
  Settings settings = one_bank();
  settings.dram_line_cycles = 50;
  GpuMemory memory(settings);
  EXPECT_EQ(memory.read(FrameLine(0), 0_cycles), 110_cycles);
  EXPECT_EQ(memory.write(FrameLine(0), 100_cycles), 110_cycles);
  EXPECT_EQ(memory.write(FrameLine(0), 101_cycles), 111_cycles);
  // The first of the two writes has booked the channel from 100 to 150.
  EXPECT_EQ(memory.read(FrameLine(1), 102_cycles), Cycles(150 + 100));
  // A bank of 16 lines, all written: what takes the place of one is as the DRAM has it.
  settings.l2_bank_bytes = 1024;
  GpuMemory small(settings);
  for (std::uint32_t i = 0; i < 16; ++i) small.write(FrameLine(i), 0_cycles);
  EXPECT_EQ(small.read(FrameLine(16), 3000_cycles), 3110_cycles);
  small.write(FrameLine(16), 4000_cycles);
  EXPECT_EQ(small.read(FrameLine(17), 4000_cycles), Cycles(4050 + 100));
}

TEST(TranslationRealMachine, hashed_banks_take_stripes_that_lie_a_power_of_two_apart) {
  Settings settings;
  settings.l2_banks = 8;
  const auto last_of_eight = [&](std::uint32_t hash) {
    settings.l2_bank_hash = hash;
    GpuMemory memory(settings);
    Cycles last;
    for (std::uint32_t i = 0; i < 8; ++i) {
      last = std::max(last, memory.read(FrameLine(i * 8 * 64), 0_cycles));
    }
    return last;
  };
  EXPECT_EQ(last_of_eight(0), Cycles(110 + 7)) << "all in one bank";
  EXPECT_EQ(last_of_eight(1), 110_cycles) << "one in each";
}

// Whatever the hash, two lines are one in the L2 only if they are the same.
TEST(TranslationRealMachine, hashed_banks_mix_no_lines_up) {
  Settings settings;
  settings.l2_bank_hash = 1;
  settings.l2_bank_bytes = 1U << 24U;
  GpuMemory memory(settings);
  for (std::uint32_t stripe = 0; stripe < 1024; ++stripe) {
    EXPECT_GE(memory.read(FrameLine(stripe * 64), Cycles(stripe * 1000)),
              Cycles(stripe * 1000 + 110));
  }
}

TEST(TranslationRealMachine, a_cu_begins_as_many_lines_per_cycle_as_it_has_ports) {
  MemoryInstruction lines;
  for (std::uint32_t i = 0; i < 8; ++i) lines.line[lines.lines++] = LineNumber(i * 64);
  const TinyApplication load({{{lines}}}, 8 * page_bytes);
  Settings settings = one_gpu();
  settings.l1_tlb_mshrs = 64;
  const Recording one = record(settings, Architecture::centralised, load);
  EXPECT_EQ(one.of(Moment::l2_missed, 7), Cyclelist{68 + 7});
  settings.cu_lines = 4;
  const Recording four = record(settings, Architecture::centralised, load);
  EXPECT_EQ(four.of(Moment::l2_missed, 3), Cyclelist{68});
  EXPECT_EQ(four.of(Moment::l2_missed, 4), Cyclelist{68 + 1});
  EXPECT_EQ(four.of(Moment::l2_missed, 7), Cyclelist{68 + 1});
}

// The next instruction's lines come behind them, at the next whole cycle.
TEST(TranslationRealMachine, lines_of_the_next_instruction_wait_for_the_ports) {
  MemoryInstruction five;
  for (std::uint32_t i = 0; i < 5; ++i) five.line[five.lines++] = LineNumber(i * 64);
  MemoryInstruction next;
  next.line[next.lines++] = LineNumber(5 * 64);
  const TinyApplication loads({{{five, next}}}, 6 * page_bytes);
  Settings settings = one_gpu();
  settings.l1_tlb_mshrs = 64;
  settings.cu_lines = 4;
  EXPECT_EQ(record(settings, Architecture::centralised, loads).of(Moment::l2_missed, 5),
            Cyclelist{68 + 2});
}

TEST(TranslationRealMachine, vector_instructions_take_as_many_cycles_as_a_wave_needs) {
  MemoryInstruction after = load_pages({0});
  after.alu = 10;
  const TinyApplication load({{{after}}}, page_bytes);
  Settings settings = one_gpu();
  EXPECT_EQ(record(settings, Architecture::centralised, load).cycles(), 858U + 40);
  settings.wave_cycles = 1;
  EXPECT_EQ(record(settings, Architecture::centralised, load).cycles(), 858U + 10);
}

// Each wave has 5 instructions of 4 cycles on a SIMD of its own, and 100 rows in the one pipe.
TEST(TranslationRealMachine, waves_of_a_cu_take_turns_at_its_shared_memory) {
  const auto load_after = [](std::uint32_t page) {
    MemoryInstruction load = load_pages({page});
    load.alu = 5;
    load.shared_rows = 100;
    return load;
  };
  const TinyApplication one({{{load_after(0)}}}, page_bytes);
  Settings settings = one_gpu();
  const auto cycles = [&](std::uint32_t rows) {
    settings.shared_rows = rows;
    return record(settings, Architecture::centralised, one).cycles();
  };
  EXPECT_EQ(cycles(0), 858U + 20);
  EXPECT_EQ(cycles(1), 858U + 100);
  EXPECT_EQ(cycles(2), 858U + 50);
  EXPECT_EQ(cycles(3), 858U + 34) << "the last cycle serves one row";
  EXPECT_EQ(cycles(64), 858U + 20) << "the SIMD is busy for longer";
  const TinyApplication two({{{load_after(0)}, {load_after(1)}}}, 2 * page_bytes);
  settings.shared_rows = 1;
  const Recording both = record(settings, Architecture::centralised, two);
  EXPECT_EQ(both.of(Moment::l2_missed, 0), Cyclelist{68 + 100});
  EXPECT_EQ(both.of(Moment::l2_missed, 1), Cyclelist{68 + 200});
}

TEST(TranslationRealMachine, a_memory_instruction_takes_the_ports_for_some_lines_at_least) {
  MemoryInstruction next;
  next.line[next.lines++] = LineNumber(64);
  const TinyApplication loads({{{load_pages({0}), next}}}, 2 * page_bytes);
  Settings settings = one_gpu();
  settings.cu_lines = 2;
  settings.least_lines = 10;
  EXPECT_EQ(record(settings, Architecture::centralised, loads).of(Moment::l2_missed, 1),
            Cyclelist{68 + 5});
}

// Two lines that share the only set of a cache of one way, and have one each of two ways.
TEST(TranslationRealMachine, the_l1_has_the_ways_of_the_settings) {
  Settings settings = one_gpu();
  settings.l1_bytes = 4096;
  const auto hits_again = [&](std::uint32_t ways) {
    settings.l1_ways = ways;
    const TinyApplication loads({{{load_pages({0}), load_pages({1}), load_pages({0})}}},
                                2 * page_bytes);
    const Recording r = record(settings, Architecture::centralised, loads);
    const auto ended = r.ended(0);
    return ended[2] - ended[1] == 66 + 1 + 60;
  };
  EXPECT_FALSE(hits_again(1));
  EXPECT_TRUE(hits_again(2));
}

TEST(TranslationRealMachine, an_l1_has_room_for_its_ways) {
  Settings settings;
  settings.l1_bytes = 4096;
  settings.l1_ways = 64;
  EXPECT_TRUE(validate(settings));
  settings.l1_ways = 128;
  EXPECT_EQ(validate(settings).error().message,
            "l1_ways: 128 lines of 64 bytes are more than l1_bytes=4096");
  settings.l1_ways = 64;
  settings.wide_lines = 2;
  EXPECT_EQ(validate(settings).error().message,
            "l1_ways: 64 lines of 128 bytes are more than l1_bytes=4096");
}

TEST(TranslationRealMachine, several_work_groups_are_dispatched_in_one_step) {
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({0})}}, {{load_pages({0})}}},
                               page_bytes);
  Settings settings = one_gpu();
  settings.dispatch_cycles = 2000;
  // The third group starts behind one step of two groups, or behind two steps.
  settings.dispatch_groups = 2;
  const std::uint64_t two_each = record(settings, Architecture::centralised, groups).cycles();
  settings.dispatch_groups = 1;
  const std::uint64_t one_each = record(settings, Architecture::centralised, groups).cycles();
  EXPECT_EQ(one_each - two_each, 2000U);
}

// Two loads of a line of the other GPU, the second while the first is under way.
TEST(TranslationRealMachine, a_remote_line_on_its_way_comes_once_where_the_l1_keeps_it) {
  MemoryInstruction again = load_pages({0});
  again.wait = false;
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({0}), again}}}, 2 * page_bytes);
  Settings settings = two_gpus();
  EXPECT_EQ(record(settings, Architecture::centralised, groups).summary.remote_lines, 2U);
  settings.remote_in_l1 = 1;
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.summary.remote_lines, 1U);
  EXPECT_EQ(r.ended(1), (Cyclelist{1051, 1051}));
}

// One access by GPU 1 of lines 0 and 1, on page 0 of GPU 0, over two links. A flit has 16 bytes.
class TranslationSectors : public testing::Test {
 protected:
  TranslationSectors() {
    settings_.gmmu_fill = GmmuFill::all;
    settings_.topology = Topology::single;
    settings_.flit_bytes = 16;
    settings_.link_encoding = 0;
    settings_.request_bytes = settings_.reply_bytes = settings_.partial_bytes = 16;
    settings_.line_sectors = settings_.wide_lines = 2;
    settings_.remote_in_l1 = 1;
  }
  // `untouched`: a bit per line.
  static MemoryInstruction access(std::uint32_t lines, std::array<std::uint64_t, 2> untouched) {
    MemoryInstruction access;
    access.wait = true;
    for (std::uint32_t i = 0; i < lines; ++i) access.line[access.lines++] = LineNumber(i);
    access.untouched = untouched;
    return access;
  }
  Recording run(std::vector<MemoryInstruction> accesses) const {
    const TinyApplication application({{{load_pages({0})}}, {std::move(accesses)}}, 2 * page_bytes);
    return record(settings_, Architecture::distributed, application);
  }
  // Over one link each.
  std::uint64_t flits(std::vector<MemoryInstruction> accesses) const {
    return run(std::move(accesses)).summary.link_bytes / 16 / 2;
  }
  Settings settings_ = two_gpus();
};

TEST_F(TranslationSectors, a_message_has_the_sectors_that_an_access_touches) {
  // A request of one flit; an answer of a header and two flits per sector.
  EXPECT_EQ(flits({access(1, {0, 0})}), 1U + 1 + 4);
  EXPECT_EQ(flits({access(1, {0, 1})}), 1U + 1 + 2);
  settings_.line_sectors = 1;
  EXPECT_EQ(flits({access(1, {0, 1})}), 1U + 1 + 4) << "the whole line";
}

TEST_F(TranslationSectors, lines_side_by_side_share_a_header) {
  EXPECT_EQ(flits({access(2, {0, 0})}), 1U + 1 + 8);
  EXPECT_EQ(flits({access(3, {0, 0})}), 1U + 1 + 8 + 1 + 1 + 4) << "two of three do";
  MemoryInstruction twice = access(2, {0, 0});
  twice.line[1] = LineNumber(0);
  twice.store = true;
  EXPECT_EQ(flits({twice}), 2 * (1U + 4 + 1)) << "one line twice does not";
  settings_.wide_lines = 1;
  EXPECT_EQ(flits({access(2, {0, 0})}), 2 * (1U + 1 + 4));
}

TEST_F(TranslationSectors, a_write_has_its_sectors_and_says_which_bytes_it_fills) {
  MemoryInstruction store = access(2, {0, 0});
  store.store = true;
  // Header and data of both lines, and an answer of one flit.
  EXPECT_EQ(flits({store}), 1U + 8 + 1);
  store.partial = true;
  EXPECT_EQ(flits({store}), 1U + 1 + 8 + 1);
  store.untouched = {3, 0};
  EXPECT_EQ(flits({store}), 1U + 1 + 4 + 1);
}

TEST_F(TranslationSectors, the_l1_asks_for_the_sectors_that_it_lacks) {
  const MemoryInstruction first = access(1, {0, 1});
  const MemoryInstruction second = access(1, {1, 0});
  MemoryInstruction both = access(1, {0, 0});
  EXPECT_EQ(run({first, first}).summary.remote_lines, 1U);
  EXPECT_EQ(run({first, second, both}).summary.remote_lines, 2U);
  // The second is asked for alone while the first is on its way, and the access waits for both.
  both.wait = false;
  EXPECT_EQ(flits({first, both}), 2 * (1U + 1 + 2));
  // Both answers leave when the DRAM has brought the line, three flits one behind the other.
  const Recording r = run({first, both});
  EXPECT_EQ(r.ended(1).at(1), r.ended(1).at(0) + 3);
  settings_.line_sectors = 1;
  EXPECT_EQ(run({first, second, both}).summary.remote_lines, 1U);
}

// In an L1 of 64 lines of one way each, line 64 takes the place of line 0.
TEST_F(TranslationSectors, lines_under_one_tag_go_together) {
  settings_.l1_bytes = 4096;
  settings_.l1_ways = 1;
  MemoryInstruction other = access(1, {0, 0});
  other.line[0] = LineNumber(64);
  MemoryInstruction again = access(1, {0, 0});
  again.line[0] = LineNumber(1);
  const auto lines = [&](std::uint32_t wide) {
    settings_.wide_lines = wide;
    const TinyApplication application({{{load_pages({0})}}, {{access(2, {0, 0}), other, again}}},
                                      4 * page_bytes);
    return record(settings_, Architecture::distributed, application).summary.remote_lines;
  };
  EXPECT_EQ(lines(1), 3U);
  EXPECT_EQ(lines(2), 4U) << "line 1 has gone with line 0";
}

TEST(TranslationRealMachine, a_gmmu_that_knows_all_pages_asks_nobody) {
  Settings settings = two_gpus();
  settings.gmmu_fill = GmmuFill::all;
  const TinyApplication others({{{load_pages({1})}}, {{load_pages({0})}}}, 2 * page_bytes);
  for (const Placement placement :
       {Placement::contiguous, Placement::first_touch, Placement::far}) {
    settings.placement = placement;
    const Recording r = record(settings, Architecture::distributed, others);
    EXPECT_EQ(r.of(Moment::l2_filled, 0), Cyclelist{79 + 100});
    EXPECT_EQ(r.summary.iommu_accesses, 0U);
    EXPECT_EQ(r.summary.remote_lines, placement == Placement::first_touch ? 0U : 2U);
  }
}

TEST(TranslationRealMachine, pages_known_to_all_lie_somewhere_and_stay) {
  Settings settings = two_gpus();
  settings.gmmu_fill = GmmuFill::all;
  EXPECT_TRUE(validate(settings));
  settings.placement = Placement::first_walk;
  EXPECT_THAT(validate(settings).error().message, HasSubstr("placement=first-walk"));
  settings.placement = Placement::far;
  settings.first_touch = FirstTouch::copy;
  EXPECT_THAT(validate(settings).error().message, HasSubstr("give first_touch=free"));
  settings.first_touch = FirstTouch::free;
  settings.remote = Remote::migration;
  EXPECT_THAT(validate(settings).error().message, HasSubstr("remote=lines"));
}

TEST(TranslationRealMachine, homes_of_pages_follow_the_placement) {
  const TinyApplication own({{{load_pages({0})}}, {{load_pages({1})}}}, 2 * page_bytes);
  Settings settings = two_gpus();
  const auto homes = [&](Placement placement) {
    settings.placement = placement;
    std::vector<std::uint32_t> gpus;
    const auto found = page_homes(settings, own);
    for (const GpuIndex gpu : *found) gpus.push_back(gpu.raw());
    return gpus;
  };
  EXPECT_THAT(homes(Placement::first_touch), ElementsAre(0, 1));
  EXPECT_THAT(homes(Placement::far), ElementsAre(1, 0));
  EXPECT_THAT(homes(Placement::contiguous), ElementsAre(0, 1));
  EXPECT_THAT(homes(Placement::interleaved), ElementsAre(0, 1));
  settings.placement = Placement::first_walk;
  EXPECT_FALSE(page_homes(settings, own));
}

TEST(TranslationRealMachine, built_in_machines_are_found_by_name) {
  EXPECT_THAT(builtin_machine_names(), ElementsAre("h200-x2", "h200-x4"));
  for (const std::string& name : builtin_machine_names()) {
    const auto machine = find_machine(name);
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(machine->gpus, name == "h200-x2" ? 2U : 4U);
    EXPECT_EQ(machine->page_bytes, 2U << 20U);
  }
  EXPECT_EQ(find_machine("h300-x2").error().message,
            "there is no machine 'h300-x2'; did you mean h200-x2 or h200-x4? demarc list machines "
            "shows all; a file's name ends in .json");
}

}  // namespace
}  // namespace demarc::sim::translation
