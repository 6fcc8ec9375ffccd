// The clients of an MPS daemon, as its control program knows them.
#pragma once

#include <sys/types.h>

#include <functional>

#include "demarc/base/process.hpp"

namespace demarc::cuda {

inline constexpr const char* mps_control = "nvidia-cuda-mps-control";  // found in PATH

// Ends the work on the card of the clients that `chosen` selects. If a client is killed while its
// kernels run, the work of the other clients ends, too (docs/measurements/programs.md); not if its
// work was ended so before. The client itself ends its work, but not while one of its threads is
// stopped inside the driver. `daemon`: the environment that leads to the daemon
// (CUDA_MPS_PIPE_DIRECTORY). check_failed if the daemon does not answer within 20 s, or answers
// anything but that the work of a client has ended.
[[nodiscard]] Result<void> end_mps_clients(const Environment& daemon,
                                           const std::function<bool(pid_t client)>& chosen);

}  // namespace demarc::cuda
