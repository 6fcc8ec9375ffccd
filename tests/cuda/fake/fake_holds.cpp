// The kernel that holds its SM for a time and notes when (src/study/gpu/block_timer.cpp). An SM has
// room for two blocks. Launches wait until they are waited for; then their blocks get places in
// the order in which their streams come free: of launches that come free together those of the
// lowest priority number first, then the ones launched first.
#include <algorithm>
#include <tuple>

#include "fake_launch.hpp"

namespace demarc::fake {
namespace {

constexpr std::uint64_t enqueue_ns = 1000;  // that the host takes for a launch

std::uint64_t ready_ns(const FakeHold& hold) {
  return std::max(hold.stream->busy_until_ns, hold.launched_ns);
}

// Among the first launches of all streams the one that begins first.
std::size_t next_hold(const std::vector<FakeHold>& holds) {
  const auto before = [&holds](std::size_t a, std::size_t b) {
    const auto key = [&holds](std::size_t i) {
      return std::tuple(ready_ns(holds[i]), holds[i].stream->priority, i);
    };
    return key(a) < key(b);
  };
  std::set<const FakeStream*> seen;
  std::size_t best = 0;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (seen.insert(holds[i].stream).second && before(i, best)) best = i;
  }
  return best;
}

void run_hold(FakeGpu& gpu, const FakeHold& hold) {
  auto* record = reinterpret_cast<std::uint64_t*>(hold.records);  // NOLINT: an integer
  const std::uint64_t ready = ready_ns(hold);
  for (std::uint32_t b = 0; b < hold.blocks; ++b, record += 3) {
    const auto free_ns = [&gpu](std::uint32_t sm) -> std::uint64_t& {
      auto& slots = gpu.free_ns[sm];
      return *std::min_element(slots.begin(), slots.end());
    };
    const std::uint32_t sm =
        *std::min_element(hold.sms.begin(), hold.sms.end(), [&](std::uint32_t x, std::uint32_t y) {
          return std::max(free_ns(x), ready) < std::max(free_ns(y), ready);
        });
    std::uint64_t& slot = free_ns(sm);
    record[0] = gpu.config.holds_stray ? (sm + 1) % gpu.sms() : sm;
    record[1] = std::max(slot, ready);
    record[2] = slot = record[1] + hold.ns;
    hold.stream->busy_until_ns = std::max(hold.stream->busy_until_ns, slot);
  }
}

}  // namespace

void enqueue_hold(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch,
                  const std::vector<std::uint32_t>& tpcs) {
  FakeHold hold{stream, {}, launch.grid[0], launch.arguments[1], launch.arguments[0], gpu.now_ns};
  for (const std::uint32_t t : tpcs) {
    for (std::uint32_t i = 0; i < gpu.config.sms_per_tpc; ++i) {
      hold.sms.push_back(t * gpu.config.sms_per_tpc + i);
    }
  }
  gpu.unfinished[hold.records] = reinterpret_cast<CuStream>(stream);
  gpu.holds.push_back(std::move(hold));
  gpu.now_ns += enqueue_ns;
}

void settle_holds(FakeGpu& gpu) {
  while (!gpu.holds.empty()) {
    const auto next = gpu.holds.begin() + static_cast<std::ptrdiff_t>(next_hold(gpu.holds));
    run_hold(gpu, *next);
    gpu.holds.erase(next);
  }
}

}  // namespace demarc::fake
