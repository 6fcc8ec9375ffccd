// `demarc probe memory`: the whole chain on one timed memory, its evidence and its verdict.
#pragma once

#include <string>
#include <string_view>

#include "demarc/color/page_colors.hpp"
#include "demarc/probe/hash_finding.hpp"
#include "demarc/probe/slices.hpp"

namespace demarc::probe {

struct ProbeOptions {
  std::uint64_t seed = 1;
  HashOptions hash;
  SliceOptions slices;
  ConflictOptions conflicts;
  std::uint64_t pages = 0;     // number of pages whose constants are found; 0: all that the memory
                               // offers
  std::uint32_t samples = 24;  // chunks that are measured per page
};

struct ColorCount {
  std::uint64_t granularity = 0;  // bytes of the blocks in which memory is given out
  std::uint32_t dram = 0;         // colours that keep DRAM reads apart
  std::uint32_t all = 0;          // colours that keep writes and L2 hits apart too
};

// Whether code without PTX can run in colours of this memory, by its page table (docs/windows.md).
struct WindowFinding {
  bool known = false;
  std::optional<color::PageColors> colors;  // nothing: none, or not known
  std::string reason;  // why there are none, and what to do instead; or why it is not known
};

struct MemoryReport {
  MemoryFacts facts;
  bool decided = false;
  std::vector<std::string> verdict;  // sentences, the most important first
  gpu::AddressMap map;
  std::vector<ColorCount> colors;
  WindowFinding windows;
  double seconds = 0;  // wall time of the whole probe

  // The evidence. The first three exist if physical addresses are known, the others if not.
  std::optional<HashFinding> bank;
  std::optional<HashFinding> set;
  std::optional<ModuleFinding> module;
  std::optional<SliceFinding> slices;
  std::optional<PageFinding> pages;
  std::optional<ConflictFinding> conflicts;
  std::optional<RemainderConflicts> remainder_conflicts;  // only if no mask isolates
};

// Returns errors of the memory. The verdict says what cannot be decided.
[[nodiscard]] Result<MemoryReport> probe_memory(TimedMemory& memory, const ProbeOptions& options,
                                                const Progress& progress);

inline constexpr std::string_view report_schema = "demarc.probe.memory/1";
[[nodiscard]] std::string report_to_json(const MemoryReport& report);
[[nodiscard]] std::string report_to_text(const MemoryReport& report);

}  // namespace demarc::probe
