// Which barriers of a kernel other threads of the block may return without having reached.
#pragma once

#include <cstdint>
#include <optional>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// A barrier of all threads of a block, without a count of threads.
[[nodiscard]] bool is_block_barrier(const Instruction& instruction);

// A barrier of all threads, or a call, that only some threads of a block reach while others may end
// the kernel: the card then waits for the others alone. Index of the instruction, the first such
// one.
[[nodiscard]] std::optional<std::uint32_t> barrier_after_return(const Module& module,
                                                                const Function& kernel,
                                                                bool calls_have_barriers);

}  // namespace demarc::ptx
