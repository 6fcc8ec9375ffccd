// Finds the hash function of DRAM banks by pairs of reads that conflict.
#include "hash_pairs.hpp"

namespace demarc::probe {

Result<HashFinding> find_bank_hash(TimedMemory& memory, const HashOptions& options, Random& random,
                                   const Progress& progress) {
  const MemoryFacts& facts = memory.facts();
  HashFinding finding;
  finding.what = "bank";
  const std::uint64_t fixed = random_lines(facts, 1, random).front();
  const TimeAgainst time = [&](std::span<const std::uint64_t> secondaries) {
    return memory.uncached_pairs(fixed, secondaries);
  };
  constexpr std::uint64_t max_measurements = 4'000'000;
  DEMARC_CHECK(
      collect_and_solve(facts, fixed, time, options, max_measurements, random, progress, finding));
  DEMARC_CHECK(confirm(facts, fixed, time, options, random, finding));
  report_progress(progress, 1, "bank hash");
  return finding;
}

}  // namespace demarc::probe
