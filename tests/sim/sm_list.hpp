#pragma once

#include <initializer_list>
#include <vector>

#include "demarc/sim/units.hpp"

namespace demarc::sim {

inline std::vector<SmIndex> sm_list(std::initializer_list<std::uint32_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace demarc::sim
