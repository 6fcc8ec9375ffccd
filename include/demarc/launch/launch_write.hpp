// A launch as a launch file.
#pragma once

#include <string>

#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::gpu {

// A text that parse_launch_json() reads back as the same launch, if it is given the folder that the
// launch's files are in. The text has the values that the parameters led to, not the parameters.
// The PTX file and the buffers' files are taken to lie in that folder. An error names what a launch
// file cannot say: a whole number of 2^63 or more.
[[nodiscard]] Result<std::string> launch_to_json(const Launch& launch);

}  // namespace demarc::gpu
