// Times launches beside stores to each remainder, or each colour, of a pool.
#include "demarc/cuda/launch_colors.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "demarc/cuda/probe_kernels.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t place_bytes = 512 << 10;  // small enough to stay in the L2
constexpr double least_difference = 0.05;

// What is written to, and which colours it belongs to.
struct Place {
  std::vector<std::uint32_t> chunks;
  std::vector<std::uint32_t> colors;
};

bool in_window(std::uint32_t remainder, const gpu::RemainderColoring::Window& window,
               std::uint32_t modulus) {
  return (remainder + modulus - window.first) % modulus < window.count;
}

// Each remainder that a colour has.
Result<std::vector<Place>> places_of(const gpu::RemainderColoring& coloring) {
  const gpu::RemainderHash& hash = coloring.hash();
  std::vector<gpu::RemainderColoring::Window> single;
  for (std::uint32_t r = 0; r < hash.modulus; ++r) single.push_back({r, 1});
  DEMARC_TRY(const auto remainders, coloring.with_windows(single));
  std::vector<Place> places;
  for (std::uint32_t r = 0; r < hash.modulus; ++r) {
    Place place;
    for (std::uint32_t c = 0; c < coloring.colors(); ++c) {
      if (in_window(r, coloring.window(c), hash.modulus)) place.colors.push_back(c);
    }
    if (place.colors.empty()) continue;
    const std::uint64_t bytes = std::min(place_bytes, remainders.color_bytes(r));
    for (std::uint64_t at = 0; at < bytes; at += std::uint64_t{1} << hash.chunk_shift) {
      place.chunks.push_back(
          static_cast<std::uint32_t>(remainders.position(at, r) >> hash.chunk_shift));
    }
    places.push_back(std::move(place));
  }
  return places;
}

// Each colour: no smaller piece of it is known.
std::vector<Place> places_of(const ColoredPool& pool) {
  const gpu::Coloring& coloring = pool.coloring();
  const std::uint64_t run = pool.run_bytes();
  const std::uint64_t page = pool.arena().page_bytes();
  std::vector<Place> places(pool.colors());
  for (std::uint64_t at = 0; at < pool.arena().pages() * page; at += run) {
    const std::uint32_t color = coloring.color(at % page, pool.constants()[at / page]);
    if (places[color].chunks.size() * run >= place_bytes) continue;
    places[color].chunks.push_back(static_cast<std::uint32_t>(at / run));
  }
  for (std::uint32_t c = 0; c < places.size(); ++c) places[c].colors.push_back(c);
  return places;
}

}  // namespace

std::vector<std::uint32_t> LaunchFelt::most_felt_first() const {
  std::vector<std::uint32_t> order(of_color.size());
  std::iota(order.begin(), order.end(), 0U);
  // The most felt one comes first, and after it what is as much felt: a difference that is too
  // small between two neighbours may be large enough over three.
  std::vector<std::uint32_t> sorted;
  while (!order.empty()) {
    double most = 0;
    for (const std::uint32_t c : order) most = std::max(most, of_color[c]);
    const auto rest = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t c) {
      return of_color[c] >= most * (1 - least_difference);
    });
    sorted.insert(sorted.end(), order.begin(), rest);
    order.erase(order.begin(), rest);
  }
  return sorted;
}

std::string LaunchFelt::account() const {
  const auto order = most_felt_first();
  if (of_color.empty()) return "no colour was measured";
  if (of_color[order.back()] >= of_color[order.front()] * (1 - least_difference)) {
    return fmt::format("launches feel all colours alike: {:.1f} us beside stores, {:.1f} us alone",
                       of_color[order.front()], alone_us);
  }
  std::string text = fmt::format("launches feel colour {} most: {:.1f} us beside stores to it",
                                 order.front(), of_color[order.front()]);
  for (std::size_t i = 1; i < order.size(); ++i) {
    text += fmt::format(", {:.1f} us beside colour {}", of_color[order[i]], order[i]);
  }
  return text + fmt::format(", {:.1f} us alone", alone_us);
}

Result<LaunchFelt> measure_launches(const ColoredPool& pool) {
  for (std::uint32_t share = 0; share < pool.shares(); ++share) {
    if (pool.usage(share).used_bytes == 0) continue;
    return invalid_input("launches are timed beside stores to the whole pool: share {} is in use",
                         share);
  }
  const GpuPointer& gpu = pool.arena().gpu();
  DEMARC_TRY(const MemoryTimer timer, MemoryTimer::create(gpu));
  DEMARC_TRY(const ProbeKernels kernels, ProbeKernels::load(gpu));
  std::vector<Place> places;
  if (const RemainderColors* remainders = pool.remainders()) {
    DEMARC_TRY(places, places_of(remainders->coloring));
  } else {
    places = places_of(pool);
  }
  LaunchFelt felt;
  DEMARC_TRY(felt.alone_us, timer.launch_seconds(pool.arena().address(), {}, kernels.idle()));
  felt.alone_us *= 1e6;
  std::vector<std::uint32_t> count(pool.colors());
  felt.of_color.resize(pool.colors());
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(pool.run_bytes()));
  for (const Place& place : places) {
    DEMARC_TRY(const double seconds,
               timer.launch_seconds(pool.arena().address(), {place.chunks, shift, true, false},
                                    kernels.idle()));
    felt.beside_us.push_back(seconds * 1e6);
    for (const std::uint32_t color : place.colors) {
      felt.of_color[color] += felt.beside_us.back();
      ++count[color];
    }
  }
  for (std::size_t c = 0; c < count.size(); ++c) felt.of_color[c] /= std::max(count[c], 1U);
  return felt;
}

}  // namespace demarc::cuda
