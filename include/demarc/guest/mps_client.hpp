// Whether this process is a client of the MPS that its program relies on.
#pragma once

#include <string>

#include "demarc/driver/driver.hpp"

namespace demarc::cuda {

// missing_capability if it is not, or if the driver does not tell: CUDA without a daemon in the
// folder makes a context all the same, which takes turns with those of other programs. The driver
// knows before a context is made.
[[nodiscard]] Result<void> check_mps_client(const DriverApi& api, CuDevice device,
                                            const std::string& folder);

}  // namespace demarc::cuda
