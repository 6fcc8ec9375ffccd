// Pages and traces of the multi-GPU address-translation simulation.
#pragma once

#include <string>
#include <vector>

#include "demarc/sim/translation/study.hpp"

namespace demarc::report {

// Figures 4 to 7 of the paper, its numbers beside ours, under each setting of the study.
[[nodiscard]] std::string translation_study_page(const sim::translation::Study& study,
                                                 const std::string& command);

// A Perfetto trace: one process an architecture, counters over time. A cycle is written as a
// microsecond.
[[nodiscard]] std::string translation_trace(
    const sim::translation::Comparison& comparison,
    const std::vector<sim::translation::Timeline>& timelines);

}  // namespace demarc::report
