// What windows (pages of 4 KiB) cost on a simulated H100, next to what was measured on a card
// (docs/measurements/windows.md#simulated-next-to-measured). The first table has rates of a client
// alone on the whole card, by the size of its pages. The second one has victims and neighbours with
// half of the card each: slowdowns with a colour each, by arithmetic on pages of 2 MiB or through a
// window, or in shared memory. Ten minutes on one core.
//
// No parameter was fitted to either table. The aim is 0.15x for every cell; the limit is the number
// of cells that reach it. A device file as the only word is simulated in the place of h100-sxm.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/parallel.hpp"
#include "demarc/partition/partition.hpp"
#include "demarc/sim/memory/synthetic.hpp"
#include "sim/sim_memory.hpp"

namespace {

using namespace demarc;
using namespace demarc::sim::memory;

constexpr double aim = 0.15;
constexpr std::size_t limit_within = 27;
constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

enum class Memory { shared, pages, windows };

// What a client does to its memory. A launch takes each line `rounds` times.
struct Work {
  const char* name;
  Memory memory = Memory::windows;
  std::uint64_t bytes = 0;
  StepKind kind = StepKind::load;
  WalkOrder order = WalkOrder::ascending;
  std::uint32_t sectors = 4;
  std::uint32_t ahead = 4;
  std::uint32_t warps_per_sm = 64;
  std::uint32_t rounds = 1;
};

// Larger than the L2 and than the last TLB's reach with pages of 4 KiB.
constexpr Work stream(const char* name, Memory memory, StepKind kind = StepKind::load) {
  return {.name = name, .memory = memory, .bytes = 256 * mebibyte, .kind = kind};
}
constexpr Work in_l2(const char* name, Memory memory) {
  return {.name = name, .memory = memory, .bytes = 8 * mebibyte, .rounds = 16};
}
constexpr Work random_sectors(const char* name, Memory memory, std::uint64_t bytes) {
  return {.name = name,
          .memory = memory,
          .bytes = bytes,
          .order = WalkOrder::random,
          .sectors = 1,
          .ahead = 8};
}

struct Rate {
  Work work;
  bool sectors;  // the rate is in thousand million sectors per second, else in GB/s
  double large;  // measured with pages of 2 MiB
  double small;  // and of 4 KiB
};
// clang-format off
constexpr std::array rates{
    Rate{stream("read", Memory::shared), false, 3041, 2141},
    Rate{stream("write", Memory::shared, StepKind::store), false, 3088, 1718},
    Rate{in_l2("L2", Memory::shared), false, 6916, 6221},
    Rate{random_sectors("random 64 MiB", Memory::shared, 64 * mebibyte), true, 53, 47},
    Rate{random_sectors("random 256 MiB", Memory::shared, 256 * mebibyte), true, 35, 3.2},
    Rate{random_sectors("random 1 GiB", Memory::shared, gibibyte), true, 32, 0.1}};

constexpr std::array victims{
    stream("read 2M", Memory::pages),
    stream("read win", Memory::windows),
    in_l2("L2 win", Memory::windows),
    random_sectors("random win 64 MiB", Memory::windows, 64 * mebibyte),
    Work{.name = "chase win 8 MiB", .bytes = 8 * mebibyte, .order = WalkOrder::random, .sectors = 1,
         .ahead = 1, .warps_per_sm = 1}};
constexpr std::array neighbours{
    stream("read 2M", Memory::pages),
    stream("write 2M", Memory::pages, StepKind::store),
    random_sectors("random 2M 512 MiB", Memory::pages, 512 * mebibyte),
    stream("read win", Memory::windows),
    stream("write win", Memory::windows, StepKind::store),
    random_sectors("random win 64 MiB", Memory::windows, 64 * mebibyte),
    random_sectors("random win 1 GiB", Memory::windows, gibibyte),
    stream("shared memory, read", Memory::shared),
    stream("shared memory, write", Memory::shared, StepKind::store)};
// 0: not measured. Next to a neighbour in shared memory the victim has shared memory, too.
constexpr double measured[victims.size()][neighbours.size()] = {
    {1.07, 1.08, 1.05, 1.02, 1.03, 1.03,  1.37,    0,    0},
    {1.01, 1.22, 1.02, 1.78, 1.68, 1.03,  3.57, 1.84, 2.41},
    {1.15, 1.11, 1.22, 1.11, 1.12, 1.17,  1.83, 1.27, 1.23},
    {1.01, 1.03, 1.01, 1.02, 1.03, 1.01, 21.00, 2.39, 3.30},
    {1.01, 1.02, 1.04, 1.03, 1.04, 1.04,  1.15, 3.91, 4.82}};
// clang-format on

std::unique_ptr<Source> source_of(const Work& work, std::size_t sms) {
  Walk walk;
  walk.bytes = work.bytes;
  walk.kind = work.kind;
  walk.order = work.order;
  walk.sectors = work.sectors;
  walk.ahead = work.ahead;
  walk.rounds = work.rounds;
  const std::uint32_t warps = std::min(work.warps_per_sm, 8U);
  walk.threads = warps * 32;
  walk.blocks = static_cast<std::uint32_t>(sms) * (work.warps_per_sm / warps);
  return walk_source(walk);
}

struct Card {
  gpu::Device device;
  Spec spec;
  color::Coloring coloring;
  std::vector<std::vector<gpu::SmIndex>> halves;
  std::vector<gpu::SmIndex> sms;
};

Result<Card> open_card(const std::string& name) {
  Card card;
  DEMARC_TRY(card.device, gpu::find_device(name));
  DEMARC_TRY(card.spec, make_spec(card.device));
  DEMARC_TRY(card.coloring, study::choose_coloring(card.device, 2));
  DEMARC_CHECK(study::check_windows(card.device, card.coloring));
  DEMARC_TRY(const auto parts,
             partition::split(card.device.topology, 2, partition::SplitStrategy::distributed));
  for (const partition::Partition& part : parts) {
    card.halves.push_back(gpu::sms_of(card.device.topology, part.tpcs));
  }
  card.sms = gpu::sms_of(card.device.topology, gpu::all_tpcs(card.device.topology));
  return card;
}

// The statistics of the second of two launches.
struct Launched {
  double cycles = 0;
  double sectors = 0;
};
Result<Launched> second_launch(Simulation& gpu, ClientIndex client) {
  DEMARC_CHECK(gpu.run_launches(client, 2));
  const ClientStatistics& counted = gpu.statistics(client);
  return Launched{static_cast<double>(counted.run_cycles[1].raw()),
                  static_cast<double>(counted.sectors()) / 2};
}

// In thousand millions per second.
Result<double> rate_alone(const Card& card, const Rate& rate, study::PageSize pages) {
  Simulation gpu(card.spec);
  study::SimMemory memory(card.device, card.spec, 1);
  const ClientIndex client =
      gpu.add_client({rate.work.name, card.sms, source_of(rate.work, card.sms.size()),
                      memory.plain(sim::Address(0), rate.work.bytes, pages)});
  DEMARC_TRY(const Launched launched, second_launch(gpu, client));
  const double bytes = rate.sectors ? 1 : sector_bytes;
  return launched.sectors * bytes / launched.cycles * card.spec.clock_hz * 1e-9;
}

Result<double> time_of(const Card& card, const Work& victim, bool shared, const Work* neighbour) {
  Simulation gpu(card.spec);
  study::SimMemory memory(card.device, card.spec, 1);
  const auto join = [&](const Work& work, std::uint32_t half) {
    const auto pages =
        work.memory == Memory::windows ? study::PageSize::small : study::PageSize::large;
    return gpu.add_client(
        {work.name, card.halves[half], source_of(work, card.halves[half].size()),
         shared ? memory.plain(sim::Address(0), work.bytes)
                : memory.colored(sim::Address(0), work.bytes, card.coloring, half, pages)});
  };
  const ClientIndex client = join(victim, 0);
  if (neighbour != nullptr) join(*neighbour, 1);
  DEMARC_TRY(const Launched launched, second_launch(gpu, client));
  return launched.cycles;
}

// One simulation each; they run side by side.
struct Cell {
  std::size_t victim;
  std::optional<std::size_t> neighbour;
  bool shared;
  std::optional<Result<double>> cycles;
};

std::vector<Cell> cells_of_the_table() {
  std::vector<Cell> cells;
  for (std::size_t v = 0; v < victims.size(); ++v) {
    cells.push_back({v, {}, false, {}});
    cells.push_back({v, {}, true, {}});
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
      if (measured[v][n] == 0) continue;
      cells.push_back({v, n, neighbours[n].memory == Memory::shared, {}});
    }
  }
  return cells;
}

Result<void> print_rates(const Card& card) {
  constexpr std::array sizes{study::PageSize::large, study::PageSize::small};
  std::array<std::array<std::optional<Result<double>>, sizes.size()>, rates.size()> found;
  parallel_for(rates.size() * sizes.size(), 0, [&](std::size_t i) {
    found[i / 2][i % 2] = rate_alone(card, rates[i / 2], sizes[i % 2]);
  });
  fmt::print("alone on the card: simulated / measured, pages of 2 MiB, of 4 KiB\n");
  for (std::size_t r = 0; r < rates.size(); ++r) {
    fmt::print("  {:<16}", rates[r].work.name);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      DEMARC_TRY(const double rate, *found[r][i]);
      fmt::print(" {:8.1f} /{:7.1f}", rate, i == 0 ? rates[r].large : rates[r].small);
    }
    fmt::print(" {}\n", rates[r].sectors ? "G sectors/s" : "GB/s");
  }
  return {};
}

Result<std::size_t> print_slowdowns(const Card& card) {
  std::vector<Cell> cells = cells_of_the_table();
  parallel_for(cells.size(), 0, [&](std::size_t i) {
    Cell& cell = cells[i];
    cell.cycles = time_of(card, victims[cell.victim], cell.shared,
                          cell.neighbour ? &neighbours[*cell.neighbour] : nullptr);
  });
  std::size_t within = 0;
  std::size_t all = 0;
  double errors = 0;
  double alone[2] = {};
  for (const Cell& cell : cells) {
    DEMARC_TRY(const double cycles, *cell.cycles);
    if (!cell.neighbour) {
      alone[cell.shared] = cycles;
      if (!cell.shared) fmt::print("victim {}\n", victims[cell.victim].name);
      continue;
    }
    const double wanted = measured[cell.victim][*cell.neighbour];
    const double slowdown = cycles / alone[cell.shared];
    const double error = slowdown - wanted;
    fmt::print("  next to {:<22} {:6.2f}x, measured {:6.2f}x, error {:+7.2f}x\n",
               neighbours[*cell.neighbour].name, slowdown, wanted, error);
    errors += std::abs(error);
    within += std::abs(error) <= aim ? 1U : 0U;
    ++all;
  }
  fmt::print("{} of {} cells are within {:.2f}x (limit {}, aim {}); mean error {:.2f}x\n", within,
             all, aim, limit_within, all, errors / static_cast<double>(all));
  return within;
}

}  // namespace

int main(int count, char** words) {
  const auto run = [&]() -> Result<bool> {
    DEMARC_TRY(const Card card, open_card(count > 1 ? words[1] : "h100-sxm"));
    DEMARC_CHECK(print_rates(card));
    DEMARC_TRY(const std::size_t within, print_slowdowns(card));
    return within >= limit_within;
  };
  const auto reached = run();
  if (!reached) fmt::print(stderr, "{}\n", reached.error().message);
  return reached && *reached ? EXIT_SUCCESS : EXIT_FAILURE;
}
