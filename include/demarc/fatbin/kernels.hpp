// The names of the kernels of machine code, and whether an image has only machine code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin {

// Names as the linker knows them, ascending, without repetition. A cubin has its own kernels; a fat
// binary has those of all its machine code and of the fat binaries that it was linked from. PTX has
// none.
[[nodiscard]] Result<std::vector<std::string>> machine_code_kernels(const Image& image,
                                                                    std::string_view name);

// Whether the image has kernels, but no PTX that a card of compute capability `sm` (90: 9.0) can
// run.
[[nodiscard]] Result<bool> is_machine_code_alone(const Image& image, std::uint32_t sm,
                                                 std::string_view name);

// Whether a fat binary has machine code that such a card runs as it is. Other images are what they
// are: machine code for the card, or PTX.
[[nodiscard]] Result<bool> has_machine_code(const Image& image, std::uint32_t sm,
                                            std::string_view name);

}  // namespace demarc::fatbin
