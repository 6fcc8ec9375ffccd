// A simulated GPU as the device of a study. Victims and aggressors are kernels whose PTX the
// emulator runs; their times come from the simulated memory system. Times repeat exactly. Samples
// differ only in how a launch meets those of the aggressor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "demarc/partition/partition.hpp"
#include "demarc/sim/dispatch/block_sharing.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

struct SimExecutorOptions {
  std::string device = "gtx1080";  // for gpu::find_device()
  partition::SplitStrategy split = partition::SplitStrategy::gpc_aligned;
  std::uint64_t seed = 1;             // seed of page places and constants
  std::vector<std::uint64_t> masks;   // colours are their parities; none: those of the description
  std::vector<std::uint32_t> colors;  // per part; none: part p has colour p
  std::string
      dispatch;  // policy that picks the SM of each block; empty: the SM with fewest threads
  // What blocks share, for the policy `locality`. Keys are workloads as in Workload::spec; "" is
  // for the rest.
  std::map<std::string, sim::BlockSharing> sharing;
  unsigned threads = 0;  // cells side by side; 0: all cores. The results do not depend on it
};

// Its modes are none, mps (every client runs on all SMs, with its share of each SM's threads),
// green and mask (each client has its own SMs), each also with +color. The others are
// missing_capability. Bundled workloads come in sizes made for simulation (sim_parameters());
// "va@large" names a scale of the launch file.
[[nodiscard]] Result<std::unique_ptr<Executor>> make_sim_executor(
    const SimExecutorOptions& options);

}  // namespace demarc::study
