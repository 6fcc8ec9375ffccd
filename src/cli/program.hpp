// The program as a function, for verbs that run others.
#pragma once

#include <string>
#include <vector>

namespace demarc::cli {

// `arguments`: a verb and its own. Once a process; gives the exit code.
int run_arguments(const std::vector<std::string>& arguments);

}  // namespace demarc::cli
