// Device code that launches kernels itself (dynamic parallelism): it calls CUDA's device runtime.
// Such launches ignore masks of TPCs. So what cannot be read is an error and never "none".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin {

// Names of the functions of the device runtime that the code names, ascending, without repetition;
// of a fat binary those of all its entries.
[[nodiscard]] Result<std::vector<std::string>> device_runtime_functions(const Image& image,
                                                                        std::string_view name);

}  // namespace demarc::fatbin
