// What bulk copies have in common, whether of bytes or of tensors.
#pragma once

#include <span>

#include "lower/instructions.hpp"
#include "ops/bulk.hpp"

namespace demarc::emulate {

// A memory micro-op within the details of another.
[[nodiscard]] MicroOp part_of_copy(const Emitter& code, const MicroOp& op, std::uint8_t bytes);

struct ArrivalOperands {
  const ptx::Operand& to;
  ptx::StateSpace space;
  std::span<const ptx::Operand> rest;  // the barrier and the blocks, where they are written
};

// False: not covered.
[[nodiscard]] bool lower_arrival(FunctionContext& f, const InstructionView& instruction,
                                 const ArrivalOperands& operands, BulkArrival& made);

}  // namespace demarc::emulate
