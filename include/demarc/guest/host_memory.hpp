// Host memory that kernels reach: what of the driver's functions gives it to a program.
#pragma once

#include "demarc/driver/driver_call.hpp"

namespace demarc::cuda {

// Whether the call, if it is carried out, gives kernels of the program host memory: pinned,
// registered or managed memory, pools and allocations that do not lie on a card, and what other
// processes or libraries made, whose place is unknown.
[[nodiscard]] bool gives_host_memory(const DriverCall& call);

}  // namespace demarc::cuda
