// The processes of MPS daemons on this machine, as /proc tells them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace demarc::serve {

struct MpsProcess {
  pid_t process = 0;
  pid_t parent = 0;
  std::string folder;  // CUDA_MPS_PIPE_DIRECTORY, absolute or NVIDIA's default
};

// All daemons, and their servers, of this user.
[[nodiscard]] std::vector<MpsProcess> mps_processes();
// Those of `all` that are of one folder. The daemon itself comes first: none of the others is its
// parent.
[[nodiscard]] std::vector<pid_t> mps_processes_of(const std::string& folder,
                                                  std::vector<MpsProcess> all = mps_processes());

// Kills what is left of a folder's daemon, and waits at most so many seconds until it is gone.
// False: there was nothing.
bool kill_mps(const std::string& folder, double seconds);

}  // namespace demarc::serve
