// The table of figures, and the sizes of their launches on a device of given caches and SMs.
#include "calibrate/figure_rows.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "demarc/base/text.hpp"
#include "demarc/device/device.hpp"

namespace demarc::study {
namespace {

constexpr std::int64_t full_block = 512;   // of a block where blocks fill all SMs
constexpr std::int64_t lone_block = 1024;  // of the one block of one SM, at most
constexpr std::int64_t chase_bytes = 128;  // bytes of the line that a chase takes a load from
constexpr std::int64_t loads_a_turn = 8;   // per chase

std::int64_t sm_count_of(const gpu::Device& device) {
  return device.topology.sm_count();
}
std::int64_t l2_bytes_of(const gpu::Device& device) {
  return static_cast<std::int64_t>(device.l2.size_bytes);
}
std::int64_t resident_blocks(const gpu::Device& device) {  // blocks that fill an SM
  return std::max<std::int64_t>(device.sm.threads / full_block, 1);
}
std::int64_t floor_two(std::int64_t number) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(number)));
}
std::int64_t ceil_two(std::int64_t number) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(number)));
}
// Runs that together touch twice the L2, where one touches `bytes`.
std::int64_t parts_beyond_l2(const gpu::Device& device, std::int64_t bytes) {
  return 2 * l2_bytes_of(device) / bytes + 1;
}

// Elements of so many bytes, a quarter of the L2 of them.
template <std::int64_t bytes, std::int64_t steps>
LaunchParameters in_l2(const gpu::Device& device) {
  return {{"elements", floor_two(l2_bytes_of(device) / 4 / bytes)},
          {"steps", steps},
          {"parts", 1},
          {"blocks", sm_count_of(device) * resident_blocks(device)},
          {"threads", full_block}};
}
template <std::int64_t bytes, std::int64_t steps>
LaunchParameters beyond_l2(const gpu::Device& device) {
  LaunchParameters sizes = in_l2<bytes, steps>(device);
  const std::int64_t accesses = 4 * steps * sizes["blocks"] * full_block;
  sizes["parts"] = parts_beyond_l2(device, accesses * bytes);
  sizes["elements"] = ceil_two(accesses * sizes["parts"]);
  return sizes;
}
LaunchParameters in_l2_alone(const gpu::Device& device) {
  LaunchParameters sizes = in_l2<16, 16>(device);
  sizes["blocks"] = 1;
  sizes["threads"] = std::min<std::int64_t>(lone_block, device.sm.threads);
  return sizes;
}
LaunchParameters beyond_l2_alone(const gpu::Device& device) {
  LaunchParameters sizes = in_l2_alone(device);
  const std::int64_t accesses = 4 * sizes["steps"] * sizes["threads"];
  sizes["parts"] = parts_beyond_l2(device, accesses * 16);
  sizes["elements"] = ceil_two(accesses * sizes["parts"]);
  return sizes;
}

LaunchParameters chase_in_l1(const gpu::Device& /*device*/) {
  return {{"elements", 32}, {"stride", 32}, {"chains", 1}, {"turns", 256}, {"parts", 1}};
}
// Each chase_bytes is met once, so none is in the L1.
LaunchParameters chase_in_l2(const gpu::Device& device) {
  const std::int64_t elements = floor_two(l2_bytes_of(device) / 4 / chase_bytes);
  return {{"elements", elements},
          {"stride", 32},
          {"chains", 1},
          {"turns", std::clamp<std::int64_t>(elements / loads_a_turn, 1, 128)},
          {"parts", 1}};
}
LaunchParameters chase_beyond_l2(const gpu::Device& device) {
  const std::int64_t chains = std::min<std::int64_t>(sm_count_of(device), 64);
  constexpr std::int64_t turns = 64;
  return {{"elements", ceil_two(4 * l2_bytes_of(device) / chase_bytes)},
          {"stride", 32},
          {"chains", chains},
          {"turns", turns},
          {"parts", parts_beyond_l2(device, chains * turns * loads_a_turn * chase_bytes)}};
}
LaunchParameters many_chases(const gpu::Device& device) {
  const std::int64_t chains = 64 * sm_count_of(device);
  return {{"elements", ceil_two(4 * l2_bytes_of(device) / chase_bytes)},
          {"stride", 32},
          {"chains", chains},
          {"steps",
           std::max<std::int64_t>(ceil_two(2 * l2_bytes_of(device) / chase_bytes / chains), 64)}};
}

LaunchParameters add_sizes(const gpu::Device& device) {
  const std::int64_t blocks = 168 * sm_count_of(device);
  return {{"blocks", blocks},
          {"threads", 256},
          {"parts", parts_beyond_l2(device, 3 * 4 * 256 * blocks)}};
}
LaunchParameters atomics_sizes(const gpu::Device& device) {
  return {{"counters", std::min<std::int64_t>(floor_two(l2_bytes_of(device) / 4 / 4), 65536)},
          {"rounds", 8},
          {"blocks", 8 * sm_count_of(device)}};
}
LaunchParameters arithmetic_sizes(const gpu::Device& device) {
  return {{"rounds", 512}, {"blocks", 8 * sm_count_of(device)}};
}
LaunchParameters many_blocks(const gpu::Device& device) {
  return {{"blocks", 32 * sm_count_of(device) * resident_blocks(device)},
          {"threads", full_block},
          {"kernels", 1}};
}
LaunchParameters many_kernels(const gpu::Device& device) {
  return {{"blocks", sm_count_of(device)}, {"threads", 256}, {"kernels", 16}};
}

using RunSizes = const LaunchParameters&;
template <std::int64_t bytes>
double bytes_moved(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(bytes * 4 * sizes.at("steps") * sizes.at("parts") *
                             sizes.at("blocks") * sizes.at("threads"));
}
double loads_of_a_chain(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(loads_a_turn * sizes.at("turns") * sizes.at("parts"));
}
double steps_of_a_chain(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(sizes.at("steps"));
}
double bytes_added(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(3 * 4 * sizes.at("blocks") * sizes.at("threads") * sizes.at("parts"));
}
double atomics_done(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(256 * sizes.at("blocks") * sizes.at("rounds"));
}
double multiply_adds(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(4 * 256 * sizes.at("blocks") * sizes.at("rounds"));
}
double blocks_of_a_place(RunSizes sizes, const gpu::Device& description) {
  return static_cast<double>(sizes.at("blocks") * sizes.at("kernels")) /
         static_cast<double>(sm_count_of(description) * resident_blocks(description));
}
double kernels_run(RunSizes sizes, const gpu::Device& /*description*/) {
  return static_cast<double>(sizes.at("kernels"));
}

using OfTime = FigureKind;
constexpr L2Before l2_empty{};
constexpr L2Before l2_own{L2Before::Lines::own, 0};
constexpr L2Before l2_dirty{L2Before::Lines::others, 1};
constexpr L2Before l2_third_dirty{L2Before::Lines::others, 1.0 / 3};

// clang-format off
constexpr std::array<FigureRow, 26> figure_table{{
    {"l1_latency", "a dependent load that hits the L1", "gauge_chase", SmShare::whole, OfTime::each, "ns", l2_own, "", chase_in_l1, loads_of_a_chain},
    {"l2_latency", "a dependent load that hits the L2", "gauge_chase", SmShare::whole, OfTime::each, "ns", l2_own, "", chase_in_l2, loads_of_a_chain},
    {"dram_latency", "a dependent load from DRAM, one chain per block", "gauge_chase", SmShare::whole, OfTime::each, "ns", l2_empty, "parts", chase_beyond_l2, loads_of_a_chain},
    {"dram_latency_loaded", "a dependent load from DRAM, 32 chains per warp", "stress_chase", SmShare::whole, OfTime::each, "ns", l2_empty, "", many_chases, steps_of_a_chain},
    {"compute", "fused multiply-adds, 1000 million per second", "stress_arithmetic", SmShare::whole, OfTime::rate, "G/s", l2_empty, "", arithmetic_sizes, multiply_adds},
    {"short_blocks", "the life of a block that does almost nothing", "gauge_mark", SmShare::whole, OfTime::each, "ns", l2_own, "", many_blocks, blocks_of_a_place},
    {"short_kernel", "a kernel with one such block per SM", "gauge_mark", SmShare::whole, OfTime::each, "ns", l2_own, "kernels", many_kernels, kernels_run},
    {"l2_read_one_sm", "one SM reads the L2", "gauge_read16", SmShare::whole, OfTime::rate, "GB/s", l2_own, "", in_l2_alone, bytes_moved<16>},
    {"l2_write_one_sm", "one SM writes the L2", "gauge_write16", SmShare::whole, OfTime::rate, "GB/s", l2_own, "", in_l2_alone, bytes_moved<16>},
    {"dram_read_one_sm", "one SM reads DRAM", "gauge_read16", SmShare::whole, OfTime::rate, "GB/s", l2_empty, "parts", beyond_l2_alone, bytes_moved<16>},
    {"l2_read", "all SMs read the L2, 16 bytes per thread", "gauge_read16", SmShare::whole, OfTime::rate, "GB/s", l2_own, "", in_l2<16, 8>, bytes_moved<16>},
    {"l2_read_half", "half of the SMs", "gauge_read16", SmShare::half, OfTime::rate, "GB/s", l2_own, "", in_l2<16, 8>, bytes_moved<16>},
    {"l2_read_narrow", "all SMs, 4 bytes per thread", "gauge_read4", SmShare::whole, OfTime::rate, "GB/s", l2_own, "", in_l2<4, 16>, bytes_moved<4>},
    {"l2_write", "all SMs write the L2, 16 bytes per thread", "gauge_write16", SmShare::whole, OfTime::rate, "GB/s", l2_own, "", in_l2<16, 4>, bytes_moved<16>},
    {"l2_write_half", "half of the SMs", "gauge_write16", SmShare::half, OfTime::rate, "GB/s", l2_own, "", in_l2<16, 4>, bytes_moved<16>},
    {"l2_write_narrow", "all SMs, 4 bytes per thread", "gauge_write4", SmShare::whole, OfTime::rate, "GB/s", l2_own, "", in_l2<4, 16>, bytes_moved<4>},
    {"atomics", "all SMs add to counters in the L2, 1000 million per second", "stress_atomics", SmShare::whole, OfTime::rate, "G/s", l2_own, "", atomics_sizes, atomics_done},
    {"atomics_half", "half of the SMs", "stress_atomics", SmShare::half, OfTime::rate, "G/s", l2_own, "", atomics_sizes, atomics_done},
    {"dram_read", "all SMs read DRAM, 16 bytes per thread", "gauge_read16", SmShare::whole, OfTime::rate, "GB/s", l2_empty, "parts", beyond_l2<16, 4>, bytes_moved<16>},
    {"dram_read_half", "half of the SMs", "gauge_read16", SmShare::half, OfTime::rate, "GB/s", l2_empty, "parts", beyond_l2<16, 4>, bytes_moved<16>},
    {"dram_read_narrow", "all SMs, 4 bytes per thread", "gauge_read4", SmShare::whole, OfTime::rate, "GB/s", l2_empty, "parts", beyond_l2<4, 16>, bytes_moved<4>},
    {"dram_write", "all SMs write DRAM, 16 bytes per thread", "gauge_write16", SmShare::whole, OfTime::rate, "GB/s", l2_dirty, "parts", beyond_l2<16, 4>, bytes_moved<16>},
    {"dram_write_half", "half of the SMs", "gauge_write16", SmShare::half, OfTime::rate, "GB/s", l2_dirty, "parts", beyond_l2<16, 4>, bytes_moved<16>},
    {"dram_write_narrow", "all SMs, 4 bytes per thread", "gauge_write4", SmShare::whole, OfTime::rate, "GB/s", l2_dirty, "parts", beyond_l2<4, 16>, bytes_moved<4>},
    {"add", "two reads and a write of DRAM, one element per thread", "gauge_add", SmShare::whole, OfTime::rate, "GB/s", l2_third_dirty, "parts", add_sizes, bytes_added},
    {"add_half", "half of the SMs", "gauge_add", SmShare::half, OfTime::rate, "GB/s", l2_third_dirty, "parts", add_sizes, bytes_added},
}};
// clang-format on

}  // namespace

std::span<const FigureRow> figure_rows() {
  return figure_table;
}

Result<const FigureRow*> find_figure(std::string_view name) {
  std::vector<std::string_view> names;
  for (const FigureRow& row : figure_table) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return invalid_input("there is no figure '{}'; the figures are {}", name, joined(names, ", "));
}

Result<void> check_sms(const gpu::Device& description, std::string_view device, std::uint32_t sms) {
  const std::uint32_t described = description.topology.sm_count();
  if (sms == described) return {};
  return invalid_input(
      "{} has {} SMs, but the description '{}' has {}: give a description of this device (demarc "
      "topo -o, demarc probe memory -o)",
      device, sms, description.name, described);
}

Result<void> check_peak(const FigureRow& row, double value, const gpu::Device& device,
                        PeakOf device_is) {
  const bool simulated = device_is == PeakOf::simulation;
  constexpr double rounding = 1.001;
  double peak = 0;
  if (row.beyond_l2()) peak = device.dram.bandwidth_bytes_per_s / 1e9;
  if (simulated && row.name == "compute" && device.memory_system) {
    peak = 32 * device.memory_system->float_per_cycle * device.topology.sm_count() *
           device.sm_clock_hz / 1e9;
  }
  if (peak == 0 || value <= rounding * peak) return {};
  return check_failed(
      "figure '{}': {:.5g} {} cannot be right, because {} has {:.5g} {} at most: {}", row.name,
      value, row.unit, device.name, peak, row.unit,
      simulated                   ? "the simulation is wrong"
      : device_is == PeakOf::card ? "correct the figure, or name the card that was measured"
                                  : "give a description of this card, or correct the figure");
}

Result<FigureSet> simulated_below_peaks(FigureSet set, const gpu::Device& device) {
  for (const Figure& figure : set.figures) {
    DEMARC_TRY(const FigureRow* row, find_figure(figure.name));
    DEMARC_CHECK(check_peak(*row, figure.value, device, PeakOf::simulation));
  }
  return set;
}

Result<void> check_card_peak(const FigureRow& row, double value, std::string_view card) {
  const auto own = gpu::describe_card(card, "");
  if (!own) return {};
  return check_peak(row, value, *own, PeakOf::card);
}

Workload workload_of(const FigureRow& row, const LaunchParameters& parameters) {
  std::string spec(row.launch);
  for (const auto& [name, value] : parameters) {
    append(spec, "{}{}={}", spec.size() == row.launch.size() ? '@' : '+', name, value);
  }
  return {std::string(row.name), spec};
}

double figure_of(const FigureRow& row, const LaunchParameters& parameters,
                 const gpu::Device& description, double ns) {
  const double work = row.work(parameters, description);
  return row.kind == FigureKind::each ? ns / work : work / ns;
}

}  // namespace demarc::study
