// Floating-point arithmetic.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

// Vector loops of what rounds to nearest, without a modifier that changes the result.
struct FloatLoops {
  Alu f32;
  Alu f64;
  std::optional<Alu> ftz;  // of f32
};

// The lane function does all types and modifiers.
struct FloatRow {
  Opcode opcode;
  std::size_t sources;
  LaneFunction lane;
  std::optional<FloatLoops> loops;
};

constexpr std::array<FloatRow, 20> float_rows{{
    // clang-format off
    {Opcode::add,      2, lane::add,      FloatLoops{Alu::add_f32, Alu::add_f64, Alu::add_ftz_f32}},
    {Opcode::sub,      2, lane::sub,      FloatLoops{Alu::sub_f32, Alu::sub_f64, Alu::sub_ftz_f32}},
    {Opcode::mul,      2, lane::mul,      FloatLoops{Alu::mul_f32, Alu::mul_f64, Alu::mul_ftz_f32}},
    {Opcode::div,      2, lane::div,      FloatLoops{Alu::div_f32, Alu::div_f64, Alu::div_ftz_f32}},
    {Opcode::fma,      3, lane::fma,      FloatLoops{Alu::fma_f32, Alu::fma_f64, Alu::fma_ftz_f32}},
    {Opcode::mad,      3, lane::fma,      FloatLoops{Alu::fma_f32, Alu::fma_f64, Alu::fma_ftz_f32}},
    {Opcode::sqrt,     1, lane::sqrt,     FloatLoops{Alu::sqrt_f32, Alu::sqrt_f64, {}}},
    {Opcode::rcp,      1, lane::rcp,      FloatLoops{Alu::rcp_f32, Alu::rcp_f64, {}}},
    {Opcode::rsqrt,    1, lane::rsqrt,    FloatLoops{Alu::rsqrt_f32, Alu::rsqrt_f64, {}}},
    {Opcode::neg,      1, lane::neg,      FloatLoops{Alu::neg_f32, Alu::neg_f64, {}}},
    {Opcode::abs,      1, lane::abs,      FloatLoops{Alu::abs_f32, Alu::abs_f64, {}}},
    {Opcode::min,      2, lane::min,      FloatLoops{Alu::min_f32, Alu::min_f64, {}}},
    {Opcode::max,      2, lane::max,      FloatLoops{Alu::max_f32, Alu::max_f64, {}}},
    {Opcode::sin,      1, lane::sin,      {}},
    {Opcode::cos,      1, lane::cos,      {}},
    {Opcode::lg2,      1, lane::lg2,      {}},
    {Opcode::ex2,      1, lane::ex2,      {}},
    {Opcode::tanh,     1, lane::tanh,     {}},
    {Opcode::copysign, 2, lane::copysign, {}},
    {Opcode::testp,    1, lane::testp,    {}},
    // clang-format on
}};

const FloatRow* float_row(Opcode opcode) {
  for (const FloatRow& row : float_rows) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

// f32x2 has no other arithmetic.
bool has_f32x2(Opcode opcode) {
  return opcode == Opcode::add || opcode == Opcode::sub || opcode == Opcode::mul ||
         opcode == Opcode::fma;
}

Rounding rounding_of(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, Rounding, 3> names{
      {{"rz", Rounding::rz}, {"rm", Rounding::rm}, {"rp", Rounding::rp}}};
  return instruction.chosen(names).value_or(Rounding::rn);
}

// For a division of f32 that is not exact; empty: it is.
std::optional<Alu> approximate_division(const InstructionView& instruction) {
  if (instruction.opcode() != Opcode::div) return std::nullopt;
  const bool ftz = instruction.has("ftz");
  if (instruction.has("full")) return ftz ? Alu::div_full_ftz_f32 : Alu::div_full_f32;
  if (instruction.has("approx")) return ftz ? Alu::div_approx_ftz_f32 : Alu::div_approx_f32;
  return std::nullopt;
}

// Empty: a modifier or a type that no vector loop has.
std::optional<Alu> vector_loop(const FloatRow& row, const InstructionView& instruction) {
  const Type type = instruction.type();
  if (!row.loops || instruction.operands().size() != row.sources + 1) return std::nullopt;
  if (rounding_of(instruction) != Rounding::rn) return std::nullopt;
  if (instruction.has_any({"sat", "relu", "oob", "NaN", "xorsign"})) return std::nullopt;
  if (const auto division = approximate_division(instruction)) return division;
  if (instruction.has("ftz")) return type == Type::f32 ? row.loops->ftz : std::nullopt;
  if (type == Type::f32) return row.loops->f32;
  return type == Type::f64 ? std::optional(row.loops->f64) : std::nullopt;
}

// min and max take a third operand.
std::size_t max_sources(const FloatRow& row) {
  return row.opcode == Opcode::min || row.opcode == Opcode::max ? 3 : row.sources;
}

FloatProperty tested_property(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, FloatProperty, 5> names{
      {{"finite", FloatProperty::finite},
       {"infinite", FloatProperty::infinite},
       {"number", FloatProperty::number},
       {"notanumber", FloatProperty::not_a_number},
       {"normal", FloatProperty::normal}}};
  return instruction.chosen(names).value_or(FloatProperty::subnormal);
}

bool lower_float_lanes(FunctionContext& f, const InstructionView& instruction,
                       const FloatRow& row) {
  const Type type = instruction.type();
  const auto sources = instruction.operands().subspan(1);
  if (sources.size() < row.sources || sources.size() > max_sources(row)) return false;
  const Register d =
      f.operands.destination(instruction[0], row.opcode == Opcode::testp ? Type::pred : type);
  LaneDetails& made = f.code.lanes(row.lane, d, f.operands.sources(sources, type));
  const bool approximate = instruction.has_any({"approx", "full"});
  made.type = lane_type(type);
  made.rounding = approximate ? Rounding::rn : rounding_of(instruction);
  made.ftz = instruction.has("ftz");
  made.saturate = instruction.has("sat");
  made.relu = instruction.has("relu");
  made.nan = instruction.has("NaN");
  made.abs = instruction.has("xorsign");
  if (row.opcode == Opcode::testp) made.form = tested_property(instruction);
  return !instruction.has("oob");
}

}  // namespace

bool lower_float(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  const FloatRow* row = float_row(instruction.opcode());
  if (row == nullptr || !is_floating(type) || lane_type(type) == LaneType::none) return false;
  if (type == Type::u16x2 || type == Type::s16x2) return false;
  if (type == Type::f32x2 && !has_f32x2(instruction.opcode())) return false;
  const auto alu = vector_loop(*row, instruction);
  if (!alu) return lower_float_lanes(f, instruction, *row);
  const Register d = f.operands.destination(instruction[0], type);
  f.code.alu(*alu, d, f.operands.sources(instruction.operands().subspan(1), type));
  return true;
}

bool lower_packed_integer(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<Opcode, LaneFunction, 3> functions{
      {{Opcode::add, lane::add_integer}, {Opcode::min, lane::min}, {Opcode::max, lane::max}}};
  const Type type = instruction.type();
  const auto function = look_up(functions, instruction.opcode());
  if (!function || (type != Type::u16x2 && type != Type::s16x2)) return false;
  const Register d = f.operands.destination(instruction[0], type);
  LaneDetails& made =
      f.code.lanes(*function, d, f.operands.sources(instruction.operands().subspan(1, 2), type));
  made.type = lane_type(type);
  made.relu = instruction.has("relu");
  return true;
}

}  // namespace demarc::emulate
