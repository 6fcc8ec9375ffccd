// A launch as a launch file.
#pragma once

#include <string>

#include "demarc/base/result.hpp"
#include "demarc/gpu/launch.hpp"

namespace demarc::gpu {

// What parse_launch_json() reads back as the same launch, when it is given the folder that the
// launch's files are in; parameters are not written, what they led to is. The names of the PTX file
// and of the buffers' files are taken to lie in that folder. An error names what a launch file
// cannot say: a whole number of 2^63 or more.
[[nodiscard]] Result<std::string> launch_to_json(const Launch& launch);

}  // namespace demarc::gpu
