// Sector requests a second of the memory simulation on one core, on the H100 description.
//
// Target: 2 million. Limit: the same steps pulled from the source and no memory behind them.
#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <ctime>

#include "demarc/sim/memory/simulation.hpp"
#include "demarc/sim/memory/synthetic.hpp"

namespace {

using namespace demarc::sim::memory;

// CPU time of this thread: other work on the machine does not count.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Case {
  const char* name;
  Walk walk;
};

double pulled_per_second(const Case& test) {
  const double start = cpu_seconds();
  std::uint64_t sectors = 0;
  const auto source = walk_source(test.walk);
  (void)source->restart();
  KernelShape shape;
  (void)source->next_kernel(shape);
  Step step;
  for (std::uint32_t b = 0; b < shape.blocks; ++b) {
    const auto block = source->next_block().value();
    for (std::uint32_t w = 0; w < shape.warps(); ++w) {
      do {
        block->next(w, step);
        for (std::size_t i = 0; i < step.count; ++i) {
          sectors += static_cast<std::uint64_t>(std::popcount(step.lines[i].sectors()));
        }
      } while (step.kind != StepKind::end);
    }
  }
  return static_cast<double>(sectors) / (cpu_seconds() - start);
}

}  // namespace

int main() {
  const auto device = demarc::gpu::find_device("h100-sxm");
  const auto spec = make_spec(device.value());
  if (!spec) {
    fmt::print(stderr, "{}\n", spec.error().message);
    return EXIT_FAILURE;
  }
  fmt::print("{}", spec_text(*spec));
  const auto every = spec->gpc_of_sm.keys();
  const std::vector<demarc::sim::SmIndex> sms(every.begin(), every.end());
  Walk stream{.bytes = std::uint64_t{64} << 20U, .blocks = 1056, .threads = 256};
  Walk scattered = stream;
  scattered.sectors = 1;
  scattered.order = WalkOrder::random;
  Walk writes = stream;
  writes.kind = StepKind::store;
  const Case cases[] = {{"streamed reads, 4 sectors a line", stream},
                        {"scattered reads, 1 sector a line", scattered},
                        {"streamed writes, 4 sectors a line", writes}};
  bool reached = true;
  for (const Case& test : cases) {
    Simulation gpu(*spec);
    const auto client = gpu.add_client({test.name, sms, walk_source(test.walk), {}});
    const double start = cpu_seconds();
    const auto ran = gpu.run_launches(client, 1);
    const double seconds = (cpu_seconds() - start);
    if (!ran) {
      fmt::print(stderr, "{}\n", ran.error().message);
      return EXIT_FAILURE;
    }
    const auto& statistics = gpu.statistics(client);
    const double rate = static_cast<double>(statistics.sectors()) / seconds;
    const double simulated = static_cast<double>(statistics.run_cycles[0].raw()) / spec->clock_hz;
    reached = reached && rate >= 2e6;
    fmt::print(
        "{}: {:.2f} M sector requests/s (target 2, limit of the source {:.0f}); {:.0f} GB/s "
        "simulated\n",
        test.name, rate / 1e6, pulled_per_second(test) / 1e6,
        static_cast<double>(statistics.sectors() * sector_bytes) / simulated / 1e9);
  }
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}
