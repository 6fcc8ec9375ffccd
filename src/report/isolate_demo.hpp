#pragma once

#include "demarc/report/demo.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// Nothing divided, SMs divided, SMs and memory divided. Errors: names that do not exist.
[[nodiscard]] Result<study::Plan> isolate_demo_plan(const DemoOptions& options);

// On the simulated GTX 1080.
[[nodiscard]] Result<study::StudyResult> run_isolate_demo(const study::Plan& plan,
                                                          const Progress& progress);

}  // namespace demarc::report
