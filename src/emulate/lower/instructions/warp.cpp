// Instructions between the lanes of a warp: shuffles, votes, matches, reductions.
#include "ops/warp.hpp"

#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

// Reads operand `index` as the next source of the exchange.
class ExchangeSources {
 public:
  ExchangeSources(FunctionContext& f, const InstructionView& instruction, WarpDetails& made)
      : f_(f), instruction_(instruction), made_(made) {}

  Source read(Type type) {
    const Source source = f_.operands.source(instruction_[count_ + 1], type);
    made_.slot[count_] = source.slot.offset;
    made_.uniform[count_] = source.uniform;
    ++count_;
    return source;
  }
  // The lanes that wait for each other.
  void read_members() {
    made_.one_mask = read(Type::b32).uniform;
    made_.members = static_cast<std::int8_t>(count_ - 1);
  }
  // The first one, which is what is exchanged.
  void read_data(Type type) {
    const Source source = read(type);
    made_.negated = source.negated;
    if (!source.uniform && source.width != 0) made_.width = source.width;
  }

 private:
  FunctionContext& f_;
  const InstructionView& instruction_;
  WarpDetails& made_;
  std::size_t count_ = 0;
};

WarpOperation shuffle(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, WarpOperation, 3> words{
      {{"up", WarpOperation::shuffle_up},
       {"down", WarpOperation::shuffle_down},
       {"bfly", WarpOperation::shuffle_butterfly}}};
  return instruction.chosen(words).value_or(WarpOperation::shuffle_index);
}

WarpOperation vote(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, WarpOperation, 3> words{
      {{"ballot", WarpOperation::vote_ballot},
       {"all", WarpOperation::vote_all},
       {"any", WarpOperation::vote_any}}};
  return instruction.chosen(words).value_or(WarpOperation::vote_uniform);
}

std::optional<WarpOperation> reduction(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, WarpOperation, 6> words{
      {{"add", WarpOperation::reduce_add},
       {"min", WarpOperation::reduce_min},
       {"max", WarpOperation::reduce_max},
       {"and", WarpOperation::reduce_and},
       {"or", WarpOperation::reduce_or},
       {"xor", WarpOperation::reduce_xor}}};
  return instruction.chosen(words);
}

// A predicate for votes other than a ballot, else a word.
Type first_result(const InstructionView& instruction) {
  const bool is_vote = instruction.opcode() == Opcode::vote;
  return is_vote && !instruction.has("ballot") ? Type::pred : Type::b32;
}

// What is exchanged, and how.
bool read_exchange(FunctionContext& f, const InstructionView& instruction, WarpDetails& made) {
  const Type type = instruction.type();
  ExchangeSources sources(f, instruction, made);
  switch (instruction.opcode()) {
    case Opcode::shfl:
      made.operation = shuffle(instruction);
      sources.read_data(Type::b32);
      sources.read(Type::b32);  // lane or distance
      sources.read(Type::b32);  // segment
      if (instruction.has("sync")) sources.read_members();
      return true;
    case Opcode::vote:
      made.operation = vote(instruction);
      sources.read_data(Type::pred);
      if (instruction.has("sync")) sources.read_members();
      return true;
    case Opcode::match:
      made.operation = instruction.has("all") ? WarpOperation::match_all : WarpOperation::match_any;
      made.width = static_cast<std::uint8_t>(ptx::byte_size(type));
      sources.read_data(type);
      sources.read_members();
      return true;
    case Opcode::activemask:
      made.operation = WarpOperation::active_mask;
      return true;
    case Opcode::elect:
      made.operation = WarpOperation::elect;
      sources.read_members();
      return true;
    case Opcode::redux: {
      const auto operation = reduction(instruction);
      if (!operation || type == Type::f32) return false;
      made.operation = *operation;
      made.is_signed = is_signed(type);
      sources.read_data(type);
      sources.read_members();
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

bool lower_warp(FunctionContext& f, const InstructionView& instruction) {
  const auto results = instruction.results();
  auto& made = f.code.details<WarpDetails>();
  Register d;
  made.has_result = results[0].kind != OperandKind::sink;
  if (made.has_result) {
    d = f.operands.destination(results[0], first_result(instruction));
    if (d.uniform) return false;
  }
  if (results.size() > 1 && results[1].kind != OperandKind::sink) {
    made.has_predicate = true;
    const Register p = f.operands.destination(results[1], Type::pred);
    made.predicate = p.slot.offset;
  }
  if (!read_exchange(f, instruction, made)) return false;
  MicroOp& op = f.code.emit(warp_ops::exchange);
  op.d = d.slot.offset;
  op.aux = &made;
  return true;
}

}  // namespace demarc::emulate
