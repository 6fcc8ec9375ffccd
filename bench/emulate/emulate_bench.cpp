// Thread instructions per second of the emulator on one core, with and without the address trace
// and the checks, and its slowdown against the same loop nest compiled for this machine. Outputs
// are compared with the reference first.
#include <fmt/format.h>
#include <algorithm>
#include <functional>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"
#include "native_loops.hpp"
#include "thread_time.hpp"

namespace demarc::bench {
namespace {

constexpr double target_traced = 1000;  // million thread instructions a second, addresses traced
constexpr double target_checked = 400;  // the same with all checks
constexpr double limit_low = 6000;      // a warp-vectorised loop without divergence and checks
constexpr double limit_high = 9000;

// Takes the encoded chunks as they come and looks at their ends only: the figures are those of
// making the trace. What a consumer spends on decoding (visit_events) comes on top.
class AddressSink final : public emulate::TraceSink {
 public:
  explicit AddressSink(bool instructions) : instructions_(instructions) {}
  [[nodiscard]] bool wants_instructions() const override { return instructions_; }
  Result<void> consume(const emulate::TraceChunk& chunk) override {
    words += chunk.words.size();
    if (!chunk.words.empty()) sum += chunk.words.front() ^ chunk.words.back();
    return {};
  }
  std::uint64_t words = 0;
  std::uint64_t sum = 0;

 private:
  bool instructions_;
};

struct Case {
  std::string workload;
  std::map<std::string, std::int64_t> parameters;
  std::function<double(const gpu::Launch&)> native;  // seconds for the work of all kernels
};

std::vector<float> floats(std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i % 1000) * 0.001F;
  return out;
}

double best_of(int times, const std::function<double()>& measure) {
  double best = 1e300;
  for (int i = 0; i < times; ++i) best = std::min(best, measure());
  return best;
}

std::vector<Case> cases() {
  return {
      {"vecadd",
       {{"n", 1 << 22}},
       [](const gpu::Launch&) {
         const auto a = floats(1 << 22);
         const auto b = floats(1 << 22);
         std::vector<float> c(a.size());
         return best_of(5, [&] {
           return seconds_of([&] { native_vecadd(a.data(), b.data(), c.data(), a.size()); });
         });
       }},
      {"matmul_naive",
       {{"n", 256}},
       [](const gpu::Launch&) {
         const auto a = floats(256 * 256);
         std::vector<float> c(a.size());
         return best_of(5, [&] {
           return seconds_of([&] { native_matmul(a.data(), a.data(), c.data(), 256); });
         });
       }},
      {"matmul_tiled",
       {{"n", 256}},
       [](const gpu::Launch&) {
         const auto a = floats(256 * 256);
         std::vector<float> c(a.size());
         return best_of(5, [&] {
           return seconds_of([&] { native_matmul(a.data(), a.data(), c.data(), 256); });
         });
       }},
      {"stencil2d",
       {{"width", 2048}, {"height", 2048}, {"steps", 2}},
       [](const gpu::Launch&) {
         const auto in = floats(2048 * 2048);
         std::vector<float> out(in.size());
         return 2 * best_of(5, [&] {
                  return seconds_of([&] { native_stencil(in.data(), out.data(), 2048, 2048); });
                });
       }},
      {"reduction",
       {{"n", 1 << 24}, {"blocks", 64}},
       [](const gpu::Launch&) {
         const auto in = floats(1 << 24);
         volatile float sink = 0;
         return best_of(
             5, [&] { return seconds_of([&] { sink = native_reduction(in.data(), in.size()); }); });
       }},
  };
}

// One way to emulate a launch, and what its runs gave.
struct Way {
  bool traced = false;
  bool instructions = false;  // in the trace
  bool checked = false;
  std::vector<double> rates{};  // million thread instructions a second
  double best_seconds = 1e300;
  double all_seconds = 0;

  [[nodiscard]] double best() const { return *std::max_element(rates.begin(), rates.end()); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};
// The ways take turns until each took so long: a machine that others use too has slow
// moments of some seconds.
constexpr double least_seconds = 1.5;

Result<void> run_once(const ptx::Module& module, const gpu::Launch& launch, Way& way) {
  emulate::Options options;
  options.threads = 1;
  options.check_races = way.checked;
  options.check_uninitialised = way.checked;
  AddressSink sink(way.instructions);
  DEMARC_TRY(const emulate::Outcome outcome,
             emulate::run(module, launch, options, way.traced ? &sink : nullptr));
  double seconds = 0;
  double count = 0;
  for (const emulate::KernelStatistics& kernel : outcome.kernels) {
    seconds += kernel.cpu_seconds;
    count += static_cast<double>(kernel.thread_instructions);
  }
  if (!outcome.findings.empty())
    return check_failed("{}", emulate::describe(outcome.findings.front(), launch.ptx));
  if (way.rates.empty()) DEMARC_CHECK(workload::check(launch, outcome.addresses, outcome.buffers));
  way.rates.push_back(count / seconds * 1e-6);
  way.best_seconds = std::min(way.best_seconds, seconds);
  way.all_seconds += seconds;
  return {};
}

// Says whether the targets are met.
Result<bool> run_case(const Case& which) {
  gpu::LaunchFileOptions size;
  size.parameters = which.parameters;
  DEMARC_TRY(const gpu::Launch launch, workload::instance(which.workload, size));
  DEMARC_TRY(const std::string text, workload::ptx_text(launch, 90));
  const ptx::ParseResult parsed = ptx::parse(text, which.workload);
  Way plain;
  Way addresses{.traced = true};
  Way everything{.traced = true, .instructions = true};
  Way careful{.traced = true, .checked = true};
  while (careful.all_seconds < least_seconds || addresses.all_seconds < least_seconds) {
    for (Way* way : {&plain, &addresses, &everything, &careful})
      DEMARC_CHECK(run_once(parsed.module, launch, *way));
  }
  const double native = which.native(launch);
  const bool met = addresses.best() >= target_traced && careful.best() >= target_checked;
  fmt::print(
      "{:<14} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f}   {:>8.2f} ms {:>8.2f} ms {:>7.1f}x  "
      "{}\n",
      which.workload, plain.best(), addresses.best(), addresses.median(), everything.best(),
      careful.best(), native * 1e3, addresses.best_seconds * 1e3, addresses.best_seconds / native,
      met ? "met" : "below target");
  return met;
}

int run_all() {
  fmt::print(
      "million thread instructions/s, one core, {}, best of {} s in turns; targets: "
      "{:.0f} with the address trace, {:.0f} with trace and checks; limit: {:.0f}-{:.0f}\n",
      emulate::to_string(emulate::widest_instruction_set()), least_seconds, target_traced,
      target_checked, limit_low, limit_high);
  fmt::print("{:<14} {:>9} {:>9} {:>9} {:>9} {:>9}   {:>11} {:>11} {:>8}\n", "kernel", "no trace",
             "addresses", "(median)", "full trace", "checks", "native", "emulated", "slowdown");
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
