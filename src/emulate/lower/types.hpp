// Types of PTX, and the emulator's own names for them.
#pragma once

#include <cstdint>
#include <optional>

#include "demarc/ptx/ir.hpp"
#include "lanes/functions.hpp"
#include "lower/instruction_view.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

// LaneType::none: lane functions have no such type.
[[nodiscard]] LaneType lane_type(ptx::Type type);
// Empty: no atomic operation has it.
[[nodiscard]] std::optional<AtomicType> atomic_type(ptx::Type type);

// The operation that an atomic instruction or a reduction names.
[[nodiscard]] std::optional<AtomicKind> atomic_kind(const InstructionView& instruction);

[[nodiscard]] bool is_signed(ptx::Type type);
[[nodiscard]] bool is_integer(ptx::Type type);   // untyped bits included
[[nodiscard]] bool is_floating(ptx::Type type);  // packed ones included

// The micro-op of a row of lanes/alu_ops.def for elements of 16, 32 and 64 bits.
struct AluByWidth {
  Alu b16;
  Alu b32;
  Alu b64;

  [[nodiscard]] constexpr Alu of(std::uint32_t bytes) const {
    return bytes == 2 ? b16 : (bytes == 4 ? b32 : b64);
  }
};

#define DEMARC_ALU_BY_WIDTH(name)               \
  AluByWidth {                                  \
    Alu::name##16, Alu::name##32, Alu::name##64 \
  }

// Moves a register of so many bytes.
[[nodiscard]] Alu move_of_width(std::uint32_t bytes);

}  // namespace demarc::emulate
