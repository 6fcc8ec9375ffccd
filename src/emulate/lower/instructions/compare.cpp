// Comparisons: setp and set.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

struct Comparison {
  Compare how;
  bool is_unsigned = false;  // lo, ls, hi and hs compare signed integers as unsigned ones, too
};

constexpr Comparison as_unsigned(Compare how) {
  return {.how = how, .is_unsigned = true};
}

constexpr Rows<std::string_view, Comparison, 18> comparison_words{{{"eq", {Compare::eq}},
                                                                   {"ne", {Compare::ne}},
                                                                   {"lt", {Compare::lt}},
                                                                   {"le", {Compare::le}},
                                                                   {"gt", {Compare::gt}},
                                                                   {"ge", {Compare::ge}},
                                                                   {"lo", as_unsigned(Compare::lt)},
                                                                   {"ls", as_unsigned(Compare::le)},
                                                                   {"hi", as_unsigned(Compare::gt)},
                                                                   {"hs", as_unsigned(Compare::ge)},
                                                                   {"equ", {Compare::equ}},
                                                                   {"neu", {Compare::neu}},
                                                                   {"ltu", {Compare::ltu}},
                                                                   {"leu", {Compare::leu}},
                                                                   {"gtu", {Compare::gtu}},
                                                                   {"geu", {Compare::geu}},
                                                                   {"num", {Compare::num}},
                                                                   {"nan", {Compare::nan}}}};

// There are vector loops for lt and le alone: gt and ge are these with their operands swapped.
enum class Order : std::uint8_t { as_written, swapped };

struct FloatComparison {
  Compare how;
  Order order;
  Alu f32;
  Alu f64;
};
constexpr std::array<FloatComparison, 14> float_comparisons{{
    // clang-format off
    {Compare::eq,  Order::as_written, Alu::eq_f32,  Alu::eq_f64},
    {Compare::ne,  Order::as_written, Alu::ne_f32,  Alu::ne_f64},
    {Compare::lt,  Order::as_written, Alu::lt_f32,  Alu::lt_f64},
    {Compare::le,  Order::as_written, Alu::le_f32,  Alu::le_f64},
    {Compare::gt,  Order::swapped,    Alu::lt_f32,  Alu::lt_f64},
    {Compare::ge,  Order::swapped,    Alu::le_f32,  Alu::le_f64},
    {Compare::equ, Order::as_written, Alu::equ_f32, Alu::equ_f64},
    {Compare::neu, Order::as_written, Alu::neu_f32, Alu::neu_f64},
    {Compare::ltu, Order::as_written, Alu::ltu_f32, Alu::ltu_f64},
    {Compare::leu, Order::as_written, Alu::leu_f32, Alu::leu_f64},
    {Compare::gtu, Order::swapped,    Alu::ltu_f32, Alu::ltu_f64},
    {Compare::geu, Order::swapped,    Alu::leu_f32, Alu::leu_f64},
    {Compare::num, Order::as_written, Alu::num_f32, Alu::num_f64},
    {Compare::nan, Order::as_written, Alu::nan_f32, Alu::nan_f64},
    // clang-format on
}};

struct IntegerComparison {
  Compare how;
  Order order;
  AluByWidth of_signed;
  AluByWidth of_unsigned;
};
constexpr std::array<IntegerComparison, 6> integer_comparisons{{
    // clang-format off
    {Compare::eq, Order::as_written, DEMARC_ALU_BY_WIDTH(eq_b), DEMARC_ALU_BY_WIDTH(eq_b)},
    {Compare::ne, Order::as_written, DEMARC_ALU_BY_WIDTH(ne_b), DEMARC_ALU_BY_WIDTH(ne_b)},
    {Compare::lt, Order::as_written, DEMARC_ALU_BY_WIDTH(lt_s), DEMARC_ALU_BY_WIDTH(lt_u)},
    {Compare::le, Order::as_written, DEMARC_ALU_BY_WIDTH(le_s), DEMARC_ALU_BY_WIDTH(le_u)},
    {Compare::gt, Order::swapped,    DEMARC_ALU_BY_WIDTH(lt_s), DEMARC_ALU_BY_WIDTH(lt_u)},
    {Compare::ge, Order::swapped,    DEMARC_ALU_BY_WIDTH(le_s), DEMARC_ALU_BY_WIDTH(le_u)},
    // clang-format on
}};

struct CompareLoop {
  Alu alu;
  Order order;
};

// Empty: no vector loop compares so.
std::optional<CompareLoop> compare_loop(const Comparison& comparison, Type type) {
  if (type == Type::f32 || type == Type::f64) {
    for (const FloatComparison& row : float_comparisons) {
      if (row.how == comparison.how)
        return CompareLoop{type == Type::f32 ? row.f32 : row.f64, row.order};
    }
    return std::nullopt;
  }
  const std::uint32_t bytes = ptx::byte_size(type);
  if (!is_integer(type) || bytes < 2 || bytes > 8) return std::nullopt;
  for (const IntegerComparison& row : integer_comparisons) {
    if (row.how != comparison.how) continue;
    const bool as_signed = is_signed(type) && !comparison.is_unsigned;
    return CompareLoop{(as_signed ? row.of_signed : row.of_unsigned).of(bytes), row.order};
  }
  return std::nullopt;
}

// For a comparison that is joined with a predicate, which is the last operand.
Logic logic_of(const InstructionView& instruction) {
  if (instruction.operands().size() <= 3) return Logic::none;
  return instruction.has("and")  ? Logic::conjunction
         : instruction.has("or") ? Logic::disjunction
                                 : Logic::exclusive;
}

// What is compared, and the predicate that the result is joined with.
std::vector<Source> compared(FunctionContext& f, const InstructionView& instruction, Type type) {
  std::vector<Source> out = f.operands.sources(instruction.operands().subspan(1, 2), type);
  if (logic_of(instruction) != Logic::none)
    out.push_back(f.operands.source(instruction[3], Type::pred));
  return out;
}

bool lower_set(FunctionContext& f, const InstructionView& instruction,
               const Comparison& comparison) {
  const Type from = instruction.type(1);
  const Register d = f.operands.destination(instruction[0], instruction.type(0));
  LaneDetails& made = f.code.lanes(lane::set, d, compared(f, instruction, from));
  made.type = lane_type(instruction.type(0));
  made.from = lane_type(from);
  made.form = CompareForm{comparison.how, logic_of(instruction)};
  made.ftz = instruction.has("ftz");
  return true;
}

// One result and nothing else: a vector loop where there is one.
bool lower_plain_setp(FunctionContext& f, const InstructionView& instruction,
                      const Comparison& comparison) {
  if (instruction[0].kind != OperandKind::reg || logic_of(instruction) != Logic::none ||
      instruction.has("ftz")) {
    return false;
  }
  const Type type = instruction.type();
  const auto loop = compare_loop(comparison, type);
  if (!loop) return false;
  const Register d = f.operands.destination(instruction[0], Type::pred);
  std::vector<Source> sources = compared(f, instruction, type);
  if (loop->order == Order::swapped) std::swap(sources[0], sources[1]);
  f.code.alu(loop->alu, d, sources);
  return true;
}

bool lower_setp(FunctionContext& f, const InstructionView& instruction,
                const Comparison& comparison) {
  if (lower_plain_setp(f, instruction, comparison)) return true;
  const Type type = instruction.type();
  if (comparison.is_unsigned && is_signed(type)) return false;
  const auto results = instruction.results();
  const Register d = results[0].kind == OperandKind::sink
                         ? f.frame.predicate()
                         : f.operands.destination(results[0], Type::pred);
  LaneDetails& made = f.code.lanes(lane::setp, d, compared(f, instruction, type));
  made.type = lane_type(type);
  made.form = CompareForm{comparison.how, logic_of(instruction)};
  made.ftz = instruction.has("ftz");
  if (results.size() > 1 && results[1].kind != OperandKind::sink) {
    const Register q = f.operands.destination(results[1], Type::pred);
    made.has_second = true;
    made.second_slot = q.slot.offset;
    made.second_width = q.width;
  }
  return made.type != LaneType::none;
}

}  // namespace

bool lower_compare(FunctionContext& f, const InstructionView& instruction) {
  const auto comparison = instruction.chosen(comparison_words);
  if (!comparison) return false;
  switch (instruction.opcode()) {
    case Opcode::set:
      return lower_set(f, instruction, *comparison);
    case Opcode::setp:
      return lower_setp(f, instruction, *comparison);
    default:
      return false;
  }
}

}  // namespace demarc::emulate
