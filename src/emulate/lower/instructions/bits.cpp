// Instructions that count, find, cut and mask bits, and dot products of bytes.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

// Types of the sources. none: that of the instruction.
struct BitsRow {
  Opcode opcode;
  LaneFunction lane;
  std::size_t sources;
  std::array<Type, 4> types;
};

constexpr std::array<BitsRow, 14> bits_rows{{
    // clang-format off
    {Opcode::popc,  lane::popc,  1, {Type::none}},
    {Opcode::clz,   lane::clz,   1, {Type::none}},
    {Opcode::brev,  lane::brev,  1, {Type::none}},
    {Opcode::bfind, lane::bfind, 1, {Type::none}},
    {Opcode::fns,   lane::fns,   3, {Type::b32, Type::b32, Type::s32}},
    {Opcode::bfe,   lane::bfe,   3, {Type::none, Type::u32, Type::u32}},
    {Opcode::bfi,   lane::bfi,   4, {Type::none, Type::none, Type::u32, Type::u32}},
    {Opcode::szext, lane::szext, 2, {Type::none, Type::u32}},
    {Opcode::bmsk,  lane::bmsk,  2, {Type::u32, Type::u32}},
    {Opcode::sad,   lane::sad,   3, {Type::none, Type::none, Type::none}},
    {Opcode::mul24, lane::mul24, 2, {Type::none, Type::none}},
    {Opcode::mad24, lane::mad24, 3, {Type::none, Type::none, Type::none}},
    {Opcode::dp4a,  lane::dp4a,  3, {Type::b32, Type::b32, Type::b32}},
    {Opcode::dp2a,  lane::dp2a,  3, {Type::b32, Type::b32, Type::b32}},
    // clang-format on
}};

LaneForm bits_form(const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::bfind:
      return FirstBitForm{instruction.has("shiftamt")};
    case Opcode::szext:
    case Opcode::bmsk:
      return AmountForm{instruction.has("wrap")};
    case Opcode::mul24:
    case Opcode::mad24:
      return Product24Form{instruction.has("hi")};
    case Opcode::dp4a:
    case Opcode::dp2a:
      return DotForm{.a_signed = is_signed(instruction.type(0)),
                     .b_signed = is_signed(instruction.type(1)),
                     .high = instruction.has("hi")};
    default:
      return {};
  }
}

}  // namespace

bool lower_bits(FunctionContext& f, const InstructionView& instruction) {
  for (const BitsRow& row : bits_rows) {
    if (row.opcode != instruction.opcode()) continue;
    const Register d = f.operands.destination(instruction[0]);
    std::vector<Source> sources;
    for (std::size_t i = 0; i < row.sources; ++i) {
      const Type type = row.types[i] == Type::none ? instruction.type() : row.types[i];
      sources.push_back(f.operands.source(instruction[1 + i], type));
    }
    LaneDetails& made = f.code.lanes(row.lane, d, sources);
    made.type = lane_type(instruction.type());
    made.form = bits_form(instruction);
    made.saturate = instruction.has("sat");
    return true;
  }
  return false;
}

}  // namespace demarc::emulate
