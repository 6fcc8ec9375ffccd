// Workloads that are launch files.
#pragma once

#include <string_view>

#include "demarc/gpu/launch.hpp"

namespace demarc::study {

// Whether a workload's spec is "launch:FILE.json" or, with one of the file's scales,
// "launch:FILE.json@SCALE".
[[nodiscard]] bool is_launch_file(std::string_view spec);

// Of such a spec. Errors: those of gpu::read_launch(), a scale that the file does not have.
[[nodiscard]] Result<gpu::Launch> read_launch_file(std::string_view spec);

}  // namespace demarc::study
