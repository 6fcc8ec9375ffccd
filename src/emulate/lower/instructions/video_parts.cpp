// Video instructions on two or four parts of a word at once: vadd2, vadd4 and their kin.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "lower/video_words.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Operand;
using ptx::Selector;

namespace {

struct PartsRow {
  Opcode opcode;
  VideoOperation operation;
  unsigned parts;
};
constexpr std::array<PartsRow, 14> parts_rows{{{Opcode::vadd2, VideoOperation::add, 2},
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

const PartsRow* parts_row(Opcode opcode) {
  for (const PartsRow& row : parts_rows) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
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
  for (unsigned at = 1; at < sizeof(operand.value); ++at) {
    const auto letter = static_cast<char>(operand.value >> (8 * at));
    if (letter == 0) break;
    digits.insert(digits.begin(), static_cast<unsigned>(letter - '0'));
  }
  return digits;
}

// Which parts of the pair {b, a} an operand gives; its own, which begin with `first`, unless it
// says otherwise. Empty: not as many as there are parts, or one that is not there.
std::optional<std::array<unsigned, 4>> chosen_parts(const Operand& operand, const PartsRow& row,
                                                    unsigned first) {
  std::array<unsigned, 4> out{};
  if (operand.selector == Selector::none) {
    for (unsigned i = 0; i < row.parts; ++i) out[i] = first + i;
    return out;
  }
  const std::vector<unsigned> digits = selector_digits(operand);
  if (digits.size() != row.parts) return std::nullopt;
  for (unsigned i = 0; i < row.parts; ++i) {
    if (digits[i] >= 2 * row.parts) return std::nullopt;
    out[i] = digits[i];
  }
  return out;
}

std::optional<std::array<bool, 4>> written_parts(const Operand& operand, const PartsRow& row) {
  std::array<bool, 4> out{};
  if (operand.selector == Selector::none) {
    for (unsigned i = 0; i < row.parts; ++i) out[i] = true;
    return out;
  }
  for (const unsigned digit : selector_digits(operand)) {
    if (digit >= row.parts) return std::nullopt;
    out[digit] = true;
  }
  return out;
}

std::optional<VideoPartsForm> parts_form(const InstructionView& instruction, const PartsRow& row) {
  VideoPartsForm form;
  form.operation = row.operation;
  form.parts = row.parts;
  form.sums = instruction.has("add");
  if (row.operation == VideoOperation::set) {
    const auto compare = video_compare(instruction);
    if (!compare) return std::nullopt;
    form.compare = *compare;
  }
  const auto written = written_parts(instruction[0], row);
  const auto a = chosen_parts(instruction[1], row, 0);
  const auto b = chosen_parts(instruction[2], row, row.parts);
  if (!written || !a || !b) return std::nullopt;
  form.written = *written;
  form.a = *a;
  form.b = *b;
  return form;
}

}  // namespace

bool lower_video_parts(FunctionContext& f, const InstructionView& instruction) {
  const PartsRow* row = parts_row(instruction.opcode());
  if (row == nullptr || instruction.operands().size() != 4) return false;
  const auto types = video_types(instruction);
  const auto form = parts_form(instruction, *row);
  if (!types || !form) return false;
  const Register d = f.operands.destination(instruction[0], ptx::Type::b32);
  LaneDetails& made = f.code.lanes(
      lane::video_parts, d, f.operands.sources(instruction.operands().subspan(1), ptx::Type::b32));
  set_video_types(made, *types);
  made.saturate = instruction.has("sat");
  made.form = *form;
  return true;
}

}  // namespace demarc::emulate
