// Device code of this process that cannot be rewritten.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace demarc::cuda {

// Of the executable and the libraries that this process has loaded the first that holds kernels as
// machine code alone for a card of compute capability `sm` (90: 9.0), or that cannot be read:
// which, and what was found. The driver's own libraries do not count.
[[nodiscard]] std::optional<std::string> machine_code_in_process(std::uint32_t sm);

}  // namespace demarc::cuda
