// Hit rates of L1 and L2, predicted from what a launch touches and what the GPU is: an index that
// knows coalescing, the placement of blocks on SMs, reuse distances and cache sizes, which the
// locality paper names as future work. No GPU is needed.
//
// The model: blocks are placed on SMs in order, as many at a time as fit, the next one when one is
// done; warps of an SM take turns, one memory request each; a request looks up its distinct
// 32-byte sectors. L1 is write-through and does not allocate on stores; L2 allocates on stores
// without reading memory. Both start empty, with lines of the device's size, sectors filled one by
// one, least recently used lines replaced.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/gpu/device.hpp"
#include "demarc/locality/runs.hpp"

namespace demarc::locality {

struct PredictOptions {
  std::uint32_t shared_bytes_per_block = 0;  // static and dynamic
  std::uint64_t most_requests = 30'000'000;  // more warp requests: the rest is left out
  double l2_share = 1;                       // of the L2 that the kernel may use
};

struct CachePrediction {
  std::uint32_t sms = 0;            // that get a block
  std::uint32_t blocks_per_sm = 0;  // at a time
  double l1_hit_rate = 0;           // of the sectors that loads look up
  double l2_hit_rate = 0;           // of the sectors that reach the L2, stores included
  std::uint64_t l1_sectors = 0;
  std::uint64_t l2_sectors = 0;
  std::uint64_t dram_bytes = 0;  // read into and written back from the L2
  bool complete = true;          // false: most_requests was reached
};

[[nodiscard]] CachePrediction predict_caches(const AccessRuns& runs, const gpu::Device& device,
                                             const PredictOptions& options = {});

// What the kernel loses with half the L2, and what it may take from a neighbour. Times are lower
// bounds from the bandwidths of DRAM, L2 and L1 alone: a kernel that computes more demands less.
struct Sensitivity {
  CachePrediction whole;
  CachePrediction half;
  double time_s = 0;               // lower bound with the whole L2
  double half_l2_slowdown = 1;     // lower bound with half of it / with the whole
  double dram_demand_bytes_s = 0;  // upper bound of the bandwidth it asks of DRAM
  double dram_demand_share = 0;    // of what the device has
};
[[nodiscard]] Sensitivity predict_sensitivity(const AccessRuns& runs, const gpu::Device& device,
                                              const PredictOptions& options = {});

// Which GPU touches which page when the blocks are split over GPUs in contiguous parts.
struct PageSplit {
  std::uint64_t page_bytes = 0;
  std::uint32_t gpus = 0;
  std::uint64_t pages = 0;
  std::vector<std::uint64_t> pages_by_sharers;  // [k]: pages that k + 1 GPUs touch
  double shared_access_share = 0;               // of accesses that go to pages of several GPUs
  double remote_access_share = 0;               // when every page lies where it is touched most
  std::vector<std::uint64_t> first_pages;       // addresses of the pages of the map, ascending
  std::vector<std::vector<std::uint64_t>> accesses;  // [gpu][page]; at most most_pages pages
};
[[nodiscard]] PageSplit split_pages(const AccessRuns& runs, std::uint32_t gpus,
                                    std::uint64_t page_bytes, std::size_t most_pages = 2000);

}  // namespace demarc::locality
