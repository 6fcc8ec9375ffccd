// Pages and pictures of thread-block dispatch.
#pragma once

#include <string>

#include "demarc/report/table.hpp"
#include "demarc/sim/dispatch/tb_study.hpp"
#include "demarc/sim/dispatch/timeline.hpp"

namespace demarc::report {

// Figures 6-9 of the SimTBS paper beside the corrected curves, and what its round robin does.
[[nodiscard]] std::string schedule_study_page(const sim::TbStudy& study,
                                              const std::string& command);
// What the paper's text says, each with its place, beside ours (sim::tb_claims).
[[nodiscard]] Table schedule_published_table(const sim::TbStudy& study);
// Every policy over loads, mixes and machine sizes.
[[nodiscard]] std::string schedule_compare_page(const sim::TbStudy& study,
                                                const std::string& command);

// A Perfetto trace with one track per SM. A tick is written as a microsecond.
[[nodiscard]] std::string schedule_trace(const sim::DispatchTimeline& timeline);
// The same as a static picture: SMs from top to bottom, time from left to right, one colour per
// kernel.
[[nodiscard]] std::string schedule_svg(const sim::DispatchTimeline& timeline);

}  // namespace demarc::report
