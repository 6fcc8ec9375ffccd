// Whether the driver tells how much local memory a kernel takes. Kernels that keep something there
// leave their tenant's colours, and nothing else shows which do.
#pragma once

#include "demarc/base/result.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

// Asks of a kernel that surely takes some. missing_capability if the driver says none. A context is
// current.
[[nodiscard]] Result<void> check_stack_figure(const DriverApi& api);

}  // namespace demarc::cuda
