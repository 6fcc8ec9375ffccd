#pragma once

#include "demarc/report/demo.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// The plan as a command line, without its workloads and modes.
inline constexpr std::string_view isolate_demo_command =
    "demarc isolate --device sim:gtx1080 --warm-up 1 --samples 3 --max-samples 3 --rounds 1";

// Nothing divided, SMs divided, SMs and memory divided. Errors: names that do not exist.
[[nodiscard]] Result<study::Plan> isolate_demo_plan(const DemoOptions& options);

// On the simulated GTX 1080.
[[nodiscard]] Result<study::StudyResult> run_isolate_demo(const study::Plan& plan,
                                                          const Progress& progress);

}  // namespace demarc::report
