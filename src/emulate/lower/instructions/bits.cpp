// Instructions that count, find, cut and mask bits, and dot products of bytes.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

// Types of the result and the sources. none: that of the instruction.
struct BitsRow {
  Opcode opcode;
  LaneFunction lane;
  Type result;
  std::size_t sources;
  std::array<Type, 4> types;
};

constexpr std::array<BitsRow, 14> bits_rows{{
    // clang-format off
    {Opcode::popc,  lane::popc,  Type::u32,  1, {Type::none}},
    {Opcode::clz,   lane::clz,   Type::u32,  1, {Type::none}},
    {Opcode::brev,  lane::brev,  Type::none, 1, {Type::none}},
    {Opcode::bfind, lane::bfind, Type::u32,  1, {Type::none}},
    {Opcode::fns,   lane::fns,   Type::b32,  3, {Type::b32, Type::b32, Type::s32}},
    {Opcode::bfe,   lane::bfe,   Type::none, 3, {Type::none, Type::u32, Type::u32}},
    {Opcode::bfi,   lane::bfi,   Type::none, 4, {Type::none, Type::none, Type::u32, Type::u32}},
    {Opcode::szext, lane::szext, Type::none, 2, {Type::none, Type::u32}},
    {Opcode::bmsk,  lane::bmsk,  Type::b32,  2, {Type::u32, Type::u32}},
    {Opcode::sad,   lane::sad,   Type::none, 3, {Type::none, Type::none, Type::none}},
    {Opcode::mul24, lane::mul24, Type::none, 2, {Type::none, Type::none}},
    {Opcode::mad24, lane::mad24, Type::none, 3, {Type::none, Type::none, Type::none}},
    {Opcode::dp4a,  lane::dp4a,  Type::b32,  3, {Type::b32, Type::b32, Type::b32}},
    {Opcode::dp2a,  lane::dp2a,  Type::b32,  3, {Type::b32, Type::b32, Type::b32}},
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
  const auto named = [&](Type type) { return type == Type::none ? instruction.type() : type; };
  for (const BitsRow& row : bits_rows) {
    if (row.opcode != instruction.opcode()) continue;
    const Register d = f.operands.destination(instruction[0], named(row.result));
    std::vector<Source> sources;
    for (std::size_t i = 0; i < row.sources; ++i)
      sources.push_back(f.operands.source(instruction[1 + i], named(row.types[i])));
    LaneDetails& made = f.code.lanes(row.lane, d, sources);
    made.type = lane_type(instruction.type());
    made.form = bits_form(instruction);
    made.saturate = instruction.has("sat");
    return true;
  }
  return false;
}

}  // namespace demarc::emulate
