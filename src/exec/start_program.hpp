// Starts a program under the filter of seccomp_filter.hpp.
#pragma once

#include <sys/types.h>
#include <csignal>

#include <string>
#include <utility>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/guest/seccomp_filter.hpp"

namespace demarc::cuda {

struct ProgramPlan {
  std::vector<std::string> command;                              // looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // over this process's own
};

struct StartedProgram {
  pid_t process = 0;
  FilterListener listener;
};

// Returns once the program has begun. `signals` is the mask it begins with. For processes of one
// thread. invalid_input when the program cannot be started, missing_capability when the kernel
// refuses the filter: then nothing was started.
[[nodiscard]] Result<StartedProgram> start_program(const ProgramPlan& plan,
                                                   const sigset_t& signals);

}  // namespace demarc::cuda
