// Video instructions on one part of a word: vadd, vmad and their kin.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "lower/video_words.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Operand;
using ptx::Selector;
using ptx::Type;

namespace {

constexpr Rows<Opcode, VideoOperation, 8> scalar_operations{
    {{Opcode::vadd, VideoOperation::add},
     {Opcode::vsub, VideoOperation::sub},
     {Opcode::vabsdiff, VideoOperation::absdiff},
     {Opcode::vmin, VideoOperation::min},
     {Opcode::vmax, VideoOperation::max},
     {Opcode::vshl, VideoOperation::shift_left},
     {Opcode::vshr, VideoOperation::shift_right},
     {Opcode::vset, VideoOperation::set}}};

std::optional<VideoPart> scalar_part(const Operand& operand) {
  static constexpr Rows<Selector, VideoPart, 7> parts{{{Selector::none, {}},
                                                       {Selector::b0, {0, 8}},
                                                       {Selector::b1, {8, 8}},
                                                       {Selector::b2, {16, 8}},
                                                       {Selector::b3, {24, 8}},
                                                       {Selector::h0, {0, 16}},
                                                       {Selector::h1, {16, 16}}}};
  return look_up(parts, Selector{operand.selector});
}

struct ScalarParts {
  VideoPart d, a, b;
};

std::optional<ScalarParts> scalar_parts(const InstructionView& instruction) {
  const auto d = scalar_part(instruction[0]);
  const auto a = scalar_part(instruction[1]);
  const auto b = scalar_part(instruction[2]);
  if (!d || !a || !b) return std::nullopt;
  return ScalarParts{.d = *d, .a = *a, .b = *b};
}

VideoMadForm mad_form(const InstructionView& instruction, const ScalarParts& parts) {
  static constexpr Rows<std::string_view, unsigned, 2> scales{{{"shr7", 7}, {"shr15", 15}}};
  VideoMadForm form;
  form.a = parts.a;
  form.b = parts.b;
  form.minus_product = instruction[1].minus != instruction[2].minus;
  form.minus_c = instruction[3].minus;
  form.plus_one = instruction.has("po");
  form.scale = instruction.chosen(scales).value_or(0);
  return form;
}

// What follows the operation, with c. Empty: not covered.
std::optional<VideoThen> then_of(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, VideoThen, 3> words{
      {{"add", VideoThen::add}, {"min", VideoThen::min}, {"max", VideoThen::max}}};
  const bool merges = instruction[0].selector != Selector::none;
  if (instruction.operands().size() <= 3 || merges) return VideoThen::nothing;
  return instruction.chosen(words);
}

std::optional<VideoForm> scalar_form(const InstructionView& instruction, const ScalarParts& parts,
                                     VideoOperation operation) {
  VideoForm form;
  form.operation = operation;
  form.wraps = instruction.has("wrap");
  form.d = parts.d;
  form.a = parts.a;
  form.b = parts.b;
  if (operation == VideoOperation::set) {
    const auto compare = video_compare(instruction);
    if (!compare) return std::nullopt;
    form.compare = *compare;
  }
  const auto then = then_of(instruction);
  if (!then) return std::nullopt;
  form.then = *then;
  return form;
}

}  // namespace

bool lower_video(FunctionContext& f, const InstructionView& instruction) {
  const bool multiplies = instruction.opcode() == Opcode::vmad;
  const auto operation = look_up(scalar_operations, instruction.opcode());
  if (!operation && !multiplies) return false;
  const auto types = video_types(instruction);
  const auto parts = scalar_parts(instruction);
  if (!types || !parts) return false;
  const Register d = f.operands.destination(instruction[0], Type::b32);
  LaneDetails& made =
      f.code.lanes(multiplies ? lane::video_mad : lane::video, d,
                   f.operands.sources(instruction.operands().subspan(1), Type::b32));
  set_video_types(made, *types);
  made.saturate = instruction.has("sat");
  if (multiplies) {
    made.form = mad_form(instruction, *parts);
    return true;
  }
  const auto form = scalar_form(instruction, *parts, *operation);
  if (!form) return false;
  made.form = *form;
  return true;
}

}  // namespace demarc::emulate
