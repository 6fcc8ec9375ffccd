// The drivers of CUDA in another process, seen from outside.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace demarc::cuda {

// The file of each driver that a process has loaded; a driver that was loaded twice, as into
// another namespace of the linker, is there twice. A driver is known by the name of its file, or by
// the name that it was linked under, which a copy keeps whatever its file is called and after it
// was deleted. Nothing when the process may not be looked at.
[[nodiscard]] std::optional<std::vector<std::string>> drivers_of(pid_t process);

}  // namespace demarc::cuda
