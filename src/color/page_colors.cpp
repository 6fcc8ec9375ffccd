// Counts the colours that survive a page: more of them lie in shorter runs.
#include "demarc/color/page_colors.hpp"

#include <algorithm>
#include <bit>

#include "demarc/color/color_scheme.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/color/page_pieces.hpp"

namespace demarc::color {

Result<PageColors> page_colors(const gpu::Device& device) {
  DEMARC_TRY(const ColorScheme halves, color_scheme(device, 2));
  DEMARC_CHECK(check_survives_pages(*halves.law_of_granules()));
  PageColors found{halves.colors, halves.law_of_granules()->granule()};
  for (std::uint32_t colors = 2 * halves.colors; colors <= ColorSet::max_colors; colors *= 2) {
    const auto scheme = color_scheme(device, colors);
    if (!scheme || !check_survives_pages(*scheme->law_of_granules())) break;
    found = {scheme->colors, scheme->law_of_granules()->granule()};
  }
  return found;
}

Result<PageColors> page_colors(std::span<const std::uint64_t> masks, std::uint64_t page_bytes) {
  std::vector<std::uint64_t> in_page(masks.begin(), masks.end());
  for (std::uint64_t& mask : in_page) mask &= page_bytes - 1;
  const auto basis = gpu::low_pivot_basis(in_page);
  if (basis.empty()) {
    return missing_capability("no mask divides pages of {} bytes into colours", page_bytes);
  }
  // The masks of the longest runs come last.
  const auto scheme_of = [&basis](std::size_t count) {
    return ColorScheme{std::uint32_t{1} << count,
                       {basis.end() - static_cast<std::ptrdiff_t>(count), basis.end()},
                       {},
                       0};
  };
  DEMARC_CHECK(check_survives_pages(*scheme_of(1).law_of_granules()));
  std::size_t count = std::min<std::size_t>(basis.size(), std::countr_zero(ColorSet::max_colors));
  while (!check_survives_pages(*scheme_of(count).law_of_granules())) --count;
  return PageColors{scheme_of(count).colors, scheme_of(count).law_of_granules()->granule()};
}

}  // namespace demarc::color
