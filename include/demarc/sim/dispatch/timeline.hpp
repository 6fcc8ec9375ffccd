// Who ran on which SM and when, from either model, ready to be drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/sim/dispatch/tb_simulation.hpp"
#include "demarc/sim/pipeline/scenario.hpp"

namespace demarc::sim {

struct DispatchTimeline {
  struct Span {
    std::uint32_t sm = 0;
    std::uint32_t kernel = 0;
    double start = 0, end = 0;
    std::uint32_t blocks = 0;
  };
  std::string title;
  std::string unit;  // unit of the times: "us" or "tick"
  std::uint32_t sms = 0;
  std::vector<std::string> kernels;  // names
  std::vector<Span> spans;           // by start, then SM
};

[[nodiscard]] DispatchTimeline pipeline_timeline(const PipelineScenario& scenario,
                                                 const PipelineRun& run);

// Runs the configuration under options.policy and records it; options.observer is not used.
[[nodiscard]] Result<DispatchTimeline> tb_timeline(const TbConfig& config, TbOptions options);

}  // namespace demarc::sim
