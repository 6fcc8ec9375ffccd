// Gives simulated lanes their pages, whole or the part of each that has the lane's colour.
#include "sim/sim_memory.hpp"

#include <algorithm>
#include <bit>

#include "demarc/base/gf2.hpp"
#include "demarc/base/text.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t sim_page_bytes = std::uint64_t{1} << 21U;
constexpr std::uint32_t sim_page_shift = 21;
constexpr std::uint64_t usual_granularity = 4096;
constexpr std::uint32_t small_page_shift = 12;

std::vector<std::uint64_t> measured_masks(const gpu::AddressMap& map) {
  auto measured = map.isolation;
  const auto worst = [](const gpu::MaskIsolation& m) {
    return std::max({m.dram_read, m.dram_write, m.l2_read, m.l2_write});
  };
  std::stable_sort(measured.begin(), measured.end(),
                   [&](const auto& a, const auto& b) { return worst(a) < worst(b); });
  std::vector<std::uint64_t> masks;
  masks.reserve(measured.size());
  for (const gpu::MaskIsolation& entry : measured) masks.push_back(entry.mask);
  return masks;
}

std::size_t rank_in_page(const std::vector<std::uint64_t>& masks) {
  std::vector<std::uint64_t> in_page;
  in_page.reserve(masks.size());
  for (const std::uint64_t mask : masks) in_page.push_back(mask & (sim_page_bytes - 1));
  return gf2_rank(in_page);
}

Result<color::Coloring> given_coloring(const gpu::AddressMap& map,
                                       const std::vector<std::uint64_t>& masks) {
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if ((masks[i] & (sim::memory::line_bytes - 1)) != 0) {
      return invalid_input(
          "--masks: {:#x} has bits within a line of {} bytes, and a line has one colour", masks[i],
          sim::memory::line_bytes);
    }
    if (rank_in_page({masks.begin(), masks.begin() + static_cast<std::ptrdiff_t>(i) + 1}) <= i) {
      return invalid_input(
          "--masks: {:#x} adds no colour within a page of 2 MiB; each mask must differ from the "
          "others and their sums below bit 21",
          masks[i]);
    }
    std::vector<std::uint64_t> with = map.module.rows;
    with.push_back(masks[i]);
    if (map.page_bytes != 0 && gf2_rank(with) > gf2_rank(map.module.rows)) {
      std::string rows;
      for (const std::uint64_t row : map.module.rows) {
        append(rows, "{}{:#x}", rows.empty() ? "" : ", ", row);
      }
      return invalid_input(
          "--masks: {:#x} is not a sum of the module masks of the description ({}), so what a page "
          "adds to it is unknown",
          masks[i], rows);
    }
  }
  return color::Coloring::make(masks, map.page_bytes);
}

}  // namespace

Result<color::Coloring> choose_coloring(const gpu::Device& device, std::uint32_t parts,
                                        const std::vector<std::uint64_t>& asked) {
  const gpu::AddressMap& map = *device.address_map;
  if (!asked.empty()) return given_coloring(map, asked);
  const auto wanted = static_cast<std::size_t>(std::countr_zero(std::bit_ceil(parts)));
  std::vector<std::uint64_t> candidates = measured_masks(map);
  if (candidates.empty()) {
    std::uint64_t granularity = usual_granularity;
    do {
      candidates = gpu::masks_at_granularity(map.module.rows, granularity);
      granularity /= 2;
    } while (candidates.size() < wanted && granularity >= sim::memory::line_bytes);
    std::reverse(candidates.begin(), candidates.end());  // the longest runs first
  }
  std::vector<std::uint64_t> masks;
  for (const std::uint64_t candidate : candidates) {
    if (masks.size() == wanted) break;
    masks.push_back(candidate);
    if (rank_in_page(masks) < masks.size()) masks.pop_back();
  }
  if (masks.size() < wanted) {
    return missing_capability("{}: {} parts need {} colours, but its modules give {} per page",
                              device.name, parts, std::uint32_t{1} << wanted,
                              std::uint32_t{1} << masks.size());
  }
  return color::Coloring::make(masks, map.page_bytes);
}

Result<void> check_windows(const gpu::Device& device, const color::Coloring& coloring) {
  if (coloring.chunk_bytes() >> small_page_shift == 0) {
    return missing_capability(
        "{}: its colours change every {} bytes, so a page of 4 KiB has bytes of several colours, "
        "and "
        "there are no windows",
        device.name, coloring.chunk_bytes());
  }
  if (!device.address_translation) {
    return missing_capability(
        "{}: the description has no address_translation, so what pages of 4 KiB cost is not known",
        device.name);
  }
  return {};
}

SimMemory::SimMemory(const gpu::Device& device, const sim::memory::Spec& spec, std::uint64_t seed)
    : decoder_(spec.address),
      module_rows_(spec.address.module.rows),
      hidden_(spec.address.page_bytes != 0),
      seed_(seed),
      pages_(std::bit_floor(device.dram.size_bytes / sim_page_bytes)),
      table_entry_bytes_(spec.tlbs.empty() ? 0 : spec.table_entry_bytes) {}

// An affine walk with an odd step meets every page once.
std::uint64_t SimMemory::page_at(std::uint64_t place) const {
  return (place * 0x9e3779b1ULL + seed_ * 77777) & (pages_ - 1);
}

std::uint64_t SimMemory::next_page() {
  return page_at(taken_++);
}

sim::memory::Paging SimMemory::paged(const sim::memory::Translation& memory, PageSize pages,
                                     std::uint32_t large_shift) {
  const bool large = pages == PageSize::large;
  sim::memory::Paging paging{large ? large_shift : small_page_shift, {}, large};
  const std::uint64_t bytes = memory.chunks.size() << memory.chunk_shift;
  const std::uint64_t table_bytes = (bytes >> paging.page_shift) * table_entry_bytes_;
  for (std::uint64_t at = 0; at < table_bytes; at += sim_page_bytes) {
    paging.tables.emplace_back(page_at(pages_ - ++tables_) << sim_page_shift);
  }
  return paging;
}

sim::memory::Translation SimMemory::plain(sim::Address base, std::uint64_t bytes, PageSize pages) {
  sim::memory::Translation translation{base, sim_page_shift, {}};
  for (std::uint64_t at = 0; at < bytes; at += sim_page_bytes) {
    translation.chunks.emplace_back(next_page() << sim_page_shift);
  }
  translation.paging = paged(translation, pages, sim_page_shift);
  return translation;
}

sim::memory::Translation SimMemory::colored(sim::Address base, std::uint64_t bytes,
                                            const color::Coloring& coloring, std::uint32_t color,
                                            PageSize pages) {
  std::vector<std::uint64_t> in_page;
  for (const std::uint64_t mask : coloring.masks()) in_page.push_back(mask & (sim_page_bytes - 1));
  const auto inside = color::Coloring::make(in_page, sim_page_bytes).value();
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(inside.chunk_bytes()));
  sim::memory::Translation translation{base, shift, {}};
  const std::uint64_t chunks_a_page = (sim_page_bytes / inside.colors()) >> shift;
  while ((translation.chunks.size() << shift) < bytes) {
    const std::uint64_t page = next_page();
    // What the bits above the page add to each mask.
    std::uint32_t constant = 0;
    if (hidden_) {
      constant = inside
                     .constant_from_rows(module_rows_,
                                         decoder_.page_constant(sim::memory::PageNumber(page)))
                     .value();
    } else {
      // low_pivot_basis may have summed masks: the constant is found for each sum by itself.
      for (std::size_t i = 0; i < inside.masks().size(); ++i) {
        std::uint32_t part = 0;
        for (std::uint32_t choice = 1; choice < inside.colors(); ++choice) {
          std::uint64_t low = 0;
          std::uint64_t whole = 0;
          for (std::size_t m = 0; m < in_page.size(); ++m) {
            if (((choice >> m) & 1U) == 0) continue;
            low ^= in_page[m];
            whole ^= coloring.masks()[m];
          }
          if (low == inside.masks()[i]) part = parity(page << sim_page_shift, whole);
        }
        constant |= part << i;
      }
    }
    for (std::uint64_t k = 0; k < chunks_a_page; ++k) {
      translation.chunks.emplace_back((page << sim_page_shift) +
                                      inside.chunk(k, color, constant).raw());
    }
  }
  // A large page has bytes of all colours.
  const auto color_bits = static_cast<std::uint32_t>(std::countr_zero(inside.colors()));
  translation.paging = paged(translation, pages, sim_page_shift - color_bits);
  return translation;
}

}  // namespace demarc::study
