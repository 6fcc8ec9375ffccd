// How a GPU translates addresses of its own memory: levels of TLBs, and the walkers that read page
// tables after a miss of all levels. In a description it is the section "address_translation",
// which `demarc probe translation` measures. Its own "source" says where each number comes from,
// and which numbers are assumed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace demarc::gpu {

// One level of TLBs. Pages of all sizes share its entries.
struct TranslationLevel {
  std::uint32_t entries = 0;
  std::uint32_t pages_per_entry = 1;  // adjacent, aligned pages of one size; a power of two
  double hit_cycles = 0;              // added to an access by a hit in this level, in SM cycles
  bool per_sm = false;                // each SM has one; false: one for all SMs
  [[nodiscard]] std::uint64_t reach_pages() const {
    return std::uint64_t{entries} * pages_per_entry;
  }
  friend bool operator==(const TranslationLevel&, const TranslationLevel&) = default;
};

struct AddressTranslation {
  std::string source;
  std::vector<TranslationLevel> levels;  // from the SM outwards, at least one
  std::uint32_t walkers = 1;             // walks at a time, for all SMs
  double walk_cycles = 0;  // added by a walk whose read hits the L2, beyond hit_cycles of the
                           // last level
  std::uint32_t entry_bytes = 8;  // bytes of a page's entry in the page table; a walk reads the
                                  // entries of all pages that one entry of the last level covers
  friend bool operator==(const AddressTranslation&, const AddressTranslation&) = default;
};

}  // namespace demarc::gpu
