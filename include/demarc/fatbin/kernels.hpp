// The kernels of machine code, by name, and code that has nothing else.
#pragma once

#include <cstdint>
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

// Whether it has kernels, and no PTX that a card of compute capability `sm` (90: 9.0) can run.
[[nodiscard]] Result<bool> is_machine_code_alone(const Image& image, std::uint32_t sm,
                                                 std::string_view name);

}  // namespace demarc::fatbin
