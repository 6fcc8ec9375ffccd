// Which lines of the L2 make room first: those of all programs' data.
//
// Slices of the L2 are divided, but what the driver keeps for all (code, constants, page tables,
// descriptors of launches, the tables of the colours) lies in every one of them. A neighbour that
// streams through its colour pushes such lines out of its slices, and each kernel of other programs
// waits until they have come from a DRAM that the neighbour keeps busy. So plain accesses of all
// tenants stream (`.cs`): their lines go first, and make room for other data alone. Measured in
// docs/measurements/launches.md; but of cp.async it costs no instruction.
#pragma once

#include <string>
#include <string_view>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Whether a load or store has a cache policy to say so, as none that is ordered (relaxed, acquire,
// release) or passes the L1 by has `.cs`.
[[nodiscard]] bool streams_by_policy(const Mnemonic& mnemonic);

// An access of global memory, from its guard to its semicolon, as one whose line goes first; what
// the program wished to stay longer does not. Volatile accesses, atomics and tiles stay as they
// are, and without policies those that would have one.
[[nodiscard]] std::string streaming(const Mnemonic& mnemonic, std::string access,
                                    bool has_policies);

// The same of a cp.async, which has no other word for it than a cache policy. `destination`: what
// puts its address of shared memory into %demarc_d. Its function begins with
// streaming_copies_prologue.
[[nodiscard]] std::string streaming_copy(const Mnemonic& mnemonic, std::string_view access,
                                         std::string_view destination);

// What puts a cp.async's address of shared memory into %demarc_d.
[[nodiscard]] std::string copy_destination(const Body& body, const Instruction& instruction,
                                           std::string_view text);

// For a cp.async with a policy whose address of shared memory is the sum of a register and of a
// uniform one, ptxas makes an instruction that an H200 does not have (12.8 and 13.0, "an illegal
// instruction was encountered"). So that address is XORed with a zero that ptxas does not know to
// be one: the bit of a lane and those of the lanes below it have nothing in common.
inline constexpr std::string_view streaming_copies_prologue =
    "\n\t.reg .b32 %demarc_zero, %demarc_below;\n\tmov.u32 \t%demarc_zero, %lanemask_eq;\n"
    "\tmov.u32 \t%demarc_below, %lanemask_lt;\n"
    "\tand.b32 \t%demarc_zero, %demarc_zero, %demarc_below;\n";

}  // namespace demarc::ptx
