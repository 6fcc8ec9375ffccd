// Sectors and hits of every bundled kernel, as the emulator counts them, as the simulated H100 does
// and as hardware counters of an H100 did: a Markdown table, which docs/measurements/simulated.md
// sums up.
//
// Each kernel runs alone, with empty caches. The emulator knows what is asked of the L1, nothing of
// hits. Exit code 3: a kernel's emulated and simulated sectors differ.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "../../tests/locality/measured.hpp"
#include "demarc/sim/memory/emulated.hpp"
#include "paths.hpp"
#include "sim/sim_memory.hpp"

namespace {

using namespace demarc;
namespace memory = sim::memory;
using locality::measured::Row;

struct Counted {
  double emulated_loads = 0;  // sectors
  memory::ClientStatistics simulated;
  memory::DramStatistics dram;
};

double emulated_load_sectors(const ptx::Module& module, const gpu::Launch& launch,
                             std::size_t kernel) {
  auto collected =
      locality::collect_runs(module, launch, kernel, locality::Force::emulated).value();
  locality::count_requests(collected.runs);
  double sectors = 0;
  for (const locality::Access& access : collected.runs.accesses) {
    if (access.kind != locality::AccessKind::load) continue;
    sectors += static_cast<double>(access.requests) * access.sectors_per_request;
  }
  return sectors;
}

Result<Counted> count(const Row& row, const gpu::Device& device, const memory::Spec& spec) {
  DEMARC_TRY(const locality::measured::KernelCode code, locality::measured::code_of(row));
  Counted counted;
  counted.emulated_loads = emulated_load_sectors(code.module, code.launch, code.kernel);
  DEMARC_TRY(const memory::RecordedLaunch recorded,
             memory::record_launch(code.module, code.launch, 0, {code.kernel, 1}));
  const auto& addresses = recorded.outcome.addresses;
  std::uint64_t end = gpu::default_base_address;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    end = std::max(end, addresses[i] + code.launch.buffers[i].bytes);
  }
  study::SimMemory places(device, spec, 1);
  memory::Simulation gpu(spec);
  const auto every = spec.gpc_of_sm.keys();
  const auto client = gpu.add_client(
      {row.kernel, std::vector<sim::SmIndex>(every.begin(), every.end()),
       memory::replay_launch(recorded.launch),
       places.plain(sim::Address(gpu::default_base_address), end - gpu::default_base_address)});
  DEMARC_CHECK(gpu.run_launches(client, 1));
  counted.simulated = gpu.statistics(client);
  counted.dram = gpu.dram();
  return counted;
}

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "-";
}

// Differences of two rates in points, or of two counts in per cent.
class Differences {
 public:
  void add(double difference) {
    sum_ += std::abs(difference);
    worst_ = std::max(worst_, std::abs(difference));
    ++count_;
  }
  void add_counts(double a, double b) {
    if (b > 0) add(100 * (a / b - 1));
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{:.2f} on average and {:.1f} at most over {} kernels",
                       sum_ / std::max(count_, 1), worst_, count_);
  }

 private:
  double sum_ = 0;
  double worst_ = 0;
  int count_ = 0;
};

}  // namespace

int main() {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  const memory::Spec spec = memory::make_spec(device).value();
  const auto rows =
      locality::measured::read(test::source_dir() / "tests/locality/measured/h100.csv").value();
  fmt::print(
      "| launch | kernel | L1 load sectors: emulator | simulator | counters | hits: simulator | "
      "counters | L2 sectors: simulator | counters | L2 read sectors: simulator | counters | read "
      "hits: simulator | counters | DRAM reads, kB: simulator | counters |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  Differences emulator;
  Differences l1_sectors;
  Differences l1_hits;
  Differences l2_reads;
  Differences l2_read_hits;
  bool alike = true;
  for (const Row& row : rows) {
    const auto counted = count(row, device, spec);
    if (!counted) {
      fmt::print(stderr, "{} {}: {}\n", row.launch, row.kernel, counted.error().message);
      return EXIT_FAILURE;
    }
    const memory::ClientStatistics& s = counted->simulated;
    const auto loads = static_cast<double>(s.load_sectors);
    const auto hits = static_cast<double>(s.l1_hit_sectors);
    const auto reads = static_cast<double>(s.l2_hit_sectors + s.l2_miss_sectors - s.atomic_sectors);
    const auto all = reads + static_cast<double>(s.store_sectors + s.atomic_sectors);
    const auto read_hits = static_cast<double>(s.l2_hit_sectors);
    alike = alike && counted->emulated_loads == loads;
    fmt::print(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} | {:.1f} |\n",
        row.launch, row.kernel, counted->emulated_loads, loads, row.l1_sectors, share(hits, loads),
        share(row.l1_hits, row.l1_sectors), all, row.l2_sectors, reads, row.l2_read_sectors,
        share(read_hits, reads), share(row.l2_read_hits, row.l2_read_sectors),
        static_cast<double>(counted->dram.read_sectors) * 32 / 1e3, row.dram_read_bytes / 1e3);
    std::fflush(stdout);
    emulator.add_counts(counted->emulated_loads, row.l1_sectors);
    l1_sectors.add_counts(loads, row.l1_sectors);
    if (row.l1_sectors > 0) l1_hits.add(100 * (hits / loads - row.l1_hits / row.l1_sectors));
    l2_reads.add_counts(reads, row.l2_read_sectors);
    if (row.l2_read_sectors > 0 && reads > 0) {
      l2_read_hits.add(100 * (read_hits / reads - row.l2_read_hits / row.l2_read_sectors));
    }
  }
  fmt::print(
      "\nL1 load sectors, emulator and counters: {} per cent\n"
      "L1 load sectors, simulator and counters: {} per cent\n"
      "L1 hit rate, simulator and counters: {} points\n"
      "L2 read sectors, simulator and counters: {} per cent\n"
      "L2 read hit rate, simulator and counters: {} points\n",
      emulator.text(), l1_sectors.text(), l1_hits.text(), l2_reads.text(), l2_read_hits.text());
  return alike ? EXIT_SUCCESS : 3;
}
