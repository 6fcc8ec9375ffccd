// Which lines of the L2 make room first: those of programs' data, whoever's they are.
//
// Slices of the L2 are divided, but what the driver keeps for all (code, constants, page tables,
// descriptors of launches, the tables of the colours) lies in every one of them. A neighbour that
// streams through its colour pushes such lines out of its slices, and each kernel of everybody else
// waits until they have come from a DRAM that the neighbour keeps busy. So plain accesses of all
// tenants stream (`.cs`): their lines go first, and make room for other data alone. Measured in
// docs/measurements/launches.md; it costs no instruction.
#pragma once

#include <string>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// An access of global memory, from its guard to its semicolon, as one whose line goes first; what
// the program wished to stay longer does not. Accesses that are ordered (volatile, relaxed, acquire
// ...) or pass the L1 by, atomics, cp.async and tiles stay as they are.
[[nodiscard]] std::string streaming(const Mnemonic& mnemonic, std::string access);

}  // namespace demarc::ptx
