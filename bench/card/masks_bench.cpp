// What masks cost: setting one, and a launch with one over a launch without. Kinds of launches are
// taken in turns; differences are paired round by round, and their median counts.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "demarc/card/masks.hpp"

namespace {

using namespace demarc;        // NOLINT: a program of its own
using namespace demarc::cuda;  // NOLINT
using Clock = std::chrono::steady_clock;

constexpr int rounds = 1000;
constexpr int launches = 32;  // of a kind in a round

double nanoseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Kind {
  const char* name;
  std::vector<double> cost;  // per launch, one a round
};

Result<double> one_round(const Stream& stream, const Function& idle) {
  double each[launches];
  for (double& cost : each) {
    const auto begin = Clock::now();
    DEMARC_CHECK(launch(stream, idle, LaunchShape::line(1, 32)));
    cost = nanoseconds(begin);
  }
  DEMARC_CHECK(stream.wait());
  std::sort(each, each + launches);
  return each[launches / 2];
}

Result<void> measure() {
  DEMARC_TRY(const auto card, open_card(0));
  DEMARC_TRY(LaunchHook * hook, card->hook());
  DEMARC_TRY(const StreamMasks* masks, card->stream_masks());
  const GpuPointer& gpu = card->gpu();
  DEMARC_TRY(const Stream plain, Stream::create(gpu));
  DEMARC_TRY(const Stream masked, Stream::create(gpu));
  const Function& idle = card->kernels().idle();
  const gpu::TpcSet half = gpu::TpcSet::first(card->topology().tpc_count() / 2);
  DEMARC_TRY(const HardwareMask hardware, card->hardware_mask(half));

  std::vector<double> setting;
  std::vector<double> clock;
  for (int i = 0; i < 20000; ++i) {
    auto begin = Clock::now();
    DEMARC_CHECK(masks->set(masked.handle(), half));
    setting.push_back(nanoseconds(begin));
    begin = Clock::now();
    clock.push_back(nanoseconds(begin));
  }
  std::printf("%s, driver %s; masks of streams kept by %s; the clock itself: %.0f ns\n",
              gpu->name().c_str(), gpu->driver().driver_version().c_str(),
              masks->uses_hook() ? "the launch hook" : "the driver", median_of(clock));
  std::printf("setting a stream mask: %.0f ns (target 1000 ns)\n", median_of(setting));

  Kind kinds[] = {{"no mask", {}},
                  {"no mask again", {}},
                  {"stream mask", {}},
                  {"process mask", {}},
                  {"next-launch mask", {}}};
  for (int round = -20; round < rounds; ++round) {
    double cost[5];
    // Every other round backwards, so that no kind is always the first.
    for (int step = 0; step < 5; ++step) {
      const int k = round % 2 == 0 ? step : 4 - step;
      if (k == 3) hook->set_process_mask(hardware);
      if (k == 4) {
        double each[launches];
        for (double& one : each) {
          const auto begin = Clock::now();
          hook->set_next_mask(hardware);
          DEMARC_CHECK(launch(plain, idle, LaunchShape::line(1, 32)));
          one = nanoseconds(begin);
        }
        DEMARC_CHECK(plain.wait());
        std::sort(each, each + launches);
        cost[k] = each[launches / 2];
        continue;
      }
      DEMARC_TRY(cost[k], one_round(k == 2 ? masked : plain, idle));
      if (k == 3) hook->set_process_mask(std::nullopt);
    }
    if (round < 0) continue;
    for (int k = 0; k < 5; ++k) kinds[k].cost.push_back(cost[k]);
  }
  for (const Kind& kind : kinds) {
    std::vector<double> added;
    for (int r = 0; r < rounds; ++r) {
      added.push_back(kind.cost[static_cast<std::size_t>(r)] -
                      kinds[0].cost[static_cast<std::size_t>(r)]);
    }
    std::sort(added.begin(), added.end());
    std::printf("launch, %-18s %6.0f ns, added %+5.0f ns (quartiles %+.0f, %+.0f; target 50)\n",
                kind.name, median_of(kind.cost), added[rounds / 2], added[rounds / 4],
                added[rounds * 3 / 4]);
  }
  return {};
}

}  // namespace

int main() {
  if (const auto done = measure(); !done) {
    std::printf("masks_bench: not run: %s\n", done.error().message.c_str());
  }
  return 0;
}
