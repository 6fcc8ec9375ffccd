// Every description that can be simulated, as a whole: what it says of itself must come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "demarc/base/random.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "demarc/sim/memory/synthetic.hpp"

namespace demarc::sim::memory {
namespace {

class SimulatedDevice : public ::testing::TestWithParam<std::string> {
 protected:
  const gpu::Device device = gpu::find_device(GetParam()).value();
  const Spec spec = make_spec(device, 3).value();

  // Cycles of one load of `address` by `sm`, nothing else under way.
  static Cycles load_cycles(Simulation& gpu, SmIndex sm, PhysicalAddress address) {
    const std::array<Request, 1> load{Request{.sm = sm, .address = address}};
    return gpu.timed(load).value().front().first;
  }
  [[nodiscard]] Cycles distance(const Simulation& gpu, SmIndex sm, PhysicalAddress address) const {
    return spec.distance(gpu.decoder()(line_of(address)).slice, sm);
  }
};

TEST_P(SimulatedDevice, says_where_its_numbers_are_from) {
  EXPECT_FALSE(device.source.empty());
  EXPECT_THAT(device.memory_system->source, ::testing::HasSubstr("assumed"));
  EXPECT_THAT(device.memory_system->source, ::testing::HasSubstr("atency"));
}

TEST_P(SimulatedDevice, has_the_latencies_of_its_description) {
  Spec unrefreshed = spec;  // a load that comes during a refresh waits for its end
  unrefreshed.refresh_interval_cycles = 0_cycles;
  Simulation gpu(unrefreshed);
  double hits = 0;
  double misses = 0;
  constexpr std::uint64_t loads = 64;
  for (std::uint64_t i = 0; i < loads; ++i) {
    const PhysicalAddress address(i * 0x4f1000);
    const SmIndex sm(i * 7 % spec.sms());
    ASSERT_TRUE(gpu.run_for(2 * spec.row_idle_cycles));
    const Cycles miss = load_cycles(gpu, sm, address);
    EXPECT_EQ(miss, spec.dram_latency() + distance(gpu, sm, address));
    const Cycles hit = load_cycles(gpu, sm, address);
    EXPECT_EQ(hit, spec.l2_hit_latency() + distance(gpu, sm, address));
    misses += static_cast<double>(miss.raw()) / loads;
    hits += static_cast<double>(hit.raw()) / loads;
  }
  const double spread = device.memory_system->latency_spread_cycles;
  EXPECT_NEAR(hits, device.l2.latency_cycles, 1 + spread / 4);
  EXPECT_NEAR(misses, device.dram.latency_cycles, 1 + spread / 4);
}

TEST_P(SimulatedDevice, streams_as_much_as_its_registers_allow_and_never_more_than_its_bus) {
  const auto every = spec.gpc_of_sm.keys();
  const std::vector<SmIndex> sms(every.begin(), every.end());
  Walk walk;
  walk.bytes = std::uint64_t{256} << 20U;
  walk.blocks = 4 * spec.sms();
  walk.threads = 512;
  Simulation gpu(spec);
  const auto client = gpu.add_client({"stream", sms, walk_source(walk), {}});
  ASSERT_TRUE(gpu.run_for(6'000_cycles));
  const std::uint64_t before = gpu.dram().read_sectors;
  ASSERT_TRUE(gpu.run_for(6'000_cycles));
  const double seconds = 6'000 / spec.clock_hz;
  const double moved = static_cast<double>((gpu.dram().read_sectors - before) * sector_bytes);
  const double bus = device.dram.bandwidth_bytes_per_s;
  // By Little's law: the lines that all registers hold, each for the time from lookup to data of an
  // open row at least.
  const double held =
      static_cast<double>(
          (spec.dram_latency() - spec.l2_hit_latency() - spec.activate_cycles).raw()) /
      spec.clock_hz;
  const double registers = static_cast<double>(spec.slices * spec.miss_registers * line_bytes);
  EXPECT_LE(moved / seconds, 1.005 * bus);
  EXPECT_LE(moved / seconds, 1.01 * registers / held);
  EXPECT_GE(moved / seconds, 0.5 * std::min(bus, registers / held));
  EXPECT_EQ(gpu.statistics(client).l1_hit_sectors, 0U);
}

// Lanes of an SM by 32, as NVIDIA's programming guide has them.
TEST_P(SimulatedDevice, computes_with_as_many_floating_point_numbers_as_it_has_lanes) {
  const std::uint32_t version = device.compute_capability.number();
  const double lanes = version == 70 || version == 80 ? 2 : 4;
  EXPECT_EQ(device.memory_system->float_per_cycle, lanes);
  std::string warps = fmt::format("kernel threads=1024\nblock\n");
  for (int warp = 0; warp < 32; ++warp) warps += "warp\nwork +4000 float=4000\n";
  Simulation gpu(spec);
  const auto client = gpu.add_client(
      {"floats", {SmIndex(0)}, replay_launch(parse_access_text(warps, "x.txt").value()), {}});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  const auto cycles = static_cast<double>(gpu.statistics(client).kernel_cycles[0].raw());
  EXPECT_LE(32 * 4000 / cycles, lanes);
  EXPECT_GE(32 * 4000 / cycles, 0.9 * std::min(lanes, device.memory_system->issue_per_cycle));
}

TEST_P(SimulatedDevice, spreads_its_memory_evenly_over_slices_sets_and_banks) {
  const AddressDecoder decoder(spec.address);
  std::vector<std::uint32_t> slices(spec.slices);
  std::vector<std::uint32_t> banks(spec.banks);
  std::vector<std::uint32_t> sets(spec.l2.sets);
  constexpr std::uint32_t lines = 1U << 19U;
  Random random(11);
  for (std::uint32_t i = 0; i < lines; ++i) {
    const Place place = decoder(LineNumber(random.below(device.dram.size_bytes / line_bytes)));
    ++slices.at(place.slice.raw());
    ++banks.at(place.bank.raw());
    ++sets.at(place.set.raw());
  }
  for (const auto* counts : {&slices, &banks, &sets}) {
    const double fair = lines / static_cast<double>(counts->size());
    for (const std::uint32_t count : *counts) EXPECT_NEAR(count, fair, 0.25 * fair);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedDevice,
                         ::testing::Values("gtx1060-3gb", "gtx1080", "titan-v", "v100", "a30",
                                           "a100", "h100-sxm", "h200"),
                         [](const auto& named) {
                           std::string name = named.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(PageConstants, are_added_to_the_modules_of_their_page_and_change_with_the_seed) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  const Spec first = make_spec(device, 1).value();
  const Spec second = make_spec(device, 2).value();
  const AddressDecoder decoder(first.address);
  const AddressDecoder other(second.address);
  const gpu::AddressMap& map = *device.address_map;
  const auto lines_a_page = static_cast<std::uint32_t>(map.page_bytes >> line_shift);
  std::uint32_t differ = 0;
  std::vector<std::uint32_t> seen(first.address.module.count());
  for (std::uint32_t page = 0; page < 512; ++page) {
    const std::uint32_t constant = decoder.page_constant(PageNumber(page));
    ++seen.at(constant);
    differ += constant != other.page_constant(PageNumber(page)) ? 1U : 0U;
    for (std::uint32_t i = 0; i < 64; ++i) {
      const LineNumber line(page * lines_a_page + i * 251 % lines_a_page);
      const std::uint64_t offset = address_of(line).raw() % map.page_bytes;
      EXPECT_EQ(decoder(line).slice.raw() / first.address.stack.modulus,
                map.module(offset) ^ constant);
    }
  }
  EXPECT_GT(differ, 400U);
  for (const std::uint32_t pages : seen) EXPECT_NEAR(pages, 32, 24);
}

}  // namespace
}  // namespace demarc::sim::memory
