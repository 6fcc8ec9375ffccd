// The units of the simulators. None of these mixes with another one, or with a bare number
// (demarc/base/strong.hpp).
#pragma once

#include "demarc/base/per_index.hpp"
#include "demarc/base/strong.hpp"
#include "demarc/device/units.hpp"

namespace demarc::sim {

// Time: from the start of a simulation on, or between two moments.
using Cycles = Quantity<struct CyclesTag>;
constexpr Cycles operator""_cycles(unsigned long long count) {
  return Cycles(count);
}

// Time in the models that know no clock.
using Nanoseconds = Quantity<struct NanosecondsTag>;
constexpr Nanoseconds operator""_ns(unsigned long long count) {
  return Nanoseconds(count);
}
[[nodiscard]] constexpr double microseconds(Nanoseconds time) {
  return static_cast<double>(time.raw()) / 1000;
}

// Time of the SimTBS model.
using TbTicks = Quantity<struct TbTicksTag, std::uint32_t>;
constexpr TbTicks operator""_ticks(unsigned long long count) {
  return TbTicks(count);
}

using gpu::SmIndex;
using gpu::TpcIndex;
inline constexpr SmIndex no_sm{~std::uint32_t{0}};

// A kernel, by its place in the workload.
using KernelIndex = Index<struct KernelIndexTag>;
inline constexpr KernelIndex no_kernel{~std::uint32_t{0}};
// A block of one kernel; neighbours are 1 apart.
using BlockNumber = Location<struct BlockNumberTag, std::uint32_t>;

// The address of a byte, as the simulated program names it. Differences are in bytes.
using Address = Location<struct AddressTag>;

}  // namespace demarc::sim
