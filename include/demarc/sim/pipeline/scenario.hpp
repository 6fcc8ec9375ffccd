// Scenario files of the hardware pipeline: a device, streams, and kernels with arrival times.
//
//   {"schema": "demarc.scenario/1", "device": "gtx1060-3gb",
//    "streams": [{"name": "A", "tpcs": "0-3"}, {"name": "B", "priority": 1, "gpcs": "1"}],
//    "kernels": [{"name": "K1", "stream": "A", "arrival_us": 0, "blocks": 40, "threads": 512,
//                 "block_us": 100, "repeat": 2}]}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/sim/pipeline/pipeline.hpp"

namespace demarc::sim {

struct PipelineScenario {
  std::string title;
  std::string device_name;
  PipelineSpec spec;
  std::vector<std::string> streams;
  PipelineKernels kernels;
};

// Errors name `source` and the path of the key.
[[nodiscard]] Result<PipelineScenario> parse_scenario(std::string_view text,
                                                      std::string_view source);

// A table for people, or JSON (schema demarc.schedule.hardware/1): when each kernel was queued,
// began and ended, on which SMs.
[[nodiscard]] std::string report_scenario(const PipelineScenario& scenario, const PipelineRun& run,
                                          bool json);

}  // namespace demarc::sim
