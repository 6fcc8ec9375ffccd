// A workload as a simulated lane runs it: steps recorded once and shared by all cells, or emulated
// on the fly when there are too many.
#pragma once

#include <functional>

#include "demarc/launch/launch.hpp"
#include "demarc/sim/memory/work.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

struct SimWorkload {
  std::function<std::unique_ptr<sim::memory::Source>()> source;
  sim::Address base;        // of the first buffer
  std::uint64_t bytes = 0;  // up to the end of the last
  Outputs outputs;
};

// "stream:FILE" is an access stream (demarc/sim/memory/access_stream.hpp), the rest are kernels.
// Emulates the workload once, with its outputs checked against the reference. `target`: 90 for
// sm_90. `l2_bytes`: of the simulated card, for the default sizes of bundled workloads. Errors name
// a workload that does not exist or cannot be emulated.
[[nodiscard]] Result<SimWorkload> load_sim_workload(const std::string& spec, std::uint32_t target,
                                                    std::uint64_t l2_bytes);

// The launch and the PTX of a workload, nothing run. missing_capability for what has none: access
// streams and commands.
[[nodiscard]] Result<WorkloadCode> sim_workload_code(const std::string& spec, std::uint32_t target,
                                                     std::uint64_t l2_bytes);

}  // namespace demarc::study
