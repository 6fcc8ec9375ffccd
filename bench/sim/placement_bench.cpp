// What the `locality` policy is worth on a simulated GPU: sectors read from and written to the L2,
// and cycles, beside those of a round robin that skips full SMs. Maps are those of
// `demarc locality --granularity 32 --count distinct --json --maps`.
//
//   demarc_placement_bench [KERNEL[@SCALE] ...]
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "demarc/locality/analyse.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/sim/memory/emulated.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::bench {
namespace {

using namespace sim::memory;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

struct Kernel {
  std::shared_ptr<const PackedLaunch> steps;
  std::shared_ptr<const sim::BlockSharing> sharing;
  Translation translation;  // from the first buffer on, in one piece
};

Kernel prepare(const std::string& spec) {
  const std::size_t at = spec.find('@');
  gpu::LaunchFileOptions options;
  if (at != std::string::npos) options.scale = spec.substr(at + 1);
  const gpu::Launch launch = must(workload::instance(spec.substr(0, at), options));
  const ptx::Module module =
      must(ptx::parse_whole(must(workload::ptx_text(launch, 90)), launch.ptx));
  locality::Options map;
  map.granularity = locality::Granularity::sector;
  map.count = locality::Count::distinct;
  const auto inter = must(locality::analyse(module, launch, map)).inter;
  std::vector<sim::SharedPlaces> sets;
  for (const locality::SharedPlaces& set : inter.sets) {
    sets.push_back({set.places, {}});
    for (const std::uint32_t block : set.blocks) sets.back().blocks.emplace_back(block);
  }
  constexpr std::uint32_t page_shift = 21;
  const auto addresses = gpu::default_addresses(launch);
  Translation translation{sim::Address(addresses.front()), page_shift, {}};
  const std::uint64_t end = addresses.back() + launch.buffers.back().bytes;
  for (std::uint64_t a = addresses.front(); a < end; a += std::uint64_t{1} << page_shift) {
    translation.chunks.emplace_back(a - addresses.front());
  }
  return {must(record_launch(module, launch)).launch,
          std::make_shared<const sim::BlockSharing>(inter.map.size, sets), translation};
}

struct Launch {
  std::uint64_t loads = 0;   // sectors that the L2 was asked for
  std::uint64_t stores = 0;  // sectors written
  double cycles = 0;
  [[nodiscard]] double sectors() const { return static_cast<double>(loads + stores); }
};

// The first launch, from cold caches, and the third.
std::array<Launch, 2> run(const Kernel& kernel, const Spec& spec, std::uint32_t sms,
                          std::string_view policy) {
  Simulation gpu(spec);
  ClientSpec client;
  client.name = policy;
  for (const sim::SmIndex sm : indices<sim::SmIndex>(sms)) client.sms.push_back(sm);
  client.translation = kernel.translation;
  client.source = replay_launch(kernel.steps);
  client.dispatch = must(sim::find_policy(policy));
  client.sharing = kernel.sharing;
  const ClientIndex number = gpu.add_client(std::move(client));
  std::array<Launch, 3> launches;
  Launch before;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (auto done = gpu.run_launches(number, i + 1); !done) {
      fmt::print(stderr, "{}\n", done.error().message);
      std::exit(1);
    }
    const ClientStatistics& now = gpu.statistics(number);
    const std::uint64_t loads = now.l2_hit_sectors + now.l2_miss_sectors;
    launches[i] = {loads - before.loads, now.store_sectors - before.stores,
                   static_cast<double>(now.run_cycles[i].raw())};
    before = {loads, now.store_sectors, 0};
  }
  return {launches.front(), launches.back()};
}

void compare(const std::string& name, const char* device) {
  const Kernel kernel = prepare(name);
  const Spec spec = must(make_spec(must(gpu::find_device(device))));
  for (const std::uint32_t sms : {8U, 16U}) {
    const auto round_robin = run(kernel, spec, sms, "rr-skip");
    const auto locality = run(kernel, spec, sms, "locality");
    fmt::print("{:<16} {:<9} {:>2} SMs", name, device, sms);
    for (std::size_t i = 0; i < locality.size(); ++i) {
      const Launch& rr = round_robin[i];
      const Launch& found = locality[i];
      fmt::print(
          "; {} launch: {:>7} -> {:>7} sectors ({:+6.1f} %), {:>6} -> {:>6} cycles "
          "({:+6.1f} %)",
          i == 0 ? "first" : "third", rr.sectors(), found.sectors(),
          100 * (found.sectors() / rr.sectors() - 1), rr.cycles, found.cycles,
          100 * (found.cycles / rr.cycles - 1));
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace demarc::bench

int main(int argc, char** argv) {
  std::vector<std::string> kernels(argv + 1, argv + argc);
  if (kernels.empty()) {
    kernels = {"matmul_tiled", "stencil2d", "conv2d", "stencil3d", "cfd", "hotspot"};
  }
  for (const std::string& kernel : kernels) {
    for (const char* device : {"h100-sxm", "gtx1080"}) demarc::bench::compare(kernel, device);
  }
  return 0;
}
