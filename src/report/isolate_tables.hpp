// The tables of an interference study on its page.
#pragma once

#include "demarc/report/table.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// Below 5 %, below 20 %, and above.
[[nodiscard]] Tone tone_of(double percent);
// 1 is the time on an ideal share of the GPU. A twentieth more is still good, twice as much is bad.
[[nodiscard]] Tone tone_of_overhead(double overhead);
// A ratio as study::slowdown_text() writes it, with what to sort by.
[[nodiscard]] Cell ratio_cell(double ratio, Tone tone);

// The colour of a mode in all charts of all pages (Series::color).
[[nodiscard]] std::uint32_t color_of(const study::Mode& mode);

[[nodiscard]] std::string mode_name(const study::StudyResult& result,
                                    const study::ModeSummary& mode);
[[nodiscard]] std::string neighbour_name(const study::StudyResult& result, const study::Cell& cell);

// Those that ran at least one victim with right results, the recommended one first.
[[nodiscard]] std::vector<const study::ModeSummary*> modes_that_ran(
    const study::StudyResult& result);

// One row per victim, one column per mode that ran: slowdowns as multiples, then averages and
// maxima. The first says what the victims do. The second says with each number whether it is of
// p99 or of the worst of how many runs; averages and maxima of the two stand apart. A click on a
// cell of the first two shows its runs. The third has the overheads.
[[nodiscard]] Table mean_slowdown_table(const study::StudyResult& result);
[[nodiscard]] Table tail_slowdown_table(const study::StudyResult& result);
[[nodiscard]] Table overhead_table(const study::StudyResult& result);

// The times of every cell of a mode, microseconds. Where there are too few runs for a p99 its
// column says what it is at least, with 97.5 % confidence.
[[nodiscard]] Table runs_table(const study::StudyResult& result, const study::ModeSummary& mode);

}  // namespace demarc::report
