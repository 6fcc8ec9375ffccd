// The frame of a function: where its registers, its constants and its variables lie. Registers come
// first; whatever else an instruction needs is taken behind them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"
#include "lower/refusals.hpp"
#include "lower/slots.hpp"
#include "machine.hpp"

namespace demarc::emulate {

class Frame {
 public:
  // `code` is the function's, with its parameters and results laid out at the start of the frame.
  Frame(const ptx::Module& module, const ptx::Function& function, const ptx::Cfg& cfg,
        const CodeFunction& code, Refusals& refusals);

  [[nodiscard]] const Register& reg(std::uint32_t number) const { return registers_[number]; }
  // Empty: no variable in .param space of this function.
  [[nodiscard]] std::optional<FrameVariable> parameter_variable(
      const ptx::Variable& variable) const;
  // From the start of the function's local memory. Empty: no local variable of this function, and
  // no parameter or result whose address it takes.
  [[nodiscard]] std::optional<std::uint32_t> local_offset(const ptx::Variable& variable) const;

  // New places. What no longer fits gets the first one, and finish() refuses the function.
  Register predicate();
  Register uniform(std::uint8_t width);
  Register vector(std::uint8_t width);
  Slot lanes(std::uint32_t bytes);  // so many of each lane

  // An immediate of that type, the same place for the same bits. A predicate has all lanes unless
  // it is zero.
  Source constant(ptx::Type type, std::uint64_t bits);

  // To be called once, when the function is lowered.
  void finish(CodeFunction& code, Refusals& refusals) const;

 private:
  void place_registers(const ptx::Module& module, const ptx::Cfg& cfg);
  void place_variables(Refusals& refusals);
  void place_local(const ptx::Variable& variable, Refusals& refusals);
  Slot take(std::uint32_t bytes, std::uint32_t alignment);

  const ptx::Function& function_;
  std::vector<Register> registers_;
  std::vector<FrameVariable> zeroed_;
  std::vector<std::uint32_t> uniforms_;  // places of registers
  std::map<std::uint64_t, Slot> constants_;
  std::map<const ptx::Variable*, FrameVariable> parameter_variables_;
  std::map<const ptx::Variable*, std::uint32_t> local_offset_;
  std::uint32_t local_bytes_ = 0;
  std::uint32_t used_ = 0;
  bool full_ = false;
};

}  // namespace demarc::emulate
