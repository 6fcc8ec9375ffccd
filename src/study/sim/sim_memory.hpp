// Where the lanes of a simulated stage have their memory: pages of 2 MiB scattered over the card,
// whole or, with colours, the part of each that has the lane's colour. Their page tables lie in
// further pages, which have no colour.
#pragma once

#include "demarc/color/coloring.hpp"
#include "demarc/device/device.hpp"
#include "demarc/sim/memory/simulation.hpp"

namespace demarc::study {

// Masks for `parts` colours, low-pivot, within one page. Where the description has measured which
// masks isolate, the best of those; else masks of modules, constant over 4 KiB if possible.
// missing_capability when there are too few. `asked`, where not empty, is taken instead, once it is
// clear that the colours of a page are known: the masks must differ below 2 MiB and, where pages
// add constants to the modules, be sums of module masks.
[[nodiscard]] Result<color::Coloring> choose_coloring(const gpu::Device& device,
                                                      std::uint32_t parts,
                                                      const std::vector<std::uint64_t>& asked = {});

// Pages of 2 MiB or of 4 KiB. Accesses reach coloured memory by arithmetic on large pages, or
// through windows, whose small pages lie in the colour (docs/windows.md).
enum class PageSize { large, small };

// missing_capability if the card has no windows with these colours, or if what they cost is not
// known.
[[nodiscard]] Result<void> check_windows(const gpu::Device& device,
                                         const color::Coloring& coloring);

class SimMemory {
 public:
  SimMemory(const gpu::Device& device, const sim::memory::Spec& spec, std::uint64_t seed);

  // Memory for `bytes` from `base` on; no two calls share a page.
  [[nodiscard]] sim::memory::Translation plain(sim::Address base, std::uint64_t bytes,
                                               PageSize pages = PageSize::large);
  [[nodiscard]] sim::memory::Translation colored(sim::Address base, std::uint64_t bytes,
                                                 const color::Coloring& coloring,
                                                 std::uint32_t color,
                                                 PageSize pages = PageSize::large);

 private:
  // Pages of 2 MiB.
  [[nodiscard]] std::uint64_t next_page();
  [[nodiscard]] std::uint64_t page_at(std::uint64_t place) const;
  // The page table of memory of which a large page maps 1 << large_shift bytes; empty if the card's
  // translation is not known.
  [[nodiscard]] sim::memory::Paging paged(const sim::memory::Translation& memory, PageSize pages,
                                          std::uint32_t large_shift);

  sim::memory::AddressDecoder decoder_;
  std::vector<std::uint64_t> module_rows_;
  bool hidden_;  // page constants rather than address bits
  std::uint64_t seed_;
  std::uint64_t pages_;
  std::uint32_t table_entry_bytes_;  // 0: translation is not known
  std::uint64_t taken_ = 0;
  std::uint64_t tables_ = 0;  // pages of page tables, from the other end
};

}  // namespace demarc::study
