// The tables of an interference study on its page.
#pragma once

#include "demarc/report/table.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// Below 5 %, below 20 %, and above.
[[nodiscard]] Tone tone_of(double percent);

[[nodiscard]] std::string mode_name(const study::StudyResult& result,
                                    const study::ModeSummary& mode);
[[nodiscard]] std::string neighbour_name(const study::StudyResult& result, const study::Cell& cell);

// Those that ran at least one victim with right results.
[[nodiscard]] std::vector<const study::ModeSummary*> modes_that_ran(
    const study::StudyResult& result);

// One row a victim, one column a mode that ran, then averages and maxima. The second says beside
// each number whether it is of p99 or of the worst of how many runs; averages and maxima of the two
// stand apart.
[[nodiscard]] Table mean_variation_table(const study::StudyResult& result);
[[nodiscard]] Table tail_variation_table(const study::StudyResult& result);

// The times of every cell of a mode, microseconds. Where there are too few runs for a p99 its
// column says what it is at least, with 97.5 % confidence.
[[nodiscard]] Table runs_table(const study::StudyResult& result, const study::ModeSummary& mode);

}  // namespace demarc::report
