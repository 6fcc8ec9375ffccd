// The __managed__ variables of device code. The driver moves their memory between card and host, so
// it cannot be divided. Code that confines a program refuses modules with such variables. So what
// cannot be read is an error and never "none".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::fatbin {

// Names, ascending, without repetition. A fat binary has those of all its entries and of the fat
// binaries that it was linked from, because it is not known which of them the driver takes.
[[nodiscard]] Result<std::vector<std::string>> managed_variables(const Image& image,
                                                                 std::string_view name);

// The same for a module that is already parsed.
[[nodiscard]] std::vector<std::string> managed_variables(const ptx::Module& module);

}  // namespace demarc::fatbin
