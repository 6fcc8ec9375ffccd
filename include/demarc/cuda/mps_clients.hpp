// The clients of an MPS daemon, as its control program knows them.
#pragma once

#include <sys/types.h>

#include <functional>

#include "demarc/base/process.hpp"

namespace demarc::cuda {

inline constexpr const char* mps_control = "nvidia-cuda-mps-control";  // found in PATH

// Ends what those clients that `chosen` says have on the card. A client that is killed while its
// kernels run takes the work of the other clients along (docs/measurements/programs.md); one that
// was ended so first does not. The client itself ends it, and does not while one of its threads is
// stopped inside the driver. `daemon`: what leads to it (CUDA_MPS_PIPE_DIRECTORY). check_failed
// where it says within 20 s no answer, or another one than that the work of a client has ended.
[[nodiscard]] Result<void> end_mps_clients(const Environment& daemon,
                                           const std::function<bool(pid_t client)>& chosen);

}  // namespace demarc::cuda
