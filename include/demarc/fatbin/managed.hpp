// The __managed__ variables of device code: memory that the driver moves between card and host, and
// that no line can be drawn through. Whoever confines a program refuses modules that have some, so
// what cannot be read is an error and never "none".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::fatbin {

// Names, ascending, each once. Of a fat binary those of all its entries, and of those that it was
// linked from: which of them the driver takes is not known before.
[[nodiscard]] Result<std::vector<std::string>> managed_variables(const Image& image,
                                                                 std::string_view name);

// Of a module that is parsed already.
[[nodiscard]] std::vector<std::string> managed_variables(const ptx::Module& module);

}  // namespace demarc::fatbin
