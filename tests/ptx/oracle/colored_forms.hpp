// Colours for modules that go through ptxas.
#pragma once

#include <string>

#include "demarc/ptx/colored.hpp"
#include "remainders.hpp"

namespace demarc::ptx::test {

inline const ColoredOptions with_places{
    .printing = ColoredPrinting::silenced,
    .places = ColoredPlaces{0x7f00'0000'0000, 0x7f10'0000'0000, 1U << 20U},
    .card = 90};
inline const ColoredOptions at_load{
    .printing = ColoredPrinting::silenced, .places = PlacesAtLoad{}, .card = 90};

inline color::RemainderAddressing remainders() {
  return remainders(0x7f00'0000'0000, 0x7e00'0000'0000);
}

struct Count {
  std::size_t accepted = 0;
  std::size_t all = 0;
};

// What is accepted of the module, counted; refusals go to `said`.
inline Count count_accepted(const ColoredModule& made, const std::string& name, std::string& said) {
  Count count;
  for (const ColoredKernel& kernel : made.kernels) {
    ++count.all;
    count.accepted += kernel.accepted() ? 1U : 0U;
    if (!kernel.accepted()) said += describe_refusals(kernel, name) + "\n";
  }
  return count;
}

}  // namespace demarc::ptx::test
