// Pages under a split of the work over several GPUs, and the address-translation architecture that
// suits them. Both are computed from the page-level map alone. (Wei, Li and Lu 2021 compare the two
// architectures.)
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/locality/runs.hpp"

namespace demarc::locality {

// Which GPU touches which page when the blocks are split over GPUs in contiguous parts.
struct PageSplit {
  std::uint64_t page_bytes = 0;
  std::uint32_t gpus = 0;
  std::uint64_t pages = 0;
  std::vector<std::uint64_t> pages_by_sharers;  // [k]: pages that k + 1 GPUs touch
  double shared_access_share = 0;               // of accesses that go to pages of several GPUs
  double remote_access_share = 0;               // when every page lies where it is touched most
  // Translations that a TLB does not hold: the first one of each page and GPU, and those of a block
  // that returns to a page after so many other pages that the TLB has lost it (tlb_entries below).
  std::uint64_t first_touches = 0;
  std::uint64_t returns = 0;
  std::uint64_t local_returns = 0;  // to pages that lie on the GPU (where they are touched most)
  std::vector<std::uint64_t> first_pages;            // addresses of the map's pages, ascending
  std::vector<std::vector<std::uint64_t>> accesses;  // [gpu][page]; at most max_pages pages
};

// Entries that an L2 TLB of a GPU is taken to have (32 sets of 16).
inline constexpr std::uint64_t tlb_entries = 512;

[[nodiscard]] PageSplit split_pages(const AccessRuns& runs, std::uint32_t gpus,
                                    std::uint64_t page_bytes, std::size_t max_pages = 2000);

// centralised: every miss of the TLBs goes to the one IOMMU. distributed: it first goes to the
// GPU's own GMMU, which knows pages that lie on the GPU once they have been walked.
enum class Translation : std::uint8_t { centralised, distributed };
[[nodiscard]] const char* to_string(Translation architecture);

// A GMMU answers local returns without the IOMMU, and delays every other miss by its own walk. So
// it pays if local returns are about a seventh of all misses or more (a walk of 100 cycles against
// 680 for the way to the IOMMU and back). This leaves out returns within a block, queues at the
// IOMMU, and migration.
struct TranslationVerdict {
  Translation architecture = Translation::centralised;
  double local_return_share = 0;  // share of the TLB misses
};
[[nodiscard]] TranslationVerdict judge_translation(const PageSplit& split);

}  // namespace demarc::locality
