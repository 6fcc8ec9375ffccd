// Specs to launches: bundled workloads by name (in capitals as in the paper, too), launch files.
#pragma once

#include "gpu/gpu_lane.hpp"

namespace demarc::study {

// `target`: 90 for compute capability 9.0. Bundled workloads come at their scale "large" where they
// have it: sizes that keep a real GPU busy. "mm@small" names another scale. Contents of buffers are
// made once and kept.
[[nodiscard]] WorkloadReader make_workload_reader(std::uint32_t target);

// Launch and PTX alone. missing_capability for commands, which have none.
[[nodiscard]] Result<WorkloadCode> gpu_workload_code(const std::string& spec, std::uint32_t target);

}  // namespace demarc::study
