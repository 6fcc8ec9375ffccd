// Hit rates of L1 and L2, predicted from what a launch touches and what the GPU is. This index
// knows coalescing, the placement of blocks on SMs, reuse distances and cache sizes; the locality
// paper names such an index as future work. No GPU is needed.
//
// The model: blocks are dealt to the SMs, one GPC after the other, as many at a time as fit. When a
// block is done, the next takes its place. Warps of an SM take turns, with one memory request each.
// A request looks up its distinct 32-byte sectors, line by line. L1 is write-through and does not
// allocate on stores. If the SMs of a TPC ask for the same thing in the same turn, the L2 is asked
// once. The L2 has two halves on GPUs that have them (l2_model.hpp). All caches start empty, with
// lines of the device's size, least recently used lines replaced. docs/locality.md says what is
// left out, and how far from hardware counters it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/device.hpp"
#include "demarc/locality/runs.hpp"

namespace demarc::locality {

struct PredictOptions {
  std::uint32_t shared_bytes_per_block = 0;  // static and dynamic
  std::uint64_t max_requests = 10'000'000;   // further warp requests are left out
  std::uint64_t max_lines = 40'000'000;      // the largest number of lines that requests touch,
                                             // summed over requests
  double l2_share = 1;                       // share of the L2 that the kernel may use
  // Of predict_repeated. The runs are a beginning only (Collected::cut) ...
  bool beginning = false;
  // ... of a workload that goes through so many bytes. From this follows how much of it the L2
  // still holds from the run before.
  std::uint64_t buffer_bytes = ~std::uint64_t{0};
};

// The requests that were followed are cut into ten parts, one after the other. These are the lowest
// and the highest hit rate of a part.
struct RateInterval {
  double low = 0;
  double high = 0;
  friend bool operator==(const RateInterval&, const RateInterval&) = default;
};

struct CachePrediction {
  std::uint32_t sms = 0;            // that get a block
  std::uint32_t blocks_per_sm = 0;  // at a time
  double l1_hit_rate = 0;           // rate of the sectors that loads look up
  double l2_hit_rate = 0;           // rate of the sectors that reach the L2, stores included
  double l2_read_hit_rate = 0;      // of those that loads ask for
  std::uint64_t l1_sectors = 0;
  std::uint64_t l2_sectors = 0;
  std::uint64_t l2_read_sectors = 0;
  std::uint64_t l2_atomic_sectors = 0;
  std::uint64_t dram_read_bytes = 0;
  std::uint64_t dram_bytes = 0;  // read into the L2 and, sooner or later, written back
  double blocks = 0;             // that were followed
  double block_wait_cycles = 0;  // the latencies that a warp of a block waits for, mean
  double load_line_cycles = 0;   // all lines asked of the L2, each for its latency
  double store_line_cycles = 0;  // all lines written, each for the L2's latency
  std::uint64_t requests = 0;    // requests of warps, that were followed
  bool complete = true;          // false: max_requests or max_lines was reached
  // Where it was, of one launch.
  RateInterval l1_interval;
  RateInterval l2_interval;
};

[[nodiscard]] CachePrediction predict_caches(const AccessRuns& runs, const gpu::Device& device,
                                             const PredictOptions& options = {});

// What the kernel loses with half the L2, and what it may take from a neighbour. Its time is the
// largest of the times that DRAM, L2 and L1 need for the bytes they deliver and the time that warps
// wait for latencies, but at least two microseconds. Arithmetic is left out: a kernel that computes
// much takes longer and demands less.
struct Sensitivity {
  CachePrediction whole;
  CachePrediction half;
  double time_s = 0;            // with the whole L2
  double half_l2_slowdown = 1;  // time with half of it / with the whole
  // On half of the SMs: time with half of the L2 and of the bandwidths / with all of the memory.
  double half_memory_slowdown = 1;
  double dram_demand_bytes_s = 0;  // the bandwidth it asks of DRAM
  double dram_demand_share = 0;    // of what the device has
  double l2_demand_share = 0;      // of what the slices of its L2 deliver; 0: how many is not known
};
[[nodiscard]] Sensitivity predict_sensitivity(const AccessRuns& runs, const gpu::Device& device,
                                              const PredictOptions& options = {});

// check_failed names a hit rate that is not between 0 and 1.
[[nodiscard]] Result<void> check_rates(const Sensitivity& sensitivity);

// A kernel of a workload that runs over and over, as the victims and aggressors of a study do.
struct RepeatedKernel {
  const AccessRuns* runs = nullptr;
  std::uint32_t shared_bytes_per_block = 0;  // in place of PredictOptions'
  double times = 1;                          // launches like this one in a run of the workload
  std::uint64_t blocks = 0;                  // of the launch, if `runs` has only its first ones
};

// The same for such a workload. Its kernels run one after the other, each with empty L1s and the L2
// as the one before left it. The second pass counts. Rates are over all launches together. If a
// pass takes more than max_requests, or `beginning` says that there is more, only the beginning
// counts, from empty caches, with what it leaves to be written back.
[[nodiscard]] Sensitivity predict_repeated(std::span<const RepeatedKernel> kernels,
                                           const gpu::Device& device,
                                           const PredictOptions& options = {});

}  // namespace demarc::locality
