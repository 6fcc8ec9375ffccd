// Which barriers and collectives of a kernel other threads may return without having reached.
#pragma once

#include <cstdint>
#include <optional>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// A barrier of all threads of a block, without a count of threads.
[[nodiscard]] bool is_block_barrier(const Instruction& instruction);

// An instruction for which the threads of its member mask wait for each other.
[[nodiscard]] bool is_warp_collective(const Module& module, const Instruction& instruction);

// A barrier of all threads, or a call, that only some threads of a block reach while others may end
// the kernel: the card then waits for the others alone. Index of the instruction, the first such
// one.
[[nodiscard]] std::optional<std::uint32_t> barrier_after_return(const Module& module,
                                                                const Function& kernel,
                                                                bool calls_have_barriers);

// The same of collectives of a warp, which some threads of a warp reach while others may end.
[[nodiscard]] std::optional<std::uint32_t> collective_after_return(const Module& module,
                                                                   const Function& kernel,
                                                                   bool calls_have_collectives);

}  // namespace demarc::ptx
