// What the functions of one kernel share while they are lowered.
#pragma once

#include "lower/function_list.hpp"
#include "lower/lower.hpp"
#include "lower/refusals.hpp"
#include "lower/shared_variables.hpp"

namespace demarc::emulate {

struct KernelContext {
  const LowerRequest& request;
  Program& program;
  Refusals& refusals;
  const SharedVariables& shared;
  FunctionList& functions;

  [[nodiscard]] const ptx::Module& module() const { return *request.module; }
};

}  // namespace demarc::emulate
