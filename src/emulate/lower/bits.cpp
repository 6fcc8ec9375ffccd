// Instructions that count, find, cut and mask bits, and dot products of bytes.
#include "lower/lower.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

bool bits_type_is_signed(Type type) {
  return ptx::info(type).kind == ptx::TypeKind::signed_;
}

}  // namespace

bool Lowering::lower_bits(const ptx::Instruction& instruction) {
  const Type type = mnemonic(instruction).type();
  const auto list = operands(instruction);
  const Register d = destination(list[0]);
  const auto in = [&](std::size_t i, Type as) { return source(list[i], as); };
  LaneDetails* made = nullptr;
  switch (instruction.opcode) {
    case Opcode::popc:
      made = &emit_lanes(lane::popc, d, {in(1, type)});
      break;
    case Opcode::clz:
      made = &emit_lanes(lane::clz, d, {in(1, type)});
      break;
    case Opcode::brev:
      made = &emit_lanes(lane::brev, d, {in(1, type)});
      break;
    case Opcode::bfind:
      made = &emit_lanes(lane::bfind, d, {in(1, type)});
      made->form = FirstBitForm{has(instruction, "shiftamt")};
      break;
    case Opcode::fns:
      made = &emit_lanes(lane::fns, d, {in(1, Type::b32), in(2, Type::b32), in(3, Type::s32)});
      break;
    case Opcode::bfe:
      made = &emit_lanes(lane::bfe, d, {in(1, type), in(2, Type::u32), in(3, Type::u32)});
      break;
    case Opcode::bfi:
      made =
          &emit_lanes(lane::bfi, d, {in(1, type), in(2, type), in(3, Type::u32), in(4, Type::u32)});
      break;
    case Opcode::szext:
      made = &emit_lanes(lane::szext, d, {in(1, type), in(2, Type::u32)});
      made->form = AmountForm{has(instruction, "wrap")};
      break;
    case Opcode::bmsk:
      made = &emit_lanes(lane::bmsk, d, {in(1, Type::u32), in(2, Type::u32)});
      made->form = AmountForm{has(instruction, "wrap")};
      break;
    case Opcode::sad:
      made = &emit_lanes(lane::sad, d, {in(1, type), in(2, type), in(3, type)});
      break;
    case Opcode::mul24:
      made = &emit_lanes(lane::mul24, d, {in(1, type), in(2, type)});
      made->form = Product24Form{has(instruction, "hi")};
      break;
    case Opcode::mad24:
      made = &emit_lanes(lane::mad24, d, {in(1, type), in(2, type), in(3, type)});
      made->form = Product24Form{has(instruction, "hi")};
      made->saturate = has(instruction, "sat");
      break;
    case Opcode::dp4a:
    case Opcode::dp2a: {
      made = &emit_lanes(instruction.opcode == Opcode::dp4a ? lane::dp4a : lane::dp2a, d,
                         {in(1, Type::b32), in(2, Type::b32), in(3, Type::b32)});
      made->form =
          DotForm{bits_type_is_signed(mnemonic(instruction).type(0)),
                  bits_type_is_signed(mnemonic(instruction).type(1)), has(instruction, "hi")};
      break;
    }
    default:
      return false;
  }
  made->type = lane_type(type);
  return true;
}

}  // namespace demarc::emulate
