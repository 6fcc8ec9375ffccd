// The limits of the process, looked at before a verb runs.
#pragma once

#include "demarc/base/result.hpp"

namespace demarc::cli {

// From now on a write beyond the limit of a file's size (ulimit -f) fails, and ends nothing.
// missing_capability if the stack is so small that a fault would be next.
[[nodiscard]] Result<void> meet_limits();

}  // namespace demarc::cli
