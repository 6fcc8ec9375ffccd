// The kernels of machine code, by name: what stands in a message about code that has no PTX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin {

// As the linker knows them, ascending, each once: of a cubin its own, of a fat binary those of all
// its machine code, and of those that it was linked from. PTX has none.
[[nodiscard]] Result<std::vector<std::string>> machine_code_kernels(const Image& image,
                                                                    std::string_view name);

}  // namespace demarc::fatbin
