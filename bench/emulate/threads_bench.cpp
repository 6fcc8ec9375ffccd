// What a second thread of the emulator wins, on the wall clock: kernels run by one thread and by
// two in turns. Outputs are compared with the reference first.
#include <fmt/format.h>

#include <algorithm>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::bench {
namespace {

constexpr int turns = 15;

struct Case {
  std::string workload;
  std::map<std::string, std::int64_t> parameters;
};

std::vector<Case> cases() {
  return {{"vecadd", {{"n", 1 << 22}}},
          {"matmul_naive", {{"n", 256}}},
          {"matmul_tiled", {{"n", 256}}},
          {"stencil2d", {{"width", 2048}, {"height", 2048}, {"steps", 2}}},
          {"reduction", {{"n", 1 << 24}, {"blocks", 64}}}};
}

// Takes the encoded chunks and looks at none.
class Swallow final : public emulate::TraceSink {
 public:
  Result<void> consume(const emulate::TraceChunk&) override { return {}; }
};

struct Way {
  unsigned threads;
  bool traced;
  double best = 1e300;  // seconds
};

Result<void> run_once(const ptx::Module& module, const gpu::Launch& launch, Way& way) {
  emulate::Options options;
  options.threads = way.threads;
  Swallow sink;
  DEMARC_TRY(const emulate::Outcome outcome,
             emulate::run(module, launch, options, way.traced ? &sink : nullptr));
  if (!outcome.findings.empty())
    return check_failed("{}", emulate::describe(outcome.findings.front(), launch.ptx));
  if (way.best == 1e300) DEMARC_CHECK(workload::check(launch, outcome.addresses, outcome.buffers));
  double seconds = 0;
  for (const emulate::KernelStatistics& kernel : outcome.kernels) seconds += kernel.seconds;
  way.best = std::min(way.best, seconds);
  return {};
}

// Says whether two threads are not slower.
Result<bool> run_case(const Case& which) {
  gpu::LaunchFileOptions size;
  size.parameters = which.parameters;
  DEMARC_TRY(const gpu::Launch launch, workload::instance(which.workload, size));
  DEMARC_TRY(const std::string text, workload::ptx_text(launch, 90));
  const ptx::ParseResult parsed = ptx::parse(text, which.workload);
  std::vector<Way> ways = {{1, false}, {2, false}, {1, true}, {2, true}};
  for (int turn = 0; turn < turns; ++turn) {
    for (Way& way : ways) DEMARC_CHECK(run_once(parsed.module, launch, way));
  }
  fmt::print("{:<14}", which.workload);
  bool met = true;
  for (std::size_t i = 0; i < ways.size(); i += 2) {
    const double won = ways[i].best / ways[i + 1].best;
    fmt::print(" {:>9.2f} {:>9.2f} {:>7.2f}", ways[i].best * 1e3, ways[i + 1].best * 1e3, won);
    met = met && won >= 1;
  }
  fmt::print("  {}\n", met ? "met" : "below target");
  return met;
}

int run_all() {
  fmt::print(
      "milliseconds, best of {} runs in turns; target: two threads are not slower; limit: 2\n",
      turns);
  fmt::print("{:<14} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7}\n", "kernel", "1 thread", "2 threads",
             "won", "traced: 1", "2 threads", "won");
  bool all_met = true;
  for (const Case& which : cases()) {
    const auto met = run_case(which);
    if (!met) {
      fmt::print(stderr, "{}: {}\n", which.workload, met.error().message);
      return 1;
    }
    all_met = all_met && *met;
  }
  return all_met ? 0 : 3;
}

}  // namespace
}  // namespace demarc::bench

int main() {
  return demarc::bench::run_all();
}
