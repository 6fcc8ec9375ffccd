// How the matrices of an instruction are written: their types, their shape, their registers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lower/function.hpp"
#include "lower/instruction_view.hpp"
#include "ops/matrix.hpp"

namespace demarc::emulate {

[[nodiscard]] std::optional<MatrixType> matrix_type(ptx::Type type);

[[nodiscard]] bool is_floating_matrix(MatrixType type);

// Saturation, and of single bits .xor or .and. False: no product has these types, or does that with
// them.
[[nodiscard]] bool set_operation(const InstructionView& instruction, ProductTypes& types);

// Of .m16n8k16.
[[nodiscard]] std::optional<ProductSize> matrix_shape(const ptx::Mnemonic& words);

// The first two layouts that are written, of a and of b: "row" or "col", or empty.
[[nodiscard]] std::array<std::string_view, 2> matrix_layouts(const ptx::Mnemonic& words);

// The type that the registers of a matrix are declared with.
[[nodiscard]] ptx::Type register_type(MatrixType type);

// What the registers of a fragment must be like.
struct FragmentRegisters {
  unsigned count = 0;
  MatrixType type = MatrixType::f16;
};
using FragmentSources = std::array<Source, Fragment::max_registers>;

// Empty: not so many registers. A uniform one stays uniform.
[[nodiscard]] std::optional<FragmentSources> fragment_sources(FunctionContext& f,
                                                              const InstructionView& instruction,
                                                              const ptx::Operand& operand,
                                                              const FragmentRegisters& wanted);
// The same, where every lane needs a value of its own: what is uniform is copied.
[[nodiscard]] std::optional<FragmentSources> fragment_lanes(FunctionContext& f,
                                                            const InstructionView& instruction,
                                                            const ptx::Operand& operand,
                                                            const FragmentRegisters& wanted);
// As the details of micro-ops keep them.
[[nodiscard]] Fragment fragment_of(const FragmentSources& sources, const FragmentRegisters& wanted);

}  // namespace demarc::emulate
