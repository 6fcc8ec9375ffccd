// Integer arithmetic.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;

namespace {

// What has a vector loop for every width.
struct IntegerRow {
  Opcode opcode;
  ProductPart part;
  std::size_t sources;
  AluByWidth of_signed;
  AluByWidth of_unsigned;
};

#define DEMARC_SAME(name) DEMARC_ALU_BY_WIDTH(name), DEMARC_ALU_BY_WIDTH(name)
#define DEMARC_BOTH(name) DEMARC_ALU_BY_WIDTH(name##_s), DEMARC_ALU_BY_WIDTH(name##_u)
constexpr std::array<IntegerRow, 12> integer_rows{{
    // clang-format off
    {Opcode::add, ProductPart::low,  2, DEMARC_SAME(add_b)},
    {Opcode::sub, ProductPart::low,  2, DEMARC_SAME(sub_b)},
    {Opcode::mul, ProductPart::low,  2, DEMARC_SAME(mul_b)},
    {Opcode::mul, ProductPart::high, 2, DEMARC_BOTH(mulhi)},
    {Opcode::mad, ProductPart::low,  3, DEMARC_SAME(mad_b)},
    {Opcode::mad, ProductPart::high, 3, DEMARC_BOTH(madhi)},
    {Opcode::div, ProductPart::low,  2, DEMARC_BOTH(div)},
    {Opcode::rem, ProductPart::low,  2, DEMARC_BOTH(rem)},
    {Opcode::min, ProductPart::low,  2, DEMARC_BOTH(min)},
    {Opcode::max, ProductPart::low,  2, DEMARC_BOTH(max)},
    {Opcode::abs, ProductPart::low,  1, DEMARC_SAME(abs_s)},
    {Opcode::neg, ProductPart::low,  1, DEMARC_SAME(neg_s)},
    // clang-format on
}};
#undef DEMARC_SAME
#undef DEMARC_BOTH

// The result has twice the width of the operands, which have 16 or 32 bits.
struct WideRow {
  Opcode opcode;
  Alu s16, u16, s32, u32;
};
constexpr std::array<WideRow, 2> wide_rows{
    {{Opcode::mul, Alu::mulwide_s16, Alu::mulwide_u16, Alu::mulwide_s32, Alu::mulwide_u32},
     {Opcode::mad, Alu::madwide_s16, Alu::madwide_u16, Alu::madwide_s32, Alu::madwide_u32}}};

ProductPart product_part(const InstructionView& instruction) {
  if (instruction.has("wide")) return ProductPart::wide;
  return instruction.has("hi") ? ProductPart::high : ProductPart::low;
}

bool lower_wide(FunctionContext& f, const InstructionView& instruction) {
  const ptx::Type type = instruction.type();
  const std::uint32_t bytes = ptx::byte_size(type);
  for (const WideRow& row : wide_rows) {
    if (row.opcode != instruction.opcode() || bytes > 4) continue;
    const Alu alu =
        is_signed(type) ? (bytes == 2 ? row.s16 : row.s32) : (bytes == 2 ? row.u16 : row.u32);
    const ptx::Type wide = bytes == 2 ? ptx::Type::b32 : ptx::Type::b64;
    const Register d = f.operands.destination(instruction[0], wide);
    std::vector<Source> sources = f.operands.sources(instruction.operands().subspan(1, 2), type);
    if (row.opcode == Opcode::mad) sources.push_back(f.operands.source(instruction[3], wide));
    f.code.alu(alu, d, sources);
    return true;
  }
  return false;
}

bool takes_carry(Opcode opcode) {
  return opcode == Opcode::addc || opcode == Opcode::subc || opcode == Opcode::madc;
}

// Null: none that takes or sets the condition code, or saturates.
LaneFunction carry_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::add:
    case Opcode::addc:
      return lane::add_integer;
    case Opcode::sub:
    case Opcode::subc:
      return lane::sub_integer;
    case Opcode::mad:
    case Opcode::madc:
      return lane::mad_integer;
    default:
      return nullptr;
  }
}

bool lower_carry(FunctionContext& f, const InstructionView& instruction) {
  const LaneFunction function = carry_function(instruction.opcode());
  if (function == nullptr) return false;
  const ptx::Type type = instruction.type();
  const Register d = f.operands.destination(instruction[0], type);
  LaneDetails& made =
      f.code.lanes(function, d, f.operands.sources(instruction.operands().subspan(1), type));
  const bool sets = instruction.has("cc");
  made.type = lane_type(type);
  made.form = CarryForm{
      .sets = sets, .takes = takes_carry(instruction.opcode()), .part = product_part(instruction)};
  made.uses_carry = sets;
  made.saturate = instruction.has("sat");
  return true;
}

bool lower_relu(FunctionContext& f, const InstructionView& instruction) {
  const bool most = instruction.opcode() == Opcode::max;
  if (!most && instruction.opcode() != Opcode::min) return false;
  const ptx::Type type = instruction.type();
  const Register d = f.operands.destination(instruction[0], type);
  LaneDetails& made = f.code.lanes(most ? lane::max : lane::min, d,
                                   f.operands.sources(instruction.operands().subspan(1), type));
  made.type = lane_type(type);
  made.relu = true;
  return true;
}

}  // namespace

bool lower_integer(FunctionContext& f, const InstructionView& instruction) {
  const ptx::Type type = instruction.type();
  const std::uint32_t bytes = ptx::byte_size(type);
  if (!is_integer(type) || bytes < 2) return false;
  if (takes_carry(instruction.opcode()) || instruction.has_any({"cc", "sat"}))
    return lower_carry(f, instruction);
  if (instruction.has("relu")) return lower_relu(f, instruction);
  const ProductPart part = product_part(instruction);
  if (part == ProductPart::wide) return lower_wide(f, instruction);
  for (const IntegerRow& row : integer_rows) {
    if (row.opcode != instruction.opcode() || row.part != part) continue;
    const AluByWidth& alu = is_signed(type) ? row.of_signed : row.of_unsigned;
    const Register d = f.operands.destination(instruction[0], type);
    f.code.alu(alu.of(bytes), d,
               f.operands.sources(instruction.operands().subspan(1, row.sources), type));
    return true;
  }
  return false;
}

}  // namespace demarc::emulate
