// Lines on standard error that cannot end the process.
#pragma once

#include <string_view>

namespace demarc {

// Writes to standard error as it is. What cannot be written is lost, because a full disk behind
// standard error, or a reader that has ended, must end neither this process nor what it looks
// after: no SIGPIPE reaches the process. How signals are handled stays as it is for child
// processes.
void say_to_standard_error(std::string_view text);

}  // namespace demarc
