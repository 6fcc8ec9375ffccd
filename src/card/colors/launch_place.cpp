// Times launches of several streams beside traffic to each share of a pool.
#include "demarc/card/launch_place.hpp"

#include <algorithm>
#include <bit>

#include "colors/measuring.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t dram_bytes = std::uint64_t{128} << 20U;  // beyond the L2
constexpr std::uint64_t l2_bytes = std::uint64_t{4} << 20U;
constexpr double least_difference = 0.01;

constexpr std::uint64_t gate_cycles = 2'000'000;
constexpr std::uint32_t launches_a_batch = 100;
constexpr std::uint32_t place_batches = 3;

struct Traffic {
  std::uint64_t bytes;
  bool writes;
};
constexpr Traffic kinds[] = {{dram_bytes, false}, {dram_bytes, true}, {l2_bytes, true}};

// Traffic runs outside of `own`; everywhere where nothing is: it leaves room for small blocks.
SmRoles roles_beside(const Card& card, const gpu::TpcSet& own) {
  SmRoles roles(card.gpu()->sm_count(), 1);
  if ((gpu::all_tpcs(card.topology()) - own).empty()) return roles;
  for (const gpu::SmIndex sm : gpu::sms_of(card.topology(), own)) {
    if (sm < roles.next_key()) roles[sm] = 0;
  }
  return roles;
}

}  // namespace

Result<LaunchTimer> LaunchTimer::create(CardPointer card) {
  DEMARC_TRY(auto counts, placement_counters(card->gpu(), card->kernels()));
  DEMARC_TRY(auto begin, Event::create(card->gpu()));
  DEMARC_TRY(auto end, Event::create(card->gpu()));
  return LaunchTimer(std::move(card), std::move(counts), std::move(begin), std::move(end));
}

Result<double> LaunchTimer::microseconds(const Stream& stream) const {
  std::vector<double> times;
  for (std::uint32_t batch = 0; batch < place_batches; ++batch) {
    DEMARC_CHECK(launch(stream, card_->kernels().where(), LaunchShape::line(1, 32),
                        counts_.address(), DevicePointer{0}, gate_cycles));
    DEMARC_CHECK(begin_.record(stream));
    for (std::uint32_t i = 0; i < launches_a_batch; ++i) {
      DEMARC_CHECK(launch(stream, card_->kernels().idle(), LaunchShape::line(1, 32)));
    }
    DEMARC_CHECK(end_.record(stream));
    DEMARC_CHECK(stream.wait());
    DEMARC_TRY(const double milliseconds, end_.milliseconds_since(begin_));
    times.push_back(milliseconds * 1e3 / launches_a_batch);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double LaunchTimes::beside_others(const LaunchPlace& place) const {
  const std::vector<double>& times = beside.at(place.stream);
  double sum = 0;
  for (std::size_t share = 0; share < times.size(); ++share) {
    if (share != place.share) sum += times[share];
  }
  return times.size() < 2 ? alone.at(place.stream) : sum / static_cast<double>(times.size() - 1);
}

LaunchPlace LaunchTimes::quietest(std::optional<std::uint32_t> own_share) const {
  LaunchPlace best{0, own_share.value_or(0)};
  for (std::size_t stream = 0; stream < beside.size(); ++stream) {
    for (std::uint32_t share = 0; share < beside[stream].size(); ++share) {
      const LaunchPlace place{stream, share};
      if (own_share && *own_share != share) continue;
      if (beside_others(place) < beside_others(best) * (1 - least_difference)) best = place;
    }
  }
  return best;
}

Result<LaunchTimes> time_launches(const CardPointer& card, ColoredPool& pool,
                                  std::span<const Stream* const> streams, const gpu::TpcSet& own) {
  DEMARC_TRY(const LaunchTimer launches, LaunchTimer::create(card));
  DEMARC_TRY(const MemoryTimer timer, MemoryTimer::create(card->gpu()));
  const auto roles = roles_beside(*card, own);
  const DevicePointer arena = pool.arena().address();
  LaunchTimes times;
  for (const Stream* stream : streams) {
    DEMARC_TRY(times.alone.emplace_back(), launches.microseconds(*stream));
  }
  times.beside.assign(streams.size(), std::vector<double>(pool.shares()));
  for (std::uint32_t share = 0; share < pool.shares(); ++share) {
    DEMARC_TRY(const ColoredBuffer buffer, whole_chunks(pool, share, dram_bytes));
    for (const Traffic& kind : kinds) {
      const auto chunks = chunks_of(buffer, kind.bytes);
      const TimedStream traffic{
          chunks, static_cast<std::uint32_t>(std::countr_zero(pool.colors().run_bytes())),
          kind.writes, false};
      for (std::size_t s = 0; s < streams.size(); ++s) {
        DEMARC_TRY(const double taken, timer.beside(arena, traffic, roles, [&] {
          return launches.microseconds(*streams[s]);
        }));
        times.beside[s][share] += taken / std::size(kinds);
      }
    }
  }
  return times;
}

}  // namespace demarc::cuda
