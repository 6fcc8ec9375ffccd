// The levels of TLBs that one SM sees, found by timing alone. One line of each page is read in
// turn, so the caches hold all lines and only TLBs miss.
//
// How this works: the latency over the number of pages has a step at the reach of each level
// (find_steps()); then the reach is narrowed down. If entries are asked for, pages d apart are
// walked. One random page of each d pages needs an entry of its own as soon as an entry covers no
// more than d pages. The first pages of each d pages fall into fewer and fewer sets if addresses
// pick the set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/random.hpp"
#include "demarc/probe/latency_steps.hpp"
#include "demarc/probe/timed_pages.hpp"

namespace demarc::probe {

struct TlbLevel {
  std::uint64_t reach_pages = 0;  // that many are read in turn with at most a tenth missing
  std::uint64_t full_pages = 0;   // from here on nine tenths miss
  double hit_cycles = 0;          // cycles of an access within the reach, data in the L2
  double miss_cycles = 0;         // additional cycles per miss
  bool miss_at_least = false;     // the latency still rose when the next level or the memory ended
  bool sharp = false;             // everything misses within a quarter of an octave

  // Nothing if it could not be told. The reason says why not, or what makes it certain.
  std::optional<std::uint64_t> pages_per_entry;
  std::optional<std::uint64_t> ways;
  std::string entry_reason;
  std::string way_reason;
};

struct LevelFinding {
  std::vector<CurvePoint> curve;
  LatencySteps steps;
  std::vector<TlbLevel> levels;
};

struct LevelOptions {
  std::uint64_t max_lines = 0;        // lines that caches hold for sure; a walk has no more
  std::uint32_t least_visits = 8192;  // per walk: so many lines average over slices of the L2
  std::uint32_t repeats = 3;          // walks of a point, each in an order of its own
  double least_cost = 3;              // cycles
  bool entries = false;               // look for what an entry covers, and for ways
};

// Returns errors of the memory.
[[nodiscard]] Result<LevelFinding> find_tlb_levels(TimedPages& memory, const LevelOptions& options,
                                                   Random& random, const Progress& progress);

}  // namespace demarc::probe
