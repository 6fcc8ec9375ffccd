// Walks over pages as the probe of translation makes them.
#pragma once

#include <vector>

#include "demarc/base/random.hpp"
#include "demarc/probe/tlb_levels.hpp"

namespace demarc::probe {

// Numbers of pages from `least` (at least 1) to `most`, four an octave; the last is `most`.
[[nodiscard]] std::vector<std::uint64_t> footprints(std::uint64_t least, std::uint64_t most);

// How the pages of a walk lie.
enum class Layout {
  in_order,   // the first of each `apart` pages
  scattered,  // any one of each `apart` pages
};

class PageWalks {
 public:
  PageWalks(TimedPages& memory, const LevelOptions& options, Random& random)
      : memory_(memory), options_(options), random_(random) {}

  // The most pages `apart` pages from each other that can be walked.
  [[nodiscard]] std::uint64_t most(std::uint64_t apart) const;
  // Cycles per access within a walk that was made before: the median of some.
  [[nodiscard]] Result<CurvePoint> measure(std::uint64_t pages, std::uint64_t apart,
                                           Layout layout) const;

 private:
  [[nodiscard]] std::vector<std::uint64_t> order(std::uint64_t pages) const;
  [[nodiscard]] std::vector<Visit> visits(std::uint64_t pages, std::uint64_t apart,
                                          Layout layout) const;
  TimedPages& memory_;
  const LevelOptions& options_;
  Random& random_;
};

// The most pages of such a walk whose accesses take at most `cycles`; nothing where even
// `most(apart)` pages do. At most `bound` are tried.
[[nodiscard]] Result<std::optional<std::uint64_t>> max_within(const PageWalks& walks,
                                                              std::uint64_t apart, Layout layout,
                                                              double cycles, std::uint64_t bound);

// Fills in what an entry of the level covers and its ways. `before`: the level in front of it,
// whose hits hide it.
[[nodiscard]] Result<void> describe_entries(const PageWalks& walks, const TlbLevel* before,
                                            TlbLevel& level);

}  // namespace demarc::probe
