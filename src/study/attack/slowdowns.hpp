// What measured cells say of one neighbour.
#pragma once

#include "attack/ground.hpp"

namespace demarc::study {

// Its slowdowns of every victim and the worst of them, runs a second, and a wrong output; the
// field `screened` stays empty. `kernels_alone`: whole runs are told, but none is the worst.
[[nodiscard]] RankedNeighbour slowdowns_of(const Measured& measured, std::size_t candidate,
                                           bool kernels_alone);

// Worse neighbours first: wrong outputs, then the mean.
[[nodiscard]] bool hurts_more(const RankedNeighbour& a, const RankedNeighbour& b);

}  // namespace demarc::study
