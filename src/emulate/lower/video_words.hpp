// How video instructions are written.
#pragma once

#include <cstdint>
#include <optional>

#include "lanes/functions.hpp"
#include "lower/instruction_view.hpp"

namespace demarc::emulate {

// The types of the result and of the two operands that are read as parts of a word.
struct VideoTypes {
  ptx::Type d;
  ptx::Type a;
  ptx::Type b;
};

// Empty: not as many as the instruction needs. vset names those of its operands only.
[[nodiscard]] std::optional<VideoTypes> video_types(const InstructionView& instruction);
void set_video_types(LaneDetails& made, const VideoTypes& types);

// For vset and its kin.
[[nodiscard]] std::optional<Compare> video_compare(const InstructionView& instruction);

}  // namespace demarc::emulate
