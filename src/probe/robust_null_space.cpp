// Finds the masks that nearly all of some vectors have in common, even if some of these are wrong.
#include "robust_null_space.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "demarc/base/gf2.hpp"
#include "demarc/device/address_map.hpp"

namespace demarc::probe {
namespace {

bool annihilated(std::uint64_t difference, std::span<const std::uint64_t> masks) {
  return std::all_of(masks.begin(), masks.end(),
                     [&](std::uint64_t mask) { return parity(difference, mask) == 0; });
}

std::vector<std::uint64_t> inliers_of(std::span<const std::uint64_t> differences,
                                      std::span<const std::uint64_t> masks) {
  std::vector<std::uint64_t> kept;
  for (const auto difference : differences) {
    if (annihilated(difference, masks)) kept.push_back(difference);
  }
  return kept;
}

// Bits saved by describing `count` differences of `bits` bits through `masks` masks that `inliers`
// of them obey (minimum description length): an inlier needs one bit less a mask, the masks and the
// list of exceptions have to be paid for. What chance alone finds saves nothing.
double saved_bits(std::size_t count, std::size_t inliers, std::size_t masks, std::size_t bits) {
  const double share = static_cast<double>(inliers) / static_cast<double>(count);
  const double entropy =
      share <= 0 || share >= 1 ? 0 : -share * std::log2(share) - (1 - share) * std::log2(1 - share);
  return static_cast<double>(inliers * masks) - static_cast<double>(masks * bits) -
         entropy * static_cast<double>(count);
}

}  // namespace

RobustNullSpace robust_null_space(std::span<const std::uint64_t> differences, std::uint64_t columns,
                                  double least_share, Random& random) {
  RobustNullSpace best;
  if (differences.empty()) return best;
  const auto bits = static_cast<std::size_t>(std::popcount(columns));
  const std::size_t sample = std::min(differences.size(), bits + 6);
  const auto needed =
      static_cast<std::size_t>(least_share * static_cast<double>(differences.size()));
  constexpr int max_tries = 1500;
  constexpr int tries_after_success = 500;
  double max_saved = 10;  // a thousand to one
  int left = max_tries;
  std::vector<std::uint64_t> order(differences.begin(), differences.end());
  for (int attempt = 0; left > 0; ++attempt, --left) {
    // The first attempt takes everything: without wrong differences it is already right. Later ones
    // take samples of four sizes, so that a small rank is found from few.
    std::size_t take = order.size();
    if (attempt > 0) {
      take = std::clamp<std::size_t>(sample * static_cast<std::size_t>(attempt % 4 + 1) / 4, 1,
                                     order.size());
      for (std::size_t i = 0; i < take; ++i) {
        std::swap(order[i], order[i + random.below(order.size() - i)]);
      }
    }
    const auto masks = gf2_null_space(std::span(order).first(take), columns);
    if (masks.empty()) continue;
    const auto kept = inliers_of(differences, masks);
    if (kept.size() < needed) continue;
    const double saved = saved_bits(differences.size(), kept.size(), masks.size(), bits);
    if (saved > max_saved) {
      max_saved = saved;
      best.masks = gpu::low_pivot_basis(masks);
      best.inliers = kept.size();
      best.rank = gf2_rank(kept);
      left = tries_after_success;
    }
  }
  return best;
}

}  // namespace demarc::probe
