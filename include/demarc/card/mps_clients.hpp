// The clients of an MPS daemon, as its control program knows them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "demarc/base/process.hpp"

namespace demarc::cuda {

inline constexpr const char* mps_control = "nvidia-cuda-mps-control";  // found in PATH

// How long the daemon's answers are waited for, all together.
struct MpsPatience {
  double seconds = 20;
  std::function<bool()> is_over = [] { return false; };  // asked meanwhile: waits no longer
};

struct EndedMpsClient {
  pid_t process = 0;
  Result<void> ended;
};

// Ends the work on the card of the clients that `chosen` selects, and tells of each of them whether
// it has ended. If a client is killed while its kernels run, the work of the other clients ends,
// too (docs/measurements/programs.md); not if its work was ended so before. The client itself ends
// its work, but not while one of its threads is stopped inside the driver. `daemon`: the
// environment that leads to the daemon (CUDA_MPS_PIPE_DIRECTORY). check_failed if the daemon does
// not list its clients in time.
[[nodiscard]] Result<std::vector<EndedMpsClient>> end_mps_clients(
    const Environment& daemon, const std::function<bool(pid_t client)>& chosen,
    const MpsPatience& patience = {});

// What the daemon answers to a question. check_failed if it does not in time.
[[nodiscard]] Result<std::string> ask_mps_daemon(const Environment& daemon,
                                                 const std::string& question,
                                                 const MpsPatience& patience);

}  // namespace demarc::cuda
