// The variables of a module that a kernel names.
#pragma once

#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// The variables of `module` that are named by instructions of `kernel` or of functions that it may
// run, in the module's order. Variables that the kernel finds only through addresses in other
// variables are not among them.
[[nodiscard]] std::vector<const Variable*> named_variables(const Module& module,
                                                           const Function& kernel);

}  // namespace demarc::ptx
