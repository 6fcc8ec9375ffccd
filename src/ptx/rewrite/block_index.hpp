// What passes that give a kernel other block indices than the card's have in common.
#pragma once

#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Registers %demarc_ctaid_x, ..._z and %demarc_nctaid_x, ..._z.
inline constexpr std::string_view block_index_registers =
    "\t.reg .b32 %demarc_ctaid_x, %demarc_ctaid_y, %demarc_ctaid_z;\n"
    "\t.reg .b32 %demarc_nctaid_x, %demarc_nctaid_y, %demarc_nctaid_z;\n";

// Code that finds the three indices of the block whose number in the grid, x first, `number` holds,
// in the grid of %demarc_nctaid_*. `plane` holds blocks of x times blocks of y; `rest` it changes.
[[nodiscard]] std::string block_index_code(std::string_view number, std::string_view plane,
                                           std::string_view rest);

// Reads %ctaid, %nctaid or something of clusters.
[[nodiscard]] bool reads_block_index(const Body& body, const Instruction& instruction);

// The text of an instruction that reads one axis of them, with those registers in their place.
// `wanted` is what the pass would do, as in "made SM-affine".
[[nodiscard]] Result<std::string> with_other_block_index(const Module& module,
                                                         const Instruction& instruction,
                                                         const char* wanted);

// Refuses kernels that use clusters and device functions that read block indices.
[[nodiscard]] Result<void> check_no_clusters(const Module& module, const Function& kernel,
                                             const char* why_not);
[[nodiscard]] Result<void> check_no_block_index(const Module& module, const Function& function,
                                                const char* wanted);

}  // namespace demarc::ptx
