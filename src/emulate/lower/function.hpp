// What the instructions of one function share while they are lowered.
#pragma once

#include <cstdint>

#include "demarc/ptx/cfg.hpp"
#include "lower/branches.hpp"
#include "lower/emitter.hpp"
#include "lower/frame.hpp"
#include "lower/kernel.hpp"
#include "lower/operands.hpp"

namespace demarc::emulate {

struct FunctionContext {
  const KernelContext& kernel;
  const ptx::Function& function;
  std::uint32_t index;  // in Program::functions
  Frame& frame;
  Emitter& code;
  Operands& operands;
  Branches& branches;
};

// Writes the micro-ops of a function behind those that the program has, and its CodeFunction.
void lower_function(const KernelContext& kernel, std::uint32_t index);

}  // namespace demarc::emulate
