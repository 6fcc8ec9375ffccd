// What kind of error a number of the CUDA driver is.
#pragma once

#include "demarc/base/result.hpp"
#include "demarc/driver/driver_types.hpp"

namespace demarc::cuda {

// check_failed: a GPU that ran failed (a fault of a kernel, of the memory, of MPS, a card that went
// away), and every number that is not known; missing_capability: the machine, the driver or what is
// free of it does not allow what was asked; invalid_input: what was asked cannot be meant.
[[nodiscard]] ErrorKind kind_of(CuResult code);

// What has ended the context for which a function of the driver returns this number: every further
// call in it fails, too. Null for all numbers that end none.
[[nodiscard]] const char* end_of_context(CuResult code);

}  // namespace demarc::cuda
