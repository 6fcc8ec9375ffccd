// The one view that the probe has of a GPU's memory: reads and streams, and how long they take. A
// real card (GpuMemory) and planted memories (PlantedMemory) implement it; the probe cannot tell
// which one it has.
//
// Addresses are physical if facts().physical_addresses holds. Otherwise they count from the start
// of an arena of pages whose physical places are not known. Then bits below page_bytes are those of
// the physical address, and page p lies at p * page_bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/latency_clusters.hpp"
#include "demarc/device/units.hpp"

namespace demarc::probe {

struct MemoryFacts {
  std::string name;
  bool physical_addresses = false;
  std::uint32_t address_bits = 0;  // addresses lie in [0, 1 << address_bits) when physical
  std::uint64_t page_bytes = 0;    // when not physical
  std::uint64_t pages = 0;         // when not physical
  std::uint32_t sms = 0;
  std::uint64_t l2_bytes = 0;
  std::uint32_t line_bytes = 128;
};

// A walk over chunks of 1 << chunk_shift bytes; chunk c lies at c << chunk_shift.
struct Stream {
  std::vector<std::uint32_t> chunks;
  std::uint32_t chunk_shift = 12;
  bool writes = false;
  bool latency = false;  // true: one dependent load at a time; false: as many as fit
};

class TimedMemory {
 public:
  TimedMemory() = default;
  TimedMemory(const TimedMemory&) = delete;
  TimedMemory& operator=(const TimedMemory&) = delete;
  virtual ~TimedMemory() = default;

  [[nodiscard]] virtual const MemoryFacts& facts() const = 0;

  // Cycles until `primary` and secondaries[i] have both arrived (Algorithm 1 of Fractional GPUs).
  // They are asked for together and are in no cache. Physical addresses only.
  virtual Result<std::vector<float>> uncached_pairs(std::uint64_t primary,
                                                    std::span<const std::uint64_t> secondaries) = 0;

  // For each candidate: reads `first`, every line of `then` in order and the candidate, and times a
  // second read of `first`, in cycles (Algorithm 2). Physical addresses only.
  virtual Result<std::vector<float>> reread(std::uint64_t first,
                                            std::span<const std::uint64_t> then,
                                            std::span<const std::uint64_t> candidates) = 0;

  // Cycles of an uncached read of `primary` while one thread for each of `secondaries` reads that
  // address again and again without the L2 (Figure 8). Physical addresses only.
  virtual Result<float> crowded_read(std::uint64_t primary,
                                     std::span<const std::uint64_t> secondaries) = 0;

  // Cycles of an L2 hit on each address (row) from each of `sms` (column). At most `together` SMs
  // measure at the same time; the least of `repeats` is taken.
  virtual Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t> addresses,
                                                   std::span<const gpu::SmIndex> sms,
                                                   std::uint32_t together,
                                                   std::uint32_t repeats) = 0;

  // Seconds that half of the SMs take for `victim` while the other half runs `aggressor` without
  // end; an aggressor without chunks leaves them idle.
  virtual Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) = 0;
};

}  // namespace demarc::probe
