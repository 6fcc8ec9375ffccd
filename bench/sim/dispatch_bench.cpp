// Thread blocks per second of the SimTBS model against a straightforward tick-by-tick
// implementation built here. Outputs are compared before times are.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "demarc/sim/dispatch/tb_generate.hpp"
#include "demarc/sim/dispatch/tb_simulation.hpp"
#include "tick_by_tick.hpp"

namespace demarc::bench {
namespace {

struct Case {
  const char* name;
  std::uint32_t units;
  std::uint32_t requests;  // 1..requests
  sim::IntRange blocks;
  std::uint32_t ticks, plain_ticks;
  const char* policy;
  double target;  // million thread blocks a second
};

// Processor time: the machine may be shared.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

sim::TbConfig workload(const Case& c, std::uint32_t ticks) {
  sim::TbConfig config = sim::paper_config({132, c.units}, sim::TbMix::uniform, 100, ticks);
  config.memory = {1000000};  // ample, so that the generated load is carried
  config.workload.requests[0].resize(c.requests);
  config.workload.n_tb = {c.blocks.low, c.blocks.high};
  return must(sim::generate_workload(std::move(config), sim::TbGeneration::published_2021, 1));
}

// True when both implementations agree on every kernel's end and on the sums.
bool same(const sim::TbRun& run, const PlainResult& plain) {
  if (run.placed_blocks != plain.placed || run.finished_blocks != plain.finished ||
      run.sm_use[0] != plain.sm_use) {
    return false;
  }
  for (const sim::KernelIndex k : plain.end.keys()) {
    if (run.kernels[k].end != plain.end[k]) return false;
  }
  return true;
}

void measure(const Case& c) {
  sim::TbOptions options;
  options.policy = c.policy;

  const sim::TbConfig small = workload(c, c.plain_ticks);
  auto start = cpu_seconds();
  const PlainResult plain =
      TickByTick(small, std::string_view(c.policy) == "bfa").run(sim::TbTicks(c.plain_ticks));
  const double plain_rate = static_cast<double>(plain.placed) / (cpu_seconds() - start) / 1e6;
  if (options.policy != "rr-skip" && options.policy != "dfa" &&
      !same(must(sim::simulate(small, options)), plain)) {
    fmt::print("{} {}: RESULTS DIFFER from the tick-by-tick rules\n", c.name, c.policy);
    std::exit(1);
  }

  const sim::TbConfig config = workload(c, c.ticks);
  double best = 0;
  std::uint64_t blocks = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    start = cpu_seconds();
    const sim::TbRun run = must(sim::simulate(config, options));
    blocks = run.placed_blocks;
    best = std::max(best, static_cast<double>(blocks) / (cpu_seconds() - start) / 1e6);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:<34} {:<8} {:>7.1f} M blocks  {:>6.1f} M/s (target {:>3.0f})  tick by tick {:>5.2f} "
      "M/s, ratio {:>4.0f}  peak {:>3} MB\n",
      c.name, c.policy, static_cast<double>(blocks) / 1e6, best, c.target, plain_rate,
      best / plain_rate, usage.ru_maxrss / 1024);
}

}  // namespace
}  // namespace demarc::bench

int main(int argc, char** argv) {
  using demarc::bench::Case;
  fmt::print("132 SMs, level 100, results compared kernel by kernel over the shorter run\n");
  const Case cases[] = {
      {"8 units, 12-128 blocks", 8, 8, {12, 128}, 1000000, 30000, "rr", 60},
      {"8 units, 12-128 blocks", 8, 8, {12, 128}, 1000000, 30000, "bfa", 30},
      {"8 units, 12-128 blocks", 8, 8, {12, 128}, 1000000, 30000, "rr-skip", 0},
      {"8 units, 12-128 blocks", 8, 8, {12, 128}, 1000000, 30000, "dfa", 0},
      {"64 units of 1-64, 12-128 blocks", 64, 64, {12, 128}, 1000000, 30000, "rr", 30},
      {"64 units of 1-64, 12-128 blocks", 64, 64, {12, 128}, 1000000, 30000, "bfa", 30},
      {"64 units of 1-8, 12-1024 blocks", 64, 8, {12, 1024}, 200000, 5000, "rr", 30},
      {"64 units of 1-8, 12-1024 blocks", 64, 8, {12, 1024}, 200000, 5000, "bfa", 30},
  };
  // An argument keeps the cases whose policy it names.
  for (const Case& c : cases) {
    if (argc < 2 || std::string_view(argv[1]) == c.policy) demarc::bench::measure(c);
  }
  return 0;
}
