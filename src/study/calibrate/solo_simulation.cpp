// Runs one launch of a figure on a simulated device that runs nothing else.
#include "calibrate/solo_simulation.hpp"

#include <algorithm>

#include "demarc/partition/partition.hpp"
#include "sim/sim_memory.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t solo_target = 90;

// The simulated launch: the kernel once, where the row says that more are repetitions.
LaunchParameters run_once(const FigureRow& row, LaunchParameters parameters) {
  if (!row.repeats.empty()) parameters[std::string(row.repeats)] = 1;
  return parameters;
}

Result<std::vector<sim::SmIndex>> sms_of(const FigureRow& row, const gpu::Device& device) {
  gpu::TpcSet tpcs = gpu::all_tpcs(device.topology);
  if (row.share == SmShare::half) {
    DEMARC_TRY(const auto parts,
               partition::split(device.topology, 2, partition::SplitStrategy::gpc_aligned));
    tpcs = parts.front().tpcs;
  }
  return gpu::sms_of(device.topology, tpcs);
}

// Puts the lines of `bytes` of that memory into the L2, so many of them dirty_share.
void fill_l2(sim::memory::Simulation& gpu, const sim::memory::Translation& memory,
             std::uint64_t bytes, double dirty_share) {
  double due = 0;
  for (std::uint64_t at = 0; at < bytes; at += sim::memory::line_bytes) {
    due += dirty_share;
    const bool written = due >= 1 - 1e-9;
    if (written) due -= 1;
    const std::uint64_t inside = at & ((std::uint64_t{1} << memory.chunk_shift) - 1);
    gpu.touch(memory.chunks[at >> memory.chunk_shift] + inside, written);
  }
}

}  // namespace

Result<void> SoloSimulation::record(const FigureRow& row, const LaunchParameters& parameters) {
  const Workload workload = workload_of(row, run_once(row, parameters));
  if (recorded_.contains(workload.spec)) return {};
  // No workload has its default size, which follows the L2.
  auto loaded = load_sim_workload(workload.spec, solo_target, 0);
  if (!loaded) {
    return tl::unexpected(Error{loaded.error().kind,
                                fmt::format("figure '{}': {}", row.name, loaded.error().message)});
  }
  if (!loaded->outputs.mismatch.empty()) {
    return invalid_input("figure '{}': {} computes wrong results: {}", row.name, workload.spec,
                         loaded->outputs.mismatch);
  }
  recorded_.emplace(workload.spec, std::move(*loaded));
  return {};
}

Result<double> SoloSimulation::value(const FigureRow& row, const LaunchParameters& parameters,
                                     const gpu::Device& device) const {
  const LaunchParameters once = run_once(row, parameters);
  const SimWorkload& workload = recorded_.at(workload_of(row, once).spec);
  DEMARC_TRY(const sim::memory::Spec spec, sim::memory::make_spec(device, seed_));
  DEMARC_TRY(const std::vector<sim::SmIndex> sms, sms_of(row, device));
  sim::memory::Simulation gpu(spec);
  SimMemory memory(device, spec, seed_);
  const auto own = memory.plain(workload.base, workload.bytes);
  if (row.l2.lines == L2Before::Lines::own) {
    fill_l2(gpu, own, workload.bytes, row.l2.dirty);
  } else if (row.l2.lines == L2Before::Lines::others) {
    // Twice what the L2 holds, because its sets do not get equal parts.
    const std::uint64_t bytes = 2 * device.l2.size_bytes;
    fill_l2(gpu, memory.plain(sim::Address(), bytes), bytes, row.l2.dirty);
  }
  const auto client =
      gpu.add_client({std::string(row.name), sms, workload.source(), own, 0, nullptr, nullptr});
  if (auto run = gpu.run_launches(client, 1); !run) {
    return check_failed("figure '{}': {}", row.name, run.error().message);
  }
  const sim::Cycles cycles = gpu.statistics(client).kernel_cycles.front();
  const double ns = static_cast<double>(cycles.raw()) / spec.clock_hz * 1e9;
  const double figure = figure_of(row, once, description_, ns);
  if (!row.beyond_l2()) return figure;
  // The L2 and the queues of the channels take up what the kernel writes last, and may send off
  // less instead. In a run as short as this that would be a rate above that of the bus.
  const std::uint64_t sectors = gpu.dram().read_sectors + gpu.dram().write_sectors;
  return std::min(figure, static_cast<double>(sectors * sim::memory::sector_bytes) / ns);
}

}  // namespace demarc::study
