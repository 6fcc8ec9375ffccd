#include "gpu/page_colors.hpp"

#include <algorithm>
#include <limits>

#include "demarc/base/gf2.hpp"
#include "demarc/base/parallel.hpp"

namespace demarc::study {
namespace {

// The reference sample nearest to `sample`, other than number `except`.
std::size_t nearest_reference(const LatencySamples& reference, const std::vector<float>& sample,
                              std::size_t except) {
  std::size_t best = 0;
  float least = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < reference.latencies.size(); ++i) {
    if (i == except) continue;
    float distance = 0;
    for (std::size_t s = 0; s < sample.size(); ++s) {
      // A sample disturbed on one SM must not move far.
      const float d = std::min(std::abs(sample[s] - reference.latencies[i][s]), 12.0F);
      distance += d * d;
    }
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

std::uint32_t parities(std::uint64_t offset, std::span<const std::uint64_t> masks) {
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < masks.size(); ++j) bits |= parity(offset, masks[j]) << j;
  return bits;
}

}  // namespace

Result<PageColors> find_page_colors(const LatencySamples& reference, const LatencySamples& samples,
                                    std::span<const std::uint64_t> masks, std::uint64_t page_bytes,
                                    std::uint32_t pages) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::uint32_t> of_reference;
  for (const std::uint64_t offset : reference.offsets) {
    of_reference.push_back(parities(offset % page_bytes, masks));
  }
  std::size_t consistent = 0;
  for (std::size_t i = 0; i < reference.offsets.size(); ++i) {
    const std::size_t other = nearest_reference(reference, reference.latencies[i], i);
    if (of_reference[other] == of_reference[i]) ++consistent;
  }
  if (consistent * 10 < reference.offsets.size() * 8) {
    return check_failed(
        "colours: only {} of {} samples of a page have the colour of the sample "
        "with the nearest latencies; the masks are no function of the L2 slice "
        "here",
        consistent, reference.offsets.size());
  }
  std::vector<std::uint32_t> seen(samples.offsets.size());
  parallel_for(samples.offsets.size(), 0, [&](std::size_t i) {
    const std::size_t near = nearest_reference(reference, samples.latencies[i], none);
    seen[i] = of_reference[near] ^ parities(samples.offsets[i] % page_bytes, masks);
  });
  std::vector<std::vector<std::uint32_t>> votes(pages,
                                                std::vector<std::uint32_t>(1U << masks.size()));
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::uint64_t page = samples.offsets[i] / page_bytes;
    if (page < pages) ++votes[page][seen[i]];
  }
  PageColors out;
  for (const auto& of_page : votes) {
    const auto winner = std::max_element(of_page.begin(), of_page.end());
    std::uint32_t all = 0;
    for (const std::uint32_t n : of_page) all += n;
    out.constants.push_back(static_cast<std::uint32_t>(winner - of_page.begin()));
    out.agreement.push_back(all == 0 ? 0 : static_cast<float>(*winner) / static_cast<float>(all));
  }
  return out;
}

}  // namespace demarc::study
