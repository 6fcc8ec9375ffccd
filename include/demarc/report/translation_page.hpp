// Pages and traces of the multi-GPU address-translation simulation.
#pragma once

#include <string>
#include <vector>

#include "demarc/sim/translation/study.hpp"

namespace demarc::report {

// What `demarc translate` found: speed-ups, then every run.
[[nodiscard]] std::string translation_page(const sim::translation::Comparison& comparison,
                                           const std::string& command);
// The same under each split of the work. The list is not empty.
[[nodiscard]] std::string translation_splits_page(
    const std::vector<sim::translation::Comparison>& splits, const std::string& command);

// Figures 4 to 7 of the paper, its numbers beside ours, under each setting of the study.
[[nodiscard]] std::string translation_study_page(const sim::translation::Study& study,
                                                 const std::string& command);

// A Perfetto trace: one process per architecture, counters over time. A cycle is written as a
// microsecond.
[[nodiscard]] std::string translation_trace(
    const sim::translation::Comparison& comparison,
    const std::vector<sim::translation::Timeline>& timelines);

}  // namespace demarc::report
