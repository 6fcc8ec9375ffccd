// Finds the masks and the value that hold for a set of colours and for no other byte.
#include <bit>

#include "demarc/base/gf2.hpp"
#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {

Result<ColorShare> share_of_colors(const color::Coloring& coloring, const color::ColorSet& set) {
  if (!set.is_well_formed() || set.of() != coloring.colors()) {
    return invalid_input("colours {}: give some of the {} colours, at least one", to_string(set),
                         coloring.colors());
  }
  const std::uint64_t colors = set.members();
  const auto lowest = static_cast<std::uint64_t>(std::countr_zero(colors));
  std::vector<std::uint64_t> differences;
  for (std::uint64_t rest = colors; rest != 0; rest &= rest - 1) {
    const auto difference = static_cast<std::uint64_t>(std::countr_zero(rest)) ^ lowest;
    if (difference != 0) differences.push_back(difference);
  }
  const auto space = gf2_row_basis(differences);
  if (std::uint64_t{1} << space.size() != set.size()) {
    return invalid_input(
        "colours {}: colours that differ by a linear space were expected (1, 2, 4 ... of them, "
        "such "
        "as 0,1 or 0,2 of 4)",
        to_string(set));
  }
  // Every functional on colours that is constant on the set becomes a mask of its own.
  const auto functionals = gf2_null_space(space, coloring.colors() - 1);
  std::vector<std::uint64_t> masks;
  std::uint32_t values = 0;
  for (std::size_t i = 0; i < functionals.size(); ++i) {
    std::uint64_t mask = 0;
    for (std::size_t bit = 0; bit < coloring.masks().size(); ++bit) {
      if (((functionals[i] >> bit) & 1U) != 0) mask ^= coloring.masks()[bit];
    }
    masks.push_back(mask);
    values |= parity(lowest, functionals[i]) << i;
  }
  ColorShare share;
  DEMARC_TRY(share.coloring, color::Coloring::make(masks, coloring.page_bytes()));
  DEMARC_TRY(share.color, share.coloring.constant_from_rows(masks, values));
  return share;
}

}  // namespace demarc::cuda
