// Simulates one application on several GPUs under one translation architecture (Wei, Li, Lu 2021,
// sections 2 and 3).
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/sim/translation/application.hpp"
#include "demarc/sim/translation/settings.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim::translation {

struct TlbCounts {
  std::uint64_t hits = 0;
  std::uint64_t joined = 0;  // the page was already being fetched (an MSHR hit)
  std::uint64_t misses = 0;
  [[nodiscard]] std::uint64_t lookups() const { return hits + joined + misses; }
};

struct Summary {
  Cycles cycles;
  std::uint64_t lines = 0;  // line accesses of all waves
  TlbCounts l1_tlb;
  TlbCounts l2_tlb;
  std::uint64_t gmmu_walks = 0;
  std::uint64_t gmmu_hits = 0;
  std::uint64_t gmmu_bypassed = 0;
  std::uint64_t iommu_accesses = 0;
  std::uint64_t first_touches = 0;         // IOMMU accesses that placed the page
  std::uint64_t remote_owned = 0;          // IOMMU accesses to a page of another GPU
  std::uint64_t remote_lines = 0;          // line accesses served by another GPU
  std::uint64_t migrations = 0;            // pages that went from GPU to GPU
  std::vector<std::uint32_t> pages_owned;  // frames given out on each GPU
  std::uint64_t link_bytes = 0;            // payload and headers on all links, both directions
  double busiest_link = 0;                 // share of the time that the busiest link moved flits
  Cycles iommu_queue_wait;                 // summed over requests
  Cycles gmmu_queue_wait;
  double iommu_utilisation = 0;  // utilisation of the walkers, in [0, 1]
  double gmmu_utilisation = 0;

  // Page walks of the whole system.
  [[nodiscard]] std::uint64_t walks() const { return gmmu_walks + iommu_accesses; }
  // Share of line accesses whose translation either TLB level held or was already fetching.
  [[nodiscard]] double tlb_hit_share() const;
  // Share of L2-TLB misses that the GMMU answered.
  [[nodiscard]] double gmmu_hit_share() const;
};

// What happened when, in equal stretches of time.
struct TimelineBin {
  std::uint64_t l2_misses = 0;
  std::uint64_t gmmu_walks = 0;
  std::uint64_t iommu_arrivals = 0;  // their sum so far minus that of iommu_walks: requests inside
                                     // the IOMMU
  std::uint64_t iommu_walks = 0;
  std::uint64_t pages_placed = 0;
  std::uint64_t pages_moved = 0;
};
struct Timeline {
  static constexpr std::size_t max_bins = 1024;
  Cycles bin_cycles{16};  // doubles whenever there would be more bins
  std::vector<TimelineBin> bins;
};

// How the settings deal out the application's work; the result is never `native`.
[[nodiscard]] Split split_under(const Settings& settings, const Application& application);

// The GPUs on which the pages of an application lie, in order. invalid_input under first-walk,
// where this is known only at the end.
[[nodiscard]] Result<std::vector<GpuIndex>> page_homes(const Settings& settings,
                                                       const Application& application);

// A pure function of its arguments. An error if the settings do not fit together or the simulation
// gets stuck; in the latter case it prints every queue.
[[nodiscard]] Result<Summary> simulate(const Settings& settings, Architecture architecture,
                                       const Application& application,
                                       const Progress& progress = {}, Timeline* timeline = nullptr);

}  // namespace demarc::sim::translation
