// The main job on bundled kernels, without a GPU: who disturbs whom on a simulated card.
#pragma once

#include "demarc/base/progress.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// The workloads of the paper (Fractional GPUs, section VI) in two halves of a simulated GTX 1080:
// nothing divided, SMs divided, SMs and memory divided.
[[nodiscard]] Result<study::StudyResult> run_isolate_demo(const Progress& progress);

}  // namespace demarc::report
