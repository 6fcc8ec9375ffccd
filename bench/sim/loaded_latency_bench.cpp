// Loads beside streams of the same kernel on the simulated cards, beside what
// examples/causes/loaded_latency.cu measured on real ones: docs/measurements/loaded-*.csv.
//
// A figure's error is the factor between both. Limits: the geometric mean of all factors, and the
// greatest, are what was reached.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "demarc/base/files.hpp"
#include "demarc/base/split.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "demarc/sim/memory/synthetic.hpp"
#include "paths.hpp"

namespace demarc::bench {
namespace {

using namespace sim::memory;
using sim::Cycles;
using sim::SmIndex;

constexpr std::uint64_t gib = std::uint64_t{1} << 30U;
constexpr double ns_per_s = 1e9;

struct Card {
  std::string_view device;
  std::string_view table;
  double mean_factor;
  double worst_factor;
};
constexpr std::array<Card, 2> cards{
    {{"h100-sxm", "loaded-h100.csv", 1.08, 1.76}, {"h200", "loaded-h200.csv", 1.06, 1.25}}};

struct Streams {
  bool write = false;
  std::uint32_t sms = 0;
};

// A line of the table.
struct Case {
  std::uint32_t probes = 0;
  std::uint32_t warps = 0;
  std::uint32_t lanes = 0;
  std::array<Streams, 2> streams;
  std::array<double, 3> measured{};  // ns, GB/s of both streams; 0: there is no such figure
};

Result<Case> parse_case(std::string_view line) {
  const auto fields = split_at(line, ',');
  if (fields.size() != 11) return invalid_input("a line has 11 fields: {}", line);
  std::array<double, 11> numbers{};
  for (const std::size_t i : {1U, 2U, 3U, 5U, 7U, 8U, 9U, 10U}) {
    const auto field = fields[i];
    if (std::from_chars(field.data(), field.data() + field.size(), numbers[i]).ec != std::errc()) {
      return invalid_input("'{}' is not a number: {}", field, line);
    }
  }
  const auto count = [&](std::size_t i) { return static_cast<std::uint32_t>(numbers[i]); };
  return Case{count(1),
              count(2),
              count(3),
              {{{fields[4] == "write", count(5)}, {fields[6] == "write", count(7)}}},
              {numbers[8], numbers[9], numbers[10]}};
}

// SMs in an order that spreads the first of them over all GPCs.
std::vector<SmIndex> spread(const Spec& spec, std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t step = 61;
  std::vector<SmIndex> sms;
  for (std::uint32_t i = first; i < first + count; ++i) sms.emplace_back(i * step % spec.sms());
  return sms;
}

// The L2 as streams leave it: full of the lines of others, written ones next to writers.
void fill_l2(Simulation& gpu, std::uint64_t bytes, const Case& test) {
  const bool writes = test.streams[0].write || test.streams[1].write;
  const bool reads = test.streams[0].sms != 0 && !test.streams[0].write;
  for (std::uint64_t at = 0; at < bytes; at += line_bytes) {
    const bool written = writes && (!reads || at / line_bytes % 2 == 0);
    gpu.touch(PhysicalAddress(40 * gib + at), written);
  }
}

// ns of a step of the chains and GB/s of both streams.
Result<std::array<double, 3>> simulate(const Spec& spec, std::uint64_t l2_bytes, const Case& test) {
  Simulation gpu(spec);
  fill_l2(gpu, l2_bytes, test);
  std::vector<ClientIndex> streams;
  std::uint32_t first = test.probes;
  for (const Streams& stream : test.streams) {
    if (stream.sms == 0) continue;
    const Walk walk{.base = sim::Address(8 * gib * streams.size()),
                    .bytes = 4 * gib,
                    .kind = stream.write ? StepKind::store : StepKind::load,
                    .blocks = stream.sms,
                    .threads = 1024,
                    .rounds = 4,
                    .ahead = stream.write ? 0U : 4U,  // a load of a warp is four lines
                    .instructions = 1};
    streams.push_back(
        gpu.add_client({"stream", spread(spec, first, stream.sms), walk_source(walk), {}}));
    first += stream.sms;
  }
  constexpr Cycles begin(80000);
  DEMARC_CHECK(gpu.run_for(begin));
  std::vector<ClientIndex> clients = streams;
  Cycles longest(120000);
  if (test.probes != 0) {
    const Walk walk{.base = sim::Address(20 * gib),
                    .bytes = gib / 2,
                    .order = WalkOrder::random,
                    .sectors = 1,
                    .blocks = test.probes,
                    .threads = 32 * test.warps,
                    .rounds = 8,
                    .ahead = test.lanes,
                    .instructions = 1};
    clients.push_back(
        gpu.add_client({"chains", spread(spec, 0, test.probes), walk_source(walk), {}}));
    DEMARC_CHECK(gpu.run_for(Cycles(20000)));
    longest = Cycles(test.probes == 1 ? 400000 : 80000);
  }
  std::vector<std::uint64_t> before;
  for (const ClientIndex client : clients) before.push_back(gpu.statistics(client).sectors());
  const Cycles start = gpu.now();
  DEMARC_CHECK(gpu.run_for(longest));
  const double ns = static_cast<double>((gpu.now() - start).raw()) / spec.clock_hz * ns_per_s;
  std::array<double, 3> figures{};
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const auto sectors = static_cast<double>(gpu.statistics(clients[i]).sectors() - before[i]);
    if (i < streams.size()) {
      figures.at(1 + i) = sectors * sector_bytes / ns;
    } else {
      figures[0] = ns * test.probes * test.warps * test.lanes / sectors;
    }
  }
  return figures;
}

std::string name_of(const Case& test) {
  std::string name;
  if (test.probes != 0) {
    name =
        fmt::format("chains of {} SMs x {} warps x {} lanes", test.probes, test.warps, test.lanes);
  }
  for (const Streams& stream : test.streams) {
    if (stream.sms == 0) continue;
    name += fmt::format("{}{} SMs {}", name.empty() ? "" : ", ", stream.sms,
                        stream.write ? "write" : "read");
  }
  return name;
}

Result<bool> reached(const Card& card) {
  const auto path = test::source_dir() / "docs" / "measurements" / card.table;
  DEMARC_TRY(const std::string csv, read_file(path));
  DEMARC_TRY(const gpu::Device device, gpu::find_device(std::string(card.device)));
  DEMARC_TRY(const Spec spec, make_spec(device));
  constexpr std::array units{"ns", "GB/s", "GB/s"};
  double logs = 0;
  double worst = 1;
  std::size_t count = 0;
  fmt::print("{}: simulated (measured)\n", card.device);
  std::vector<std::string_view> lines = split_at(csv, '\n');
  lines.erase(lines.begin());  // names of the columns
  for (const std::string_view line : lines) {
    if (line.empty()) continue;  // behind the last
    DEMARC_TRY(const Case test, parse_case(line));
    DEMARC_TRY(const auto figures, simulate(spec, device.l2.size_bytes, test));
    fmt::print("  {:52}", name_of(test));
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (test.measured.at(i) == 0) continue;
      const double factor = std::abs(std::log(figures.at(i) / test.measured.at(i)));
      logs += factor;
      worst = std::max(worst, std::exp(factor));
      ++count;
      fmt::print(" {:6.0f} ({:5.0f}) {}", figures.at(i), test.measured.at(i), units.at(i));
    }
    fmt::print("\n");
  }
  const double mean = std::exp(logs / static_cast<double>(count));
  fmt::print("  {} figures: off by a factor of {:.3f} on average (limit {:.2f}), {:.2f} at worst ",
             count, mean, card.mean_factor, worst);
  fmt::print("(limit {:.2f})\n", card.worst_factor);
  return mean <= card.mean_factor && worst <= card.worst_factor;
}

int run() {
  bool all = true;
  for (const Card& card : cards) {
    const auto held = reached(card);
    if (!held) {
      fmt::print(stderr, "{}: {}\n", card.device, held.error().message);
      return EXIT_FAILURE;
    }
    all = all && *held;
  }
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace demarc::bench

int main() {
  return demarc::bench::run();
}
