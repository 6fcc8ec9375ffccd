// What the simulators reckon in. None of these mixes with another one, or with a bare number
// (demarc/base/strong.hpp).
#pragma once

#include "demarc/base/per_index.hpp"
#include "demarc/base/strong.hpp"

namespace demarc::sim {

// Time: from the start of a simulation on, or between two moments.
using Cycles = Quantity<struct CyclesTag>;
consteval Cycles operator""_cycles(unsigned long long count) {
  return Cycles(count);
}

// One of the SMs of a GPU; neighbours are 1 apart.
using SmIndex = Location<struct SmIndexTag, std::uint32_t>;

// A byte, as the program that is simulated names it; bytes apart.
using Address = Location<struct AddressTag>;

}  // namespace demarc::sim
