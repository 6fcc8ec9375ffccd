// Algorithms 1 and 2 of Fractional GPUs (RTAS 2019, section V). Timing finds pairs of addresses
// that share a DRAM bank or a cache set. Then the hash functions that explain the pairs are found.
// The paper tries every function; here the pairs are solved over GF(2): a mask is a hash bit if it
// annihilates the difference of every pair. Some wrong pairs do no harm; too many are reported.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/random.hpp"
#include "demarc/base/result.hpp"
#include "demarc/device/address_map.hpp"
#include "demarc/probe/timed_memory.hpp"

namespace demarc::probe {

// Counts of cycles in equal bins.
struct Histogram {
  double low = 0;        // lower edge of the first bin, cycles
  double bin_width = 1;  // cycles
  std::vector<std::uint32_t> counts;
};
[[nodiscard]] Histogram make_histogram(std::span<const float> values, std::size_t bins);

// Compares predictions with measurements, on addresses that were not used to find the hash.
struct Confusion {
  std::uint32_t same_same = 0;  // predicted the same bank or set, measured a conflict
  std::uint32_t same_other = 0;
  std::uint32_t other_same = 0;
  std::uint32_t other_other = 0;
  [[nodiscard]] double agreement() const;  // share of correct predictions, [0, 1]
};

struct HashFinding {
  std::string what;      // "bank" or "set"
  gpu::LinearHash hash;  // low-pivot basis
  bool decided = false;
  std::string reason;             // why not decided, or what makes it certain
  std::uint32_t measured = 0;     // timed pairs
  std::uint32_t pairs = 0;        // pairs taken as conflicts
  std::uint32_t wrong_pairs = 0;  // of these, contradicted by the hash
  double threshold = 0;           // cycles
  Histogram times;
  Confusion confusion;
  std::uint32_t ways = 0;  // per set
};

struct HashOptions {
  std::uint32_t pairs = 0;        // 0: four times the address bits
  double least_agreement = 0.75;  // share of pairs and of predictions that must agree
};

// Algorithm 1. It returns errors of the memory. If no hash can be found, the finding has decided =
// false.
[[nodiscard]] Result<HashFinding> find_bank_hash(TimedMemory& memory, const HashOptions& options,
                                                 Random& random, const Progress& progress);

// Algorithm 2: grows a chase until the start is evicted, collects as many lines of the set as it
// has ways, and then finds further lines of the same set with these.
[[nodiscard]] Result<HashFinding> find_set_hash(TimedMemory& memory, const HashOptions& options,
                                                Random& random, const Progress& progress);

// Figure 8: cycles of a read under n other threads, by where these read.
struct CrowdCurve {
  std::string name;           // SCSB, DCSB, SCDB, DCDB, DM, or DCHB: DCDB in half of the banks
  std::vector<float> cycles;  // [n], n = 0 ...
};
struct MissRegisters {
  std::uint32_t number = 0;  // 0: not seen
  std::string reason;        // why not, or what makes them certain
};
struct ModuleFinding {
  // The curves of the cases that the hashes leave possible. DCDB and DCHB are the median of several
  // crowds.
  std::vector<CrowdCurve> curves;
  MissRegisters miss_registers;
  std::optional<bool> isolated;  // DM stays at the level of no other thread; nothing: no DM
};
// The number of other threads at a sharp knee of a curve. Nothing if there is no knee, or if there
// are too few points on one side of it.
[[nodiscard]] std::optional<std::uint32_t> find_knee(std::span<const float> cycles);
// There are as many registers as threads at the knee of DCDB, if each thread holds one all the
// time. Scarce banks make a knee too, but with fewer banks it lies at fewer threads. So the knee
// must lie at the same place with half of the banks.
[[nodiscard]] MissRegisters judge_miss_registers(const ModuleFinding& finding);
[[nodiscard]] Result<ModuleFinding> measure_module(TimedMemory& memory, const gpu::LinearHash& bank,
                                                   const gpu::LinearHash& set,
                                                   const gpu::LinearHash& module, Random& random,
                                                   const Progress& progress);

}  // namespace demarc::probe
