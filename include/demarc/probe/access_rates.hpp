// What memory at one place gives to many SMs: page walks, bandwidth by access size and by number of
// SMs, and atomics. Also whether its lines are kept in the L2 of the card that reads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/random.hpp"
#include "demarc/probe/timed_pages.hpp"

namespace demarc::probe {

struct AccessRate {
  Traffic traffic;
  double accesses_per_second = 0;
  [[nodiscard]] double bytes_per_second() const {
    return accesses_per_second * traffic.access_bytes;
  }
};

// Every read goes to one line of a random page. All SMs read. The rate is measured over the number
// of pages.
struct WalkFinding {
  std::vector<AccessRate> rates;
  std::uint64_t reach_pages = 0;  // the largest number of pages that is read at nine tenths of the
                                  // highest rate
  // At least so many walks happen at the largest footprint. Nothing if the rate never fell.
  std::optional<double> walks_per_second;
  std::string reason;
};

// All of these return the errors of the memory.
[[nodiscard]] Result<WalkFinding> find_walk_rate(TimedPages& memory, std::uint32_t sms,
                                                 std::uint64_t max_lines, const Progress& progress);

struct RateTable {
  std::vector<AccessRate> by_size;  // reads, then writes, of all SMs
  std::vector<AccessRate> by_sms;   // reads of 512 bytes
  std::vector<AccessRate> atomics;  // to random words, to one word; none where there are no atomics
  std::string no_atomics;           // why there are none
};
[[nodiscard]] Result<RateTable> measure_rates(TimedPages& memory, std::uint32_t sms,
                                              const Progress& progress);

// Dependent accesses to lines that were evicted everywhere, and to the same lines once more.
struct CachingFinding {
  double first_cycles = 0;
  double again_cycles = 0;
  std::optional<double> atomic_cycles;  // of a dependent atomic addition; nothing: there are none
  std::optional<bool> kept_in_own_l2;   // nothing: this could not be told
  std::string reason;
};
// `own_hit_cycles`: of a hit in the L2 of the card that reads; 0: not known.
[[nodiscard]] Result<CachingFinding> find_caching(TimedPages& memory, double own_hit_cycles,
                                                  Random& random);

}  // namespace demarc::probe
