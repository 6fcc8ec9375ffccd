// The clients of an MPS daemon, as its control program knows them.
#pragma once

#include <sys/types.h>

#include <functional>

#include "demarc/base/process.hpp"

namespace demarc::cuda {

inline constexpr const char* mps_control = "nvidia-cuda-mps-control";  // found in PATH

// Ends what those clients that `chosen` says have on the card. A client that is killed while its
// kernels run can take the other clients along (NVIDIA's guide of MPS); one that was ended so first
// cannot. `daemon`: what leads to it (CUDA_MPS_PIPE_DIRECTORY). A daemon that does not answer
// within 20 s ends nothing.
void end_mps_clients(const Environment& daemon, const std::function<bool(pid_t client)>& chosen);

}  // namespace demarc::cuda
