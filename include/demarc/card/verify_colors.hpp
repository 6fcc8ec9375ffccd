// Proves from inside the GPU that colours of memory keep traffic apart now. Timing finds each
// chunk's colour, and a victim is timed next to neighbours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {

struct VerifyColorsPlan {
  std::uint32_t device = 0;
  std::vector<std::uint64_t> masks;         // masks of the colouring; none: as the card's
                                            // description says
  std::string description;                  // gpu::describe_card()
  std::uint32_t color_count = 2;            // number of colours of the description's colouring
  std::vector<std::uint32_t> colors = {0};  // those of the victim
  // The proof keeps about so many; on a card of parities it takes twice as many first.
  std::uint64_t pool_bytes = 1ULL << 31U;
  double max_slowdown = 1.15;  // the largest factor that a neighbour in other colours
                               // may cause
};

// The time of the victim next to a neighbour, divided by its time alone.
struct NeighbourEffect {
  std::string neighbour;  // "reads, other colours"
  double slowdown = 0;
  bool counts = false;  // false: a neighbour in the victim's own colours, for comparison
};

struct VerifyColorsReport {
  std::string card;
  color::ColorSet expected;  // as in the plan
  ColorAudit audit;
  std::vector<NeighbourEffect> effects;
  double max_slowdown = 0;
  bool felt = false;  // a neighbour in the victim's own colours slows it by more than that
  bool holds = false;
};

// The victim streams from DRAM on every other TPC; the neighbour runs on the others. It is an error
// only if the proof could not run. If colours do not hold, the report says so.
[[nodiscard]] Result<VerifyColorsReport> verify_colors(const VerifyColorsPlan& plan);

[[nodiscard]] std::string report_to_text(const VerifyColorsReport& report);
// Schema demarc.verify.colors/1.
[[nodiscard]] std::string report_to_json(const VerifyColorsReport& report);

}  // namespace demarc::cuda
