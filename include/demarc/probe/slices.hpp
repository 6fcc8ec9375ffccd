// The method for cards whose physical addresses are hidden (docs/probe.md). It finds slices by
// latency, hash bits that are constant on every slice, remainders that explain the rest, and the
// constant of every page.
#pragma once

#include <optional>

#include "demarc/base/progress.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/remainder_model.hpp"
#include "demarc/device/address_map.hpp"
#include "demarc/device/slice_model.hpp"
#include "demarc/probe/hash_finding.hpp"
#include "demarc/probe/remainders.hpp"
#include "demarc/probe/timed_memory.hpp"

namespace demarc::probe {

struct SliceFinding {
  gpu::SliceModel model;
  std::optional<RemainderFinding> remainders;            // what tells slices apart beside the masks
  std::optional<color::RemainderModel> remainder_model;  // if colours can be made of remainders
  bool decided = false;                                  // at least one mask, clear clusters
  std::string reason;
};

struct SliceOptions {
  std::uint32_t sms = 24;      // measured from
  std::uint32_t together = 8;  // SMs that measure at the same time
  std::uint64_t chunk_bytes = 256;
};

[[nodiscard]] Result<SliceFinding> find_slices(TimedMemory& memory, const SliceOptions& options,
                                               const Progress& progress);

// What the slices alone say about the address map: nothing if the finding is not decided, and no
// number of slices if nothing explains all of them (slices that look alike are one kind).
[[nodiscard]] gpu::AddressMap map_of_slices(const MemoryFacts& facts, const SliceFinding& finding);

struct PageFinding {
  std::vector<std::uint32_t> constants;  // per page, bit i for masks[i]
  std::uint32_t uncertain = 0;           // pages whose samples agreed less than 9 in 10
  std::vector<std::uint32_t> pages_per_constant;
  double seconds = 0;  // wall time
};

// Finds the constants of the first `pages` pages, each from `samples` chunks.
[[nodiscard]] Result<PageFinding> find_page_constants(TimedMemory& memory,
                                                      const SliceFinding& slices,
                                                      const SliceOptions& options,
                                                      std::uint64_t pages, std::uint32_t samples,
                                                      const Progress& progress);

// One mask, taken as a colour by itself. Figures are the time of a victim next to an aggressor, of
// the other colour and of the same one, divided by the victim's time alone.
struct MaskConflict {
  gpu::MaskIsolation other;
  gpu::MaskIsolation same;
  bool isolates_dram = false;  // reads of the other colour do not slow the victim
  bool isolates = false;       // nor do its writes, in the DRAM or in the L2
};

struct ConflictFinding {
  std::vector<MaskConflict> masks;       // every sum of the linear masks, at most 31
  std::vector<std::uint64_t> isolating;  // low-pivot basis: all its sums isolate
  std::vector<std::uint64_t> isolating_dram;
  // modules[i][j]: slowdown of DRAM reads in module i next to reads in module j, for at most 16
  // modules.
  std::vector<std::vector<double>> modules;
};

struct ConflictOptions {
  std::uint64_t dram_bytes = std::uint64_t{256} << 20U;  // bytes of a stream that misses the L2
  // The greatest slowdown by the other colour that still counts as isolated.
  double max_isolated = color::max_isolated;
};

[[nodiscard]] Result<ConflictFinding> measure_conflicts(TimedMemory& memory,
                                                        const SliceFinding& slices,
                                                        const PageFinding& pages,
                                                        const ConflictOptions& options,
                                                        const Progress& progress);

// Which remainders share a path to memory, found by reads of one beside writes to another.
struct RemainderConflicts {
  std::vector<std::uint32_t> group_of;  // per remainder, as seen from the first page
  std::uint32_t groups = 0;
  double least_same = 0;  // slowdown inside a group, between groups; 1 is none
  double max_other = 0;
  std::uint32_t pages = 0;      // pages whose remainder was measured
  std::uint32_t uncertain = 0;  // of these, pages whose samples agreed less than 9 in 10
};

// Needs slices.remainder_model.
[[nodiscard]] Result<RemainderConflicts> measure_remainder_conflicts(TimedMemory& memory,
                                                                     const SliceFinding& slices,
                                                                     const SliceOptions& options,
                                                                     const Progress& progress);

}  // namespace demarc::probe
