// What of a module's memory a kernel names.
#pragma once

#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// The variables of `module` that instructions of `kernel`, or of functions that it may run, name;
// in the module's order. Those that it finds through addresses held by others are not among them.
[[nodiscard]] std::vector<const Variable*> named_variables(const Module& module,
                                                           const Function& kernel);

}  // namespace demarc::ptx
