// What of a memory system fits together and what is refused.
#include "demarc/sim/memory/spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

using ::testing::HasSubstr;
using Ports = PerIndex<SliceIndex, std::uint32_t>;

struct SpecRule {
  std::function<void(Spec&)> right;
  std::function<void(Spec&)> wrong;
  const char* message;
};

std::string spec_error(const std::function<void(Spec&)>& change) {
  Spec spec = small_memory();
  change(spec);
  const auto checked = check_spec(spec);
  return checked ? "" : checked.error().message;
}

// Hash rows of single bits from 128 on.
gpu::LinearHash single_bits(std::uint32_t count) {
  gpu::LinearHash hash;
  for (std::uint32_t i = 0; i < count; ++i) hash.rows.push_back(std::uint64_t{1} << (7 + i));
  return hash;
}

TEST(SpecRules, have_two_sides) {
  const auto as_it_is = [](Spec&) {};
  const std::vector<SpecRule> rules{
      {as_it_is, [](Spec& s) { s.gpc_of_sm.clear(); }, "small: there is no SM"},
      {as_it_is, [](Spec& s) { s.gpcs = 1; }, "an SM lies in a GPC that does not exist"},
      {as_it_is, [](Spec& s) { s.slices = 2; }, "leads to another number of slices"},
      {[](Spec& s) {
         s.address.stack.modulus = s.slices = 3;
         s.port_of_slice = Ports{0, 0, 0};
       },
       [](Spec& s) { s.address.stack.modulus = s.slices = 3; }, "not every slice has a port"},
      {[](Spec& s) {
         s.ports = 3;
         s.port_of_slice = Ports{2};
       },
       [](Spec& s) {
         s.ports = 2;
         s.port_of_slice = Ports{2};
       },
       "a slice has a port that does not exist"},
      {[](Spec& s) { s.gpc_of_sm.assign(65535, 0); }, [](Spec& s) { s.gpc_of_sm.assign(65536, 0); },
       "more SMs or slices than 65535"},
      {[](Spec& s) {
         s.address.stack.modulus = s.slices = 65535;
         s.port_of_slice.assign(65535, 0);
       },
       [](Spec& s) {
         s.address.stack.modulus = s.slices = 65536;
         s.port_of_slice.assign(65536, 0);
       },
       "more SMs or slices than 65535"},
      {as_it_is, [](Spec& s) { s.l2.ways = 0; }, "another number of L2 sets"},
      {[](Spec& s) {
         s.address.set.rows.clear();
         s.l2.sets = 1;
       },
       [](Spec& s) { s.l2.sets = 4; }, "another number of L2 sets"},
      {[](Spec& s) {
         s.address.bank.rows.clear();
         s.banks = 1;
       },
       [](Spec& s) { s.banks = 1; }, "another number of banks"},
      {[](Spec& s) {
         s.address.bank = single_bits(8);
         s.banks = 256;
       },
       [](Spec& s) {
         s.address.bank = single_bits(9);
         s.banks = 512;
       },
       "8 bank bits"},
      {[](Spec& s) {
         s.address.set = single_bits(16);
         s.l2.sets = 65536;
       },
       [](Spec& s) {
         s.address.set = single_bits(17);
         s.l2.sets = 131072;
       },
       "more than 16 module"},
      {[](Spec& s) { s.address.stack.number = single_bits(24); },
       [](Spec& s) { s.address.stack.number = single_bits(25); }, "24 bits of the modulo stage"},
      {[](Spec& s) { s.threads = 65536; }, [](Spec& s) { s.threads = 65537; },
       "an SM has more than 65536 threads"},
      {[](Spec& s) { s.l1.sets = 4; }, [](Spec& s) { s.l1.sets = 3; },
       "the number of L1 sets is not a power of two"},
      {[](Spec& s) { s.l1 = {}; }, [](Spec& s) { s.l1.sets = 6; }, "is not a power of two"},
      {[](Spec& s) {
         s.distances = {1, 2, 3, 4};
       },
       [](Spec& s) {
         s.distances = {1, 2, 3};
       },
       "distances are given for some pairs"},
      {[](Spec& s) { s.miss_registers = 1; }, [](Spec& s) { s.miss_registers = 0; },
       "registers and the write queue must hold at least one entry"},
      {[](Spec& s) { s.l1_miss_registers = 1; }, [](Spec& s) { s.l1_miss_registers = 0; },
       "must hold at least one entry"},
      {[](Spec& s) { s.store_registers = 1; }, [](Spec& s) { s.store_registers = 0; },
       "must hold at least one entry"},
      {[](Spec& s) {
         s.write_high = 1;
         s.write_low = 0;
       },
       [](Spec& s) {
         s.write_high = 0;
         s.write_low = 0;
       },
       "must hold at least one entry"},
      {[](Spec& s) { s.write_low = 3; }, [](Spec& s) { s.write_low = 4; },
       "write_low must be below write_high"},
      {[](Spec& s) { s.address.row_shift = 7; }, [](Spec& s) { s.address.row_shift = 6; },
       "a row is smaller than a line"},
      {[](Spec& s) { s.tlbs = {{.entries = 1}}; }, [](Spec& s) { s.tlbs = {{.entries = 0}}; },
       "a TLB has no entries"},
      {[](Spec& s) { s.walkers = 0; },
       [](Spec& s) {
         s.tlbs = {{.entries = 1}};
         s.walkers = 0;
       },
       "page walks need at least one walker"},
      {[](Spec& s) { s.tlbs = {{.page_bits = 4}}; }, [](Spec& s) { s.tlbs = {{.page_bits = 5}}; },
       "a page walk reads the entries of 32 pages of 8 bytes, which are not within a line of 128"},
      {[](Spec& s) { s.table_entry_bytes = 0; },
       [](Spec& s) {
         s.tlbs = {{.entries = 1}};
         s.table_entry_bytes = 0;
       },
       "which are not within a line"},
  };
  for (const SpecRule& rule : rules) {
    EXPECT_EQ(spec_error(rule.right), "") << rule.message;
    EXPECT_THAT(spec_error(rule.wrong), HasSubstr(rule.message));
  }
}

TEST(SpecRules, name_the_memory_system) {
  Spec spec = small_memory();
  spec.name.clear();
  spec.gpc_of_sm.clear();
  EXPECT_EQ(check_spec(spec).error().message, "memory system: there is no SM");
}

TEST(SpecText, says_every_setting) {
  Spec spec = small_memory();
  spec.gpc_ticks = Ticks(512);
  EXPECT_EQ(
      spec_text(spec),
      "small: 4 SMs in 2 GPCs at 1000 MHz\n"
      "SM: 1.0 instructions per cycle, any number of them 32-bit floating-point, 4 cycles between "
      "dependent ones; 0 registers; shared memory "
      "no limit; a block begins after 0 cycles, a kernel 3 cycles after the last and 0 reads\n"
      "L1: 2 sets of 2 ways, hit 6 cycles, 8 miss and 8 store registers\n"
      "crossbar: SM 32.0 B per cycle (32.0 B per cycle of stores), GPC 16.0 B per cycle (no limit "
      "of stores, no limit of atomics), 1 ports of 32.0 B per cycle (32.0 B per cycle of writes, "
      "32.0 B per cycle of "
      "atomics), 10 cycles there, 10 back\n"
      "L2: 1 slices of 2 sets of 2 ways, 5 cycles, 16 miss registers per slice, 16 of them for "
      "reads past the cache\n"
      "DRAM: one channel per slice, 2 banks, bus 16.0 B per cycle, bursts of 1 sectors; precharge "
      "7, "
      "activate 9, column 11, row 40, turnaround 6, controller 20 cycles; activations of a "
      "channel 0 apart, four in 0; 0 of 0 cycles are refresh; rows close after 1000; "
      "writes drain from 4 to 1; 24 accesses and one row of each bank go before the other "
      "direction, if it waits\n"
      "unloaded: L2 hit 33 cycles, DRAM 76 cycles\n");
  spec.float_ticks = Ticks(512);
  EXPECT_THAT(spec_text(spec), HasSubstr(", 0.5 of them 32-bit floating-point, "));
  spec.uncached_registers = 3;
  EXPECT_THAT(spec_text(spec), HasSubstr("16 miss registers per slice, 3 of them for reads past"));
  spec.tlbs = {{.entries = 8, .page_bits = 1, .hit_cycles = {}, .per_sm = true},
               {.entries = 16, .page_bits = 3, .hit_cycles = 5_cycles, .per_sm = false}};
  spec.walkers = 4;
  EXPECT_THAT(
      spec_text(spec),
      HasSubstr("\naddress translation, if small pages or more memory than the last level reaches "
                "need it: 8 "
                "entries of 2 pages per SM, a hit adds 0 cycles; 16 entries of 8 pages for "
                "all SMs, a hit adds 5 cycles; 4 walkers, a walk adds 8 cycles and reads 64 "
                "bytes\n"));
}

TEST(SpecOfADevice, walks_take_what_the_probe_measured_and_no_less_than_a_read_of_the_l2) {
  gpu::Device device = gpu::find_device("h100-sxm").value();
  Spec spec = make_spec(device).value();
  EXPECT_EQ(spec.walk_latency(), Cycles(77));
  EXPECT_GT(spec.walk_cycles, Cycles());
  ASSERT_EQ(spec.tlbs.size(), 2U);
  EXPECT_EQ(spec.tlbs[0].page_bits, 3U);
  EXPECT_EQ(spec.tlbs[1].page_bits, 4U);
  EXPECT_EQ(spec.tlbs[1].hit_cycles, Cycles(10));
  EXPECT_EQ(spec.tlbs[1].entries, 2048U);
  EXPECT_TRUE(spec.tlbs[0].per_sm);
  EXPECT_FALSE(spec.tlbs[1].per_sm);
  EXPECT_EQ(spec.walk_sectors(), 4U);
  EXPECT_EQ(spec.walkers, 124U);
  const Cycles read = spec.walk_latency() - spec.walk_cycles;
  device.address_translation->walk_cycles = static_cast<double>(read.raw());
  EXPECT_EQ(make_spec(device).value().walk_cycles, Cycles());
  device.address_translation->walk_cycles -= 1;
  EXPECT_EQ(
      make_spec(device).error().message,
      fmt::format("H100 SXM 80GB: address_translation.walk_cycles: {} cycles are fewer than a "
                  "read of the L2 takes ({})",
                  read - 1_cycles, read));
  device.address_translation.reset();
  EXPECT_TRUE(make_spec(device).value().tlbs.empty());
}

// Loads of one line by one warp after the other: what an L1 of one set answers, and none.
TEST(L1OfOneSet, answers_as_any_other_and_none_answers_nothing) {
  for (const std::uint32_t sets : {0U, 1U, 2U}) {
    Spec spec = small_memory();
    spec.l1 = {sets, sets == 0 ? 0U : 2U};
    Simulation gpu(spec);
    std::vector<Step> loads(3, access(StepKind::load, {0x80 | 15U}, true));
    const auto client = gpu.add_client({"reader", sms({0}), launch_of({{loads}}), {}});
    ASSERT_TRUE(gpu.run_launches(client, 1));
    EXPECT_EQ(gpu.statistics(client).l1_hit_sectors, sets == 0 ? 0U : 8U) << sets;
  }
}

TEST(SpecOfADevice, has_the_rows_of_its_description) {
  gpu::Device device = gpu::find_device("gtx1080").value();
  const std::uint32_t described = device.memory_system->row_shift;
  EXPECT_EQ(make_spec(device)->address.row_shift, described);
  ++device.memory_system->row_shift;
  EXPECT_EQ(make_spec(device)->address.row_shift, described + 1);
}

TEST(SpecOfADevice, a_time_that_no_simulation_can_hold_is_refused_with_its_place) {
  const auto message = [](const std::function<void(gpu::Device&)>& change) {
    gpu::Device device = gpu::find_device("gtx1080").value();
    change(device);
    const auto spec = make_spec(device);
    return spec ? std::string("accepted") : spec.error().message;
  };
  EXPECT_EQ(message([](gpu::Device&) {}), "accepted");
  EXPECT_THAT(message([](gpu::Device& d) { d.memory_system->row_idle_ns = 1e300; }),
              HasSubstr(": memory_system.row_idle_ns: such a time cannot be simulated"));
  EXPECT_THAT(message([](gpu::Device& d) { d.memory_system->sm_link_bytes = 1e-300; }),
              HasSubstr(": memory_system.sm_link_bytes: such a time"));
  EXPECT_THAT(message([](gpu::Device& d) { d.memory_system->issue_per_cycle = 1e-300; }),
              HasSubstr(": memory_system.issue_per_cycle: such a time"));
  EXPECT_THAT(message([](gpu::Device& d) { d.memory_system->float_per_cycle = 1e-300; }),
              HasSubstr(": memory_system.float_per_cycle: such a time"));
  EXPECT_THAT(message([](gpu::Device& d) { d.l2.latency_cycles = -1; }),
              HasSubstr(": l2.latency_cycles: such a time"));
  EXPECT_EQ(message([](gpu::Device& d) { d.memory_system->row_idle_ns = 2e9; }), "accepted");
  const auto translated = [](gpu::Device& d) -> gpu::AddressTranslation& {
    d.address_translation = gpu::find_device("h100-sxm")->address_translation;
    return *d.address_translation;
  };
  EXPECT_EQ(message([&](gpu::Device& d) { translated(d); }), "accepted");
  EXPECT_THAT(message([&](gpu::Device& d) { translated(d).walk_cycles = 1e300; }),
              HasSubstr(": address_translation.walk_cycles: such a time"));
  EXPECT_THAT(message([&](gpu::Device& d) { translated(d).levels[1].hit_cycles = 1e300; }),
              HasSubstr(": address_translation.levels.hit_cycles: such a time"));
  EXPECT_THAT(message([&](gpu::Device& d) { translated(d).entry_bytes = 16; }),
              HasSubstr("the entries of 16 pages of 16 bytes"));
  EXPECT_EQ(message([](gpu::Device& d) { d.dram.size_bytes = max_bytes; }), "accepted");
  EXPECT_THAT(message([](gpu::Device& d) { d.dram.size_bytes = max_bytes + 1; }),
              HasSubstr(": dram.size_bytes: 549755813889 are more than"));
}

}  // namespace
}  // namespace demarc::sim::memory::test
