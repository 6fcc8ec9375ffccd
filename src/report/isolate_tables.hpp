// The tables of an interference study on its page.
#pragma once

#include "demarc/report/table.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// Below 5 %, below 20 %, and above.
[[nodiscard]] Tone tone_of(double percent);
// Per cent more as a multiple: 20 is 1.2.
[[nodiscard]] double slowdown_of(double percent);
// A victim's worst time in its part over its time alone on the whole GPU. Up to the number of parts
// it is no more than a fair share costs; a twentieth more is still good.
[[nodiscard]] double price_of(const study::StudyResult& result, const study::Variation& row);
[[nodiscard]] Tone tone_of_price(const study::StudyResult& result, double price);

[[nodiscard]] std::string mode_name(const study::StudyResult& result,
                                    const study::ModeSummary& mode);
[[nodiscard]] std::string neighbour_name(const study::StudyResult& result, const study::Cell& cell);

// Those that ran at least one victim with right results.
[[nodiscard]] std::vector<const study::ModeSummary*> modes_that_ran(
    const study::StudyResult& result);

// One row per victim, one column per mode that ran: slowdowns as multiples, then averages and
// maxima. The first says what the victims do. The second says beside each number whether it is of
// p99 or of the worst of how many runs; averages and maxima of the two stand apart. The third has
// the prices.
[[nodiscard]] Table mean_slowdown_table(const study::StudyResult& result);
[[nodiscard]] Table tail_slowdown_table(const study::StudyResult& result);
[[nodiscard]] Table price_table(const study::StudyResult& result);

// The times of every cell of a mode, microseconds. Where there are too few runs for a p99 its
// column says what it is at least, with 97.5 % confidence.
[[nodiscard]] Table runs_table(const study::StudyResult& result, const study::ModeSummary& mode);

}  // namespace demarc::report
