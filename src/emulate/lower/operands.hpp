// From the operands of an instruction to places in the frame, and to addresses. An operand that has
// no place fails the instruction (Emitter::fail); what is returned then stands for nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lower/emitter.hpp"
#include "lower/frame.hpp"
#include "lower/instruction_view.hpp"
#include "lower/kernel.hpp"

namespace demarc::emulate {

class Operands {
 public:
  // `index`: of the function in Program::functions.
  Operands(const KernelContext& kernel, std::uint32_t index, Frame& frame, Emitter& code)
      : kernel_(kernel),
        function_(kernel.functions[index]),
        index_(index),
        frame_(frame),
        code_(code) {}

  // An operand that is read as `type`; a register of another width fails. A special register and
  // the address of a local variable take a micro-op to read.
  Source source(const ptx::Operand& operand, ptx::Type type);
  // The same for registers of any width: the caller looks at Source::width.
  Source any_source(const ptx::Operand& operand, ptx::Type type);
  // Several that have the same type.
  std::vector<Source> sources(std::span<const ptx::Operand> operands, ptx::Type type);
  // A register that is written with a `type`, or for a sink a place that is never read; a register
  // of another width fails.
  Register destination(const ptx::Operand& operand, ptx::Type type);
  // The same for registers of any width: the caller looks at Register::width.
  Register any_destination(const ptx::Operand& operand);
  // The predicate that an instruction is guarded with.
  [[nodiscard]] Source guard(const InstructionView& instruction) const;

  // A memory micro-op that goes to the place that `operand` names, without its handler: kind, a,
  // imm, c, join and the operand bits of a. Empty: not covered.
  std::optional<MicroOp> address(const ptx::Operand& operand, ptx::StateSpace space);
  // The same by an address of 64 bits of each lane that stands in `slot`.
  MicroOp at_slot(std::uint32_t slot, ptx::StateSpace space);

 private:
  Source special(const ptx::Operand& operand);
  Source symbol(const ptx::Operand& operand);
  std::optional<Source> variable_address(const ptx::Variable& variable, std::uint64_t offset);
  std::optional<Source> function_address(const ptx::Operand& operand);
  [[nodiscard]] const ptx::Variable& variable(const ptx::Operand& operand) const;
  [[nodiscard]] std::optional<FrameVariable> in_frame(const ptx::Operand& operand) const;
  std::optional<MicroOp> frame_address(const ptx::Operand& operand);
  [[nodiscard]] bool is_in_parameter_bank(const ptx::Operand& operand) const;

  const KernelContext& kernel_;
  const ptx::Function& function_;
  std::uint32_t index_;
  Frame& frame_;
  Emitter& code_;
};

}  // namespace demarc::emulate
