// Reads the types and the comparison of video instructions.
#include "lower/video_words.hpp"

#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;

std::optional<VideoTypes> video_types(const InstructionView& instruction) {
  const auto& types = instruction.words().types;
  const bool sets = instruction.opcode() == Opcode::vset || instruction.opcode() == Opcode::vset2 ||
                    instruction.opcode() == Opcode::vset4;
  if (types.size() != (sets ? 2U : 3U)) return std::nullopt;
  if (sets) return VideoTypes{.d = ptx::Type::u32, .a = types[0], .b = types[1]};
  return VideoTypes{.d = types[0], .a = types[1], .b = types[2]};
}

void set_video_types(LaneDetails& made, const VideoTypes& types) {
  made.type = lane_type(types.d);
  made.from = lane_type(types.a);
  made.other = lane_type(types.b);
}

std::optional<Compare> video_compare(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, Compare, 6> words{{{"eq", Compare::eq},
                                                             {"ne", Compare::ne},
                                                             {"lt", Compare::lt},
                                                             {"le", Compare::le},
                                                             {"gt", Compare::gt},
                                                             {"ge", Compare::ge}}};
  return instruction.chosen(words);
}

}  // namespace demarc::emulate
