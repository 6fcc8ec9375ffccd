// Finds the hash bits of L2 slices by latencies, and the constants of other pages.
#include "demarc/device/slice_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "demarc/base/gf2.hpp"
#include "demarc/device/address_map.hpp"

namespace demarc::gpu {
namespace {

constexpr double max_strays = 0.06;  // share of a cluster that may contradict a mask
constexpr double least_votes = 0.5;  // share of the chunks that accept a mask
constexpr double shown_votes = 1.0 / 3;

// Parity of the mask on most members, or nothing when it is not constant.
struct Constancy {
  bool constant = false;
  std::uint32_t value = 0;
};

Constancy constancy(std::span<const std::uint32_t> members, std::uint64_t mask) {
  std::size_t ones = 0;
  // A mask that is not constant shows it on the first few, nearly always.
  constexpr std::size_t first_few = 16;
  for (std::size_t i = 0; i < members.size(); ++i) {
    ones += parity(members[i], mask);
    if (i + 1 == first_few && ones > 3 && ones + 3 < first_few) return {};
  }
  const double share = static_cast<double>(ones) / static_cast<double>(members.size());
  return {share <= max_strays || share >= 1 - max_strays, share > 0.5 ? 1U : 0U};
}

}  // namespace

SliceModel make_slice_model(const LatencyMatrix& latencies, std::uint64_t page_bytes,
                            std::vector<SmIndex> sms) {
  SliceModel model;
  model.sms = std::move(sms);
  model.page_bytes = page_bytes;
  const std::size_t chunks = latencies.count();
  if (chunks == 0) return model;
  model.chunk_bytes = page_bytes / chunks;
  model.clusters = cluster_latencies(
      latencies, static_cast<std::uint32_t>(std::max<std::size_t>(4, chunks / 400)));
  std::vector<std::vector<std::uint32_t>> members(model.clusters.sizes.size());
  for (std::uint32_t i = 0; i < chunks; ++i) members[model.clusters.cluster[i]].push_back(i);

  // Every mask over the visible bits is put to the vote. Chance does not make a parity constant on
  // dozens of chunks, so a mask that even some clusters agree on is real there.
  std::vector<std::vector<std::uint32_t>> few = members;
  for (auto& list : few) {
    if (list.size() > 96) list.resize(96);
  }
  std::vector<double> share(chunks, 0);
  for (std::uint64_t mask = 1; mask < chunks; ++mask) {
    std::size_t votes = 0;
    for (std::size_t c = 0; c < few.size(); ++c) {
      // The first chunks of a large cluster lie low in the page, where high bits are always 0.
      const bool constant =
          constancy(few[c], mask).constant && constancy(members[c], mask).constant;
      if (constant) votes += members[c].size();
    }
    share[mask] = static_cast<double>(votes) / static_cast<double>(chunks);
    if (share[mask] >= shown_votes) model.votes.push_back({mask * model.chunk_bytes, share[mask]});
  }
  std::stable_sort(model.votes.begin(), model.votes.end(),
                   [](const MaskVote& a, const MaskVote& b) { return a.share > b.share; });
  // The largest space, best masks first, all of whose sums are accepted.
  std::vector<std::uint64_t> basis;
  std::vector<std::uint64_t> span{0};
  for (const auto& vote : model.votes) {
    const std::uint64_t mask = vote.mask / model.chunk_bytes;
    if (vote.share < least_votes || std::find(span.begin(), span.end(), mask) != span.end()) {
      continue;
    }
    if (!std::all_of(span.begin(), span.end(),
                     [&](std::uint64_t other) { return share[other ^ mask] >= least_votes; })) {
      continue;
    }
    const std::size_t size = span.size();
    for (std::size_t i = 0; i < size; ++i) span.push_back(span[i] ^ mask);
    basis.push_back(mask * model.chunk_bytes);
  }
  model.masks = low_pivot_basis(basis);
  for (const auto& list : members) {
    std::uint32_t label = 0;
    std::uint32_t known = 0;
    for (std::size_t i = 0; i < model.masks.size(); ++i) {
      const auto bit = constancy(list, model.masks[i] / model.chunk_bytes);
      if (bit.constant) known |= 1U << i;
      label |= bit.value << i;
    }
    model.label.push_back(label);
    model.known.push_back(known);
  }
  return model;
}

PageConstant SliceModel::page_constant(std::span<const std::uint64_t> offsets,
                                       const LatencyMatrix& latencies,
                                       std::size_t first_row) const {
  PageConstant result;
  // Farther than this from every slice is a disturbed measurement.
  const double far = clusters.noise * std::sqrt(static_cast<double>(latencies.dimensions)) * 3;
  std::vector<std::uint32_t> ones(masks.size(), 0);
  std::vector<std::uint32_t> cast(masks.size(), 0);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto match = clusters.match(latencies.row(first_row + i));
    if (match.distance > far) continue;
    ++result.samples;
    for (std::size_t m = 0; m < masks.size(); ++m) {
      if (((known[match.cluster] >> m) & 1U) == 0) continue;
      ++cast[m];
      ones[m] += ((label[match.cluster] >> m) & 1U) ^ parity(offsets[i], masks[m]);
    }
  }
  result.agreement = result.samples == 0 ? 0 : 1;
  for (std::size_t m = 0; m < masks.size(); ++m) {
    const std::uint32_t most = std::max(ones[m], cast[m] - ones[m]);
    if (2 * ones[m] > cast[m]) result.constant |= 1U << m;
    result.agreement =
        std::min(result.agreement, cast[m] < 3 ? 0.0 : static_cast<double>(most) / cast[m]);
  }
  return result;
}

std::vector<std::uint64_t> sample_offsets(std::uint64_t page_bytes, std::uint64_t chunk_bytes,
                                          std::uint32_t count) {
  // Multiples of the golden section: any number of them lies evenly on the page.
  std::vector<std::uint64_t> offsets;
  const std::uint64_t chunks = page_bytes / chunk_bytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t fraction = (i * 0x9e3779b97f4a7c15ULL) >> 32U;
    offsets.push_back(((fraction * chunks) >> 32U) * chunk_bytes);
  }
  return offsets;
}

Result<std::vector<PageConstant>> find_page_constants(const SliceModel& model, std::uint64_t pages,
                                                      std::uint32_t samples,
                                                      const LatencyReader& read,
                                                      const Progress& progress) {
  constexpr std::uint64_t batch = 2048;
  const auto offsets = sample_offsets(model.page_bytes, model.chunk_bytes, samples);
  std::vector<PageConstant> found;
  for (std::uint64_t first = 0; first < pages; first += batch) {
    const std::uint64_t count = std::min(batch, pages - first);
    std::vector<std::uint64_t> addresses;
    addresses.reserve(count * samples);
    for (std::uint64_t page = first; page < first + count; ++page) {
      for (const auto offset : offsets) addresses.push_back(page * model.page_bytes + offset);
    }
    DEMARC_TRY(const LatencyMatrix latencies, read(addresses));
    for (std::uint64_t page = 0; page < count; ++page) {
      found.push_back(model.page_constant(offsets, latencies, page * samples));
    }
    report_progress(progress, static_cast<double>(first + count) / static_cast<double>(pages),
                    "page constants");
  }
  return found;
}

}  // namespace demarc::gpu
