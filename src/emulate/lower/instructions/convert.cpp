// Conversions: cvt and cvt.pack.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

// Conversions between integers that have a vector loop: bytes of the types, and how the source is
// read. Narrowing is the same for both.
struct IntegerConversion {
  std::uint32_t to;
  std::uint32_t from;
  Alu of_signed;
  Alu of_unsigned;
};
constexpr std::array<IntegerConversion, 12> integer_conversions{{
    // clang-format off
    {2, 1, Alu::cvt_s16_s8,  Alu::cvt_u16_u8},
    {4, 1, Alu::cvt_s32_s8,  Alu::cvt_u32_u8},
    {8, 1, Alu::cvt_s64_s8,  Alu::cvt_u64_u8},
    {4, 2, Alu::cvt_s32_s16, Alu::cvt_u32_u16},
    {8, 2, Alu::cvt_s64_s16, Alu::cvt_u64_u16},
    {8, 4, Alu::cvt_s64_s32, Alu::cvt_u64_u32},
    {4, 8, Alu::cvt_u32_u64, Alu::cvt_u32_u64},
    {2, 8, Alu::cvt_u16_u64, Alu::cvt_u16_u64},
    {2, 4, Alu::cvt_u16_u32, Alu::cvt_u16_u32},
    {1, 2, Alu::cvt_u8_u16,  Alu::cvt_u8_u16},
    {1, 4, Alu::cvt_u8_u32,  Alu::cvt_u8_u32},
    {1, 8, Alu::cvt_u8_u64,  Alu::cvt_u8_u64},
    // clang-format on
}};

// The others: with one of two roundings, none being one of them.
struct FloatConversion {
  Type to;
  Type from;
  std::array<Rounding, 2> roundings;
  Alu alu;
};
constexpr std::array<Rounding, 2> nearest{Rounding::rn, Rounding::none};
constexpr std::array<FloatConversion, 7> float_conversions{{
    // clang-format off
    {Type::f32, Type::s32, nearest, Alu::cvt_f32_s32},
    {Type::f32, Type::u32, nearest, Alu::cvt_f32_u32},
    {Type::f64, Type::s32, nearest, Alu::cvt_f64_s32},
    {Type::f64, Type::u32, nearest, Alu::cvt_f64_u32},
    {Type::f32, Type::f64, nearest, Alu::cvt_f32_f64},
    {Type::f64, Type::f32, {Rounding::none, Rounding::none}, Alu::cvt_f64_f32},
    {Type::s32, Type::f32, {Rounding::rzi, Rounding::rzi},   Alu::cvt_s32_f32_rzi},
    // clang-format on
}};

std::optional<Alu> integer_loop(Type to, Type from) {
  const std::uint32_t to_bytes = ptx::byte_size(to);
  const std::uint32_t from_bytes = ptx::byte_size(from);
  if (to_bytes == from_bytes) return move_of_width(to_bytes);
  for (const IntegerConversion& row : integer_conversions) {
    if (row.to == to_bytes && row.from == from_bytes)
      return is_signed(from) ? row.of_signed : row.of_unsigned;
  }
  return std::nullopt;
}

bool is_scalar_float(Type type) {
  return ptx::info(type).kind == ptx::TypeKind::floating;
}

std::optional<Alu> conversion_loop(Type to, Type from, Rounding rounding) {
  if (!is_scalar_float(to) && !is_scalar_float(from)) return integer_loop(to, from);
  for (const FloatConversion& row : float_conversions) {
    if (row.to != to || row.from != from) continue;
    if (row.roundings[0] == rounding || row.roundings[1] == rounding) return row.alu;
  }
  return std::nullopt;
}

Rounding conversion_rounding(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, Rounding, 9> names{{{"rn", Rounding::rn},
                                                              {"rna", Rounding::rna},
                                                              {"rz", Rounding::rz},
                                                              {"rm", Rounding::rm},
                                                              {"rp", Rounding::rp},
                                                              {"rni", Rounding::rni},
                                                              {"rzi", Rounding::rzi},
                                                              {"rmi", Rounding::rmi},
                                                              {"rpi", Rounding::rpi}}};
  return instruction.chosen(names).value_or(Rounding::none);
}

bool is_narrow_pair(Type type) {
  return type == Type::e4m3x2 || type == Type::e5m2x2;
}

bool lower_pack(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  const Register d = f.operands.destination(instruction[0], Type::b32);
  std::vector<Source> sources = f.operands.sources(instruction.operands().subspan(1, 2), Type::s32);
  if (instruction.operands().size() > 3)
    sources.push_back(f.operands.source(instruction[3], Type::b32));
  LaneDetails& made = f.code.lanes(lane::cvt_pack, d, sources);
  made.type = lane_type(type);
  return lane_bytes(made.type) != 0 && ptx::byte_size(type) <= 2 && ptx::info(type).bits >= 8;
}

// Two narrow numbers to f16x2.
bool lower_unpack(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.type(0) != Type::f16x2) return false;
  const Register d = f.operands.destination(instruction[0], Type::f16x2);
  LaneDetails& made =
      f.code.lanes(lane::cvt_unpack, d, {f.operands.source(instruction[1], Type::b16)});
  made.from = lane_type(instruction.type(1));
  made.relu = instruction.has("relu");
  return true;
}

// f16x2 to two narrow numbers.
bool lower_halves(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], instruction.type(0));
  LaneDetails& made =
      f.code.lanes(lane::cvt_halves, d, {f.operands.source(instruction[1], Type::b32)});
  made.type = lane_type(instruction.type(0));
  made.rounding = conversion_rounding(instruction);
  made.relu = instruction.has("relu");
  return true;
}

// Two f32 to the halves of a word.
bool lower_pair(FunctionContext& f, const InstructionView& instruction) {
  const Type from = instruction.type(1);
  if (instruction.operands().size() != 3 || from != Type::f32) return false;
  const Register d = f.operands.destination(instruction[0], instruction.type(0));
  LaneDetails& made =
      f.code.lanes(lane::cvt_two, d, f.operands.sources(instruction.operands().subspan(1), from));
  made.type = lane_type(instruction.type(0));
  made.from = lane_type(from);
  made.rounding = conversion_rounding(instruction);
  made.saturate = instruction.has_any({"sat", "satfinite"});
  made.relu = instruction.has("relu");
  return true;
}

bool lower_one(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.operands().size() != 2) return false;
  const Type to = instruction.type(0);
  const Type from = instruction.type(1);
  const Rounding rounding = conversion_rounding(instruction);
  const Register d = f.operands.any_destination(instruction[0]);
  const Source a = f.operands.any_source(instruction[1], from);
  const bool natural =
      d.width == ptx::byte_size(to) && (a.width == ptx::byte_size(from) || a.uniform);
  if (natural && !instruction.has_any({"sat", "satfinite", "ftz", "relu"})) {
    if (const auto alu = conversion_loop(to, from, rounding)) {
      f.code.alu(*alu, d, {a});
      return true;
    }
  }
  LaneDetails& made = f.code.lanes(lane::cvt, d, {a});
  made.type = lane_type(to);
  made.from = lane_type(from);
  made.rounding = rounding;
  made.saturate = instruction.has_any({"sat", "satfinite"}) &&
                  !(to == Type::f16 && instruction.has("satfinite"));
  made.ftz = instruction.has("ftz");
  made.relu = instruction.has("relu");
  return true;
}

}  // namespace

bool lower_convert(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() == Opcode::cvt_pack) return lower_pack(f, instruction);
  const Type to = instruction.type(0);
  const Type from = instruction.type(1);
  if (lane_type(to) == LaneType::none || lane_type(from) == LaneType::none) return false;
  if (is_narrow_pair(from)) return lower_unpack(f, instruction);
  if (is_narrow_pair(to) && from == Type::f16x2) return lower_halves(f, instruction);
  if (is_narrow_pair(to) || to == Type::f16x2 || to == Type::bf16x2)
    return lower_pair(f, instruction);
  return lower_one(f, instruction);
}

}  // namespace demarc::emulate
