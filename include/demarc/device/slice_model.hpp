// Finds L2 slices by the latencies of one reference page, then the hash bits that are constant on
// every slice, and from these the constant of any other page.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/device/latency_clusters.hpp"
#include "demarc/device/units.hpp"

namespace demarc::gpu {

struct MaskVote {
  std::uint64_t mask = 0;
  double share = 0;  // share of the chunks, in clusters on which the parity of the mask is constant
};

struct PageConstant {
  std::uint32_t constant = 0;  // bit i belongs to masks[i] of the model
  double agreement = 0;        // least share of samples, over the bits, that agree with it
  std::uint32_t samples = 0;   // that had a clear slice
  [[nodiscard]] bool certain() const { return agreement >= 0.9; }
};

struct SliceModel {
  std::vector<SmIndex> sms;  // where latencies are measured from: the columns
  std::uint64_t page_bytes = 0;
  std::uint64_t chunk_bytes = 0;  // bytes of the reference measurement
  LatencyClusters clusters;
  std::vector<std::uint64_t> masks;  // low-pivot basis of what is constant on clusters
  std::vector<MaskVote> votes;       // every mask with a share of at least one third, best first
  std::vector<std::uint32_t> label;  // per cluster: parities of the masks on the reference page
  std::vector<std::uint32_t> known;  // per cluster: the bits of its label that are certain; two
                                     // slices that look alike make one cluster with unknown bits

  // From samples of one page: row i of `latencies` was measured at offsets[i] of the page.
  [[nodiscard]] PageConstant page_constant(std::span<const std::uint64_t> offsets,
                                           const LatencyMatrix& latencies,
                                           std::size_t first_row = 0) const;
};

// `latencies` has one row for each chunk of the reference page, in order. There are at most 2^16
// chunks.
[[nodiscard]] SliceModel make_slice_model(const LatencyMatrix& latencies, std::uint64_t page_bytes,
                                          std::vector<SmIndex> sms);

// Offsets of `count` chunks spread evenly but irregularly over a page, for page_constant().
[[nodiscard]] std::vector<std::uint64_t> sample_offsets(std::uint64_t page_bytes,
                                                        std::uint64_t chunk_bytes,
                                                        std::uint32_t count);

// Times chunks at these addresses from the model's SMs; there is one row per address, in order.
using LatencyReader = std::function<Result<LatencyMatrix>(std::span<const std::uint64_t>)>;

// Finds the constants of pages that follow each other from address 0 on, by `samples` chunks of
// each.
[[nodiscard]] Result<std::vector<PageConstant>> find_page_constants(const SliceModel& model,
                                                                    std::uint64_t pages,
                                                                    std::uint32_t samples,
                                                                    const LatencyReader& read,
                                                                    const Progress& progress = {});

}  // namespace demarc::gpu
