// What the server finds out about a process that asks.
#pragma once

#include <sys/types.h>

#include <string>

#include "demarc/base/result.hpp"

namespace demarc::serve {

// Only a file of the one who asks is opened, by the number that this process knows it by: in a
// process namespace of its own, as in a container, it calls itself by another one.
[[nodiscard]] Result<std::string> control_of(const std::string& control, pid_t process);

// It has a number in a process namespace below this one, too, as a process of a container has. A
// process of which that cannot be told counts as one.
[[nodiscard]] bool in_container(pid_t process);

}  // namespace demarc::serve
