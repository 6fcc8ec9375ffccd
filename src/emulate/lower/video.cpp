// Video instructions, scalar and of several parts of a word.
#include <array>
#include <optional>

#include "lower/lower.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Selector;
using ptx::Type;

namespace {

struct VideoRow {
  Opcode opcode;
  VideoOperation operation;
  unsigned parts;  // 1, 2 or 4
};
constexpr std::array<VideoRow, 22> video_rows{{{Opcode::vadd, VideoOperation::add, 1},
                                               {Opcode::vsub, VideoOperation::sub, 1},
                                               {Opcode::vabsdiff, VideoOperation::absdiff, 1},
                                               {Opcode::vmin, VideoOperation::min, 1},
                                               {Opcode::vmax, VideoOperation::max, 1},
                                               {Opcode::vshl, VideoOperation::shift_left, 1},
                                               {Opcode::vshr, VideoOperation::shift_right, 1},
                                               {Opcode::vset, VideoOperation::set, 1},
                                               {Opcode::vadd2, VideoOperation::add, 2},
                                               {Opcode::vsub2, VideoOperation::sub, 2},
                                               {Opcode::vavrg2, VideoOperation::average, 2},
                                               {Opcode::vabsdiff2, VideoOperation::absdiff, 2},
                                               {Opcode::vmin2, VideoOperation::min, 2},
                                               {Opcode::vmax2, VideoOperation::max, 2},
                                               {Opcode::vset2, VideoOperation::set, 2},
                                               {Opcode::vadd4, VideoOperation::add, 4},
                                               {Opcode::vsub4, VideoOperation::sub, 4},
                                               {Opcode::vavrg4, VideoOperation::average, 4},
                                               {Opcode::vabsdiff4, VideoOperation::absdiff, 4},
                                               {Opcode::vmin4, VideoOperation::min, 4},
                                               {Opcode::vmax4, VideoOperation::max, 4},
                                               {Opcode::vset4, VideoOperation::set, 4}}};

const VideoRow* video_row(Opcode opcode) {
  for (const VideoRow& row : video_rows) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

std::optional<VideoPart> scalar_part(const Operand& operand) {
  switch (operand.selector) {
    case Selector::none:
      return VideoPart{};
    case Selector::b0:
      return VideoPart{0, 8};
    case Selector::b1:
      return VideoPart{8, 8};
    case Selector::b2:
      return VideoPart{16, 8};
    case Selector::b3:
      return VideoPart{24, 8};
    case Selector::h0:
      return VideoPart{0, 16};
    case Selector::h1:
      return VideoPart{16, 16};
    default:
      return std::nullopt;
  }
}

// The digits behind the letter of a selector, the last one (of part 0) first: ".h32" -> 2, 3.
std::vector<unsigned> selector_digits(const Operand& operand) {
  switch (operand.selector) {
    case Selector::b0:
    case Selector::h0:
      return {0};
    case Selector::b1:
    case Selector::h1:
      return {1};
    case Selector::b2:
      return {2};
    case Selector::b3:
      return {3};
    default:
      break;
  }
  std::vector<unsigned> digits;
  for (unsigned at = 1; at < 8; ++at) {
    const auto letter = static_cast<char>(operand.value >> (8 * at));
    if (letter == 0) break;
    digits.insert(digits.begin(), static_cast<unsigned>(letter - '0'));
  }
  return digits;
}

std::optional<Compare> compare_of(const ptx::Mnemonic& words) {
  static constexpr std::array<std::pair<std::string_view, Compare>, 6> names{{{"eq", Compare::eq},
                                                                              {"ne", Compare::ne},
                                                                              {"lt", Compare::lt},
                                                                              {"le", Compare::le},
                                                                              {"gt", Compare::gt},
                                                                              {"ge", Compare::ge}}};
  for (const ptx::ModifierUse& use : words.modifiers) {
    for (const auto& [name, compare] : names) {
      if (use.text == name) return compare;
    }
  }
  return std::nullopt;
}

}  // namespace

bool Lowering::lower_video(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const bool multiplies = instruction.opcode == Opcode::vmad;
  const VideoRow* row = video_row(instruction.opcode);
  if (row != nullptr && row->parts > 1) return lower_video_parts(instruction);
  if (row == nullptr && !multiplies) return false;
  const bool sets = instruction.opcode == Opcode::vset;
  if (words.types.size() != (sets ? 2U : 3U)) return false;
  const auto d_part = scalar_part(list[0]);
  const auto a_part = scalar_part(list[1]);
  const auto b_part = scalar_part(list[2]);
  if (!d_part || !a_part || !b_part) return false;
  const Register d = destination(list[0]);
  if (d.width != 4) return false;
  LaneDetails& made =
      list.size() > 3
          ? emit_lanes(multiplies ? lane::video_mad : lane::video, d,
                       {source(list[1], Type::b32), source(list[2], Type::b32),
                        source(list[3], Type::b32)})
          : emit_lanes(lane::video, d, {source(list[1], Type::b32), source(list[2], Type::b32)});
  made.type = lane_type(sets ? Type::u32 : words.type(0));
  made.from = lane_type(words.type(sets ? 0 : 1));
  made.other = lane_type(words.type(sets ? 1 : 2));
  made.saturate = has(instruction, "sat");
  if (multiplies) {
    VideoMadForm form{*a_part, *b_part};
    form.minus_product = list[1].minus != list[2].minus;
    form.minus_c = list[3].minus;
    form.plus_one = has(instruction, "po");
    form.scale = has(instruction, "shr7") ? 7 : (has(instruction, "shr15") ? 15 : 0);
    made.form = form;
    return true;
  }
  VideoForm form;
  form.operation = row->operation;
  form.wraps = has(instruction, "wrap");
  form.d = *d_part;
  form.a = *a_part;
  form.b = *b_part;
  if (sets) {
    const auto compare = compare_of(words);
    if (!compare) return false;
    form.compare = *compare;
  }
  if (list.size() > 3 && list[0].selector == Selector::none) {
    if (has(instruction, "add")) {
      form.then = VideoThen::add;
    } else if (has(instruction, "min")) {
      form.then = VideoThen::min;
    } else if (has(instruction, "max")) {
      form.then = VideoThen::max;
    } else {
      return false;
    }
  }
  made.form = form;
  return true;
}

bool Lowering::lower_video_parts(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const VideoRow& row = *video_row(instruction.opcode);
  const bool sets = row.operation == VideoOperation::set;
  if (words.types.size() != (sets ? 2U : 3U) || list.size() != 4) return false;
  const Register d = destination(list[0]);
  if (d.width != 4) return false;
  LaneDetails& made = emit_lanes(
      lane::video_parts, d,
      {source(list[1], Type::b32), source(list[2], Type::b32), source(list[3], Type::b32)});
  made.type = lane_type(sets ? Type::u32 : words.type(0));
  made.from = lane_type(words.type(sets ? 0 : 1));
  made.other = lane_type(words.type(sets ? 1 : 2));
  made.saturate = has(instruction, "sat");
  VideoPartsForm form;
  form.operation = row.operation;
  form.parts = row.parts;
  form.sums = has(instruction, "add");
  if (sets) {
    const auto compare = compare_of(words);
    if (!compare) return false;
    form.compare = *compare;
  }
  for (unsigned i = 0; i < row.parts; ++i) form.written[i] = list[0].selector == Selector::none;
  if (list[0].selector != Selector::none) {
    for (const unsigned digit : selector_digits(list[0])) {
      if (digit >= row.parts) return false;
      form.written[digit] = true;
    }
  }
  // By default a gives its own parts and so does b, which follow those of a.
  const auto choose = [&](const Operand& operand, unsigned first, std::array<unsigned, 4>& to) {
    std::vector<unsigned> digits;
    for (unsigned i = 0; i < row.parts; ++i) digits.push_back(first + i);
    if (operand.selector != Selector::none) digits = selector_digits(operand);
    if (digits.size() != row.parts) return false;
    for (unsigned i = 0; i < row.parts; ++i) {
      if (digits[i] >= 2 * row.parts) return false;
      to[i] = digits[i];
    }
    return true;
  };
  if (!choose(list[1], 0, form.a) || !choose(list[2], row.parts, form.b)) return false;
  made.form = form;
  return true;
}

}  // namespace demarc::emulate
