// Steps that Algorithms 1 and 2 share.
#pragma once

#include <functional>

#include "demarc/probe/hash_finding.hpp"

namespace demarc::probe {

// Cycles for a list of addresses against one fixed address.
using TimeAgainst = std::function<Result<std::vector<float>>(std::span<const std::uint64_t>)>;

// Time above which a read is taken as a conflict: `spread` robust standard deviations (1.48 times
// the median absolute deviation) above the median, where conflicts are a minority.
[[nodiscard]] double conflict_threshold(std::span<const float> times, double spread);

// Random line addresses below 1 << address_bits.
[[nodiscard]] std::vector<std::uint64_t> random_lines(const MemoryFacts& facts, std::size_t count,
                                                      Random& random);

// An address that agrees with `like` on every mask but is random otherwise; `flip` is XORed to the
// hash value.
[[nodiscard]] std::uint64_t address_with_hash(std::uint64_t random_address, std::uint64_t like,
                                              const gpu::LinearHash& hash, std::uint32_t flip);

// Times candidates, and again those above the threshold, until `wanted` conflicts are confirmed or
// `most` candidates were tried. Fills times, threshold, measured, pairs and hash of `finding`.
[[nodiscard]] Result<void> collect_and_solve(const MemoryFacts& facts, std::uint64_t fixed,
                                             const TimeAgainst& time, const HashOptions& options,
                                             std::uint64_t most, Random& random,
                                             const Progress& progress, HashFinding& finding);

// Predictions on fresh addresses; sets confusion, decided and reason.
[[nodiscard]] Result<void> confirm(const MemoryFacts& facts, std::uint64_t fixed,
                                   const TimeAgainst& time, const HashOptions& options,
                                   Random& random, HashFinding& finding);

}  // namespace demarc::probe
