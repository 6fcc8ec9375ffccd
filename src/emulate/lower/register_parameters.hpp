// Values on their way between the frames of a caller and of what it calls. Parameters and results
// lie at the start of the frame of the function that is called; those in .reg space are copied from
// there and to there.
#pragma once

#include <cstdint>

#include "lower/function.hpp"

namespace demarc::emulate {

// A value of each lane in the frame.
struct LanePlace {
  Slot slot;
  std::uint32_t pitch = 0;  // bytes from one lane to the next
  bool uniform = false;     // one value for all lanes
};

[[nodiscard]] LanePlace lanes_of(const Source& source);
[[nodiscard]] LanePlace lanes_of(const Register& reg);

// Whether copy_lanes() can copy a value of such a width: no predicate, nor 16 bytes.
[[nodiscard]] bool can_copy_lanes(std::uint8_t width);
// Fails where it cannot.
void copy_lanes(Emitter& code, const LanePlace& from, const LanePlace& to, std::uint8_t width);

// At the start of a function: its .reg parameters from the frame into their registers. The function
// is refused where one of them, or of its results, cannot be copied.
void take_parameters(FunctionContext& f);
// Where it returns: its .reg results from their registers into the frame.
void give_results(FunctionContext& f);

}  // namespace demarc::emulate
