// Which colours of memory launches feel. What the driver and the card need for a launch has no
// colour, but it shares its way with some slices of the L2 and not with others: on an H200 a launch
// beside stores to one path's slices takes half as long again, beside stores to any other slice a
// tenth (docs/measurements/launches.md). Whoever launches often should have that colour, so that
// nobody else presses on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/cuda/colored_memory.hpp"

namespace demarc::cuda {

// Microseconds of an empty launch.
struct LaunchFelt {
  double alone_us = 0;
  std::vector<double> beside_us;  // beside stores to one place: a remainder each, or a colour each
  std::vector<double> of_color;   // mean over the places of each colour

  // The colours, the one whose stores are felt most first; colours that differ by less than the
  // measurement does (a twentieth) keep their order.
  [[nodiscard]] std::vector<std::uint32_t> most_felt_first() const;
  // "launches feel colour 1 most: 4.4 us beside stores to it, 3.9 us beside colour 0, 3.3 us alone"
  [[nodiscard]] std::string account() const;
};

// Takes about a second, during which nothing else may run on the card. The memory of the pool
// becomes zero: invalid_input when any of it is in use.
[[nodiscard]] Result<LaunchFelt> measure_launches(const ColoredPool& pool);

}  // namespace demarc::cuda
