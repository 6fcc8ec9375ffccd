// Integer, floating-point and logic instructions.
#include <array>

#include "lower/lower.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;
using ptx::TypeKind;

namespace {

// The 16-, 32- or 64-bit row of an integer micro-op.
Alu alu_of_width(Alu a16, Alu a32, Alu a64, std::uint32_t bytes) {
  return bytes == 2 ? a16 : (bytes == 4 ? a32 : a64);
}

bool type_is_integer(Type type) {
  const TypeKind kind = ptx::info(type).kind;
  return kind == TypeKind::bits || kind == TypeKind::unsigned_ || kind == TypeKind::signed_;
}

bool type_is_signed(Type type) {
  return ptx::info(type).kind == TypeKind::signed_;
}

}  // namespace

#define DEMARC_BY_WIDTH(name, suffix) \
  alu_of_width(Alu::name##suffix##16, Alu::name##suffix##32, Alu::name##suffix##64, bytes)

bool Lowering::lower_arithmetic(const ptx::Instruction& instruction) {
  switch (ptx::info(instruction.opcode).group) {
    case ptx::OpcodeGroup::arithmetic:
      return lower_integer(instruction) || lower_float(instruction) || lower_bits(instruction);
    case ptx::OpcodeGroup::compare:
      return lower_compare(instruction);
    case ptx::OpcodeGroup::logic:
      return lower_logic(instruction);
    case ptx::OpcodeGroup::move:
      return lower_move(instruction);
    case ptx::OpcodeGroup::convert:
      return lower_convert(instruction);
    case ptx::OpcodeGroup::cache:
    case ptx::OpcodeGroup::fence:
      // Hints and orderings: memory is coherent and accesses happen in order here.
      if (instruction.opcode == Opcode::createpolicy) {
        const Register d = destination(operands(instruction)[0]);
        emit_alu(Alu::mov_b64, d, {{constant_slot(0), true, 8, false}});
        return true;
      }
      emit(control::nothing);
      return instruction.opcode != Opcode::discard &&
             instruction.opcode != Opcode::tensormap_cp_fenceproxy;
    case ptx::OpcodeGroup::misc:
      emit(control::nothing);
      return instruction.opcode == Opcode::nanosleep || instruction.opcode == Opcode::pmevent ||
             instruction.opcode == Opcode::setmaxnreg;
    case ptx::OpcodeGroup::video:
      return lower_video(instruction);
    default:
      return false;
  }
}

bool Lowering::lower_integer(const ptx::Instruction& instruction) {
  const Type type = mnemonic(instruction).type();
  if (!type_is_integer(type) || ptx::byte_size(type) < 2) return false;
  const std::uint32_t bytes = ptx::byte_size(type);
  const bool is_signed = type_is_signed(type);
  const bool saturate = has(instruction, "sat");
  const bool sets_carry = has(instruction, "cc");
  const auto list = operands(instruction);
  const Register d = destination(list[0]);
  const auto in = [&](std::size_t i) { return source(list[i], type); };
  const auto part = has(instruction, "wide") ? ProductPart::wide
                    : has(instruction, "hi") ? ProductPart::high
                                             : ProductPart::low;
  const auto carry_form = [&](LaneFunction function, bool takes_carry) {
    LaneDetails& made = list.size() > 3 ? emit_lanes(function, d, {in(1), in(2), in(3)})
                                        : emit_lanes(function, d, {in(1), in(2)});
    made.type = lane_type(type);
    made.form = CarryForm{sets_carry, takes_carry, part};
    made.uses_carry = sets_carry;
    made.saturate = saturate;
  };
  switch (instruction.opcode) {
    case Opcode::add:
      if (saturate || sets_carry) {
        carry_form(lane::add_integer, false);
      } else {
        emit_alu(DEMARC_BY_WIDTH(add_b, ), d, {in(1), in(2)});
      }
      return true;
    case Opcode::sub:
      if (saturate || sets_carry) {
        carry_form(lane::sub_integer, false);
      } else {
        emit_alu(DEMARC_BY_WIDTH(sub_b, ), d, {in(1), in(2)});
      }
      return true;
    case Opcode::addc:
      carry_form(lane::add_integer, true);
      return true;
    case Opcode::subc:
      carry_form(lane::sub_integer, true);
      return true;
    case Opcode::mul:
      if (has(instruction, "wide")) {
        if (bytes == 2) {
          emit_alu(is_signed ? Alu::mulwide_s16 : Alu::mulwide_u16, d, {in(1), in(2)});
        } else {
          emit_alu(is_signed ? Alu::mulwide_s32 : Alu::mulwide_u32, d, {in(1), in(2)});
        }
      } else if (has(instruction, "hi")) {
        emit_alu(is_signed ? DEMARC_BY_WIDTH(mulhi_s, ) : DEMARC_BY_WIDTH(mulhi_u, ), d,
                 {in(1), in(2)});
      } else {
        emit_alu(DEMARC_BY_WIDTH(mul_b, ), d, {in(1), in(2)});
      }
      return true;
    case Opcode::mad:
    case Opcode::madc:
      if (saturate || sets_carry || instruction.opcode == Opcode::madc) {
        carry_form(lane::mad_integer, instruction.opcode == Opcode::madc);
      } else if (has(instruction, "wide")) {
        if (bytes == 2) {
          emit_alu(is_signed ? Alu::madwide_s16 : Alu::madwide_u16, d,
                   {in(1), in(2), source(list[3], Type::b32)});
        } else {
          emit_alu(is_signed ? Alu::madwide_s32 : Alu::madwide_u32, d,
                   {in(1), in(2), source(list[3], Type::b64)});
        }
      } else if (has(instruction, "hi")) {
        emit_alu(is_signed ? DEMARC_BY_WIDTH(madhi_s, ) : DEMARC_BY_WIDTH(madhi_u, ), d,
                 {in(1), in(2), in(3)});
      } else {
        emit_alu(DEMARC_BY_WIDTH(mad_b, ), d, {in(1), in(2), in(3)});
      }
      return true;
    case Opcode::div:
      emit_alu(is_signed ? DEMARC_BY_WIDTH(div_s, ) : DEMARC_BY_WIDTH(div_u, ), d, {in(1), in(2)});
      return true;
    case Opcode::rem:
      emit_alu(is_signed ? DEMARC_BY_WIDTH(rem_s, ) : DEMARC_BY_WIDTH(rem_u, ), d, {in(1), in(2)});
      return true;
    case Opcode::min:
    case Opcode::max: {
      const bool most = instruction.opcode == Opcode::max;
      if (has(instruction, "relu")) {
        LaneDetails& made = emit_lanes(most ? lane::max : lane::min, d, {in(1), in(2)});
        made.type = lane_type(type);
        made.relu = true;
        return true;
      }
      if (most) {
        emit_alu(is_signed ? DEMARC_BY_WIDTH(max_s, ) : DEMARC_BY_WIDTH(max_u, ), d,
                 {in(1), in(2)});
      } else {
        emit_alu(is_signed ? DEMARC_BY_WIDTH(min_s, ) : DEMARC_BY_WIDTH(min_u, ), d,
                 {in(1), in(2)});
      }
      return true;
    }
    case Opcode::abs:
      emit_alu(DEMARC_BY_WIDTH(abs_s, ), d, {in(1)});
      return true;
    case Opcode::neg:
      emit_alu(DEMARC_BY_WIDTH(neg_s, ), d, {in(1)});
      return true;
    default:
      return false;
  }
}

bool Lowering::lower_float(const ptx::Instruction& instruction) {
  const Type type = mnemonic(instruction).type();
  const TypeKind kind = ptx::info(type).kind;
  if (kind != TypeKind::floating && kind != TypeKind::packed) return false;
  if (lane_type(type) == LaneType::none) return false;
  const auto list = operands(instruction);
  if (list.size() < 2) return false;
  const Register d = destination(list[0]);
  const auto in = [&](std::size_t i) { return source(list[i], type); };

  if (type == Type::u16x2 || type == Type::s16x2) {
    const bool sum = instruction.opcode == Opcode::add;
    const bool least = instruction.opcode == Opcode::min;
    if (!sum && !least && instruction.opcode != Opcode::max) return false;
    LaneDetails& made =
        emit_lanes(sum ? lane::add_integer : (least ? lane::min : lane::max), d, {in(1), in(2)});
    made.type = lane_type(type);
    made.relu = has(instruction, "relu");
    return true;
  }
  if (type == Type::f32x2 && instruction.opcode != Opcode::add &&
      instruction.opcode != Opcode::sub && instruction.opcode != Opcode::mul &&
      instruction.opcode != Opcode::fma) {
    return false;
  }

  Rounding rounding = Rounding::rn;
  if (has(instruction, "rz")) rounding = Rounding::rz;
  if (has(instruction, "rm")) rounding = Rounding::rm;
  if (has(instruction, "rp")) rounding = Rounding::rp;
  const bool ftz = has(instruction, "ftz");
  const bool saturate = has(instruction, "sat");
  const bool f32 = type == Type::f32;
  const bool f64 = type == Type::f64;
  const bool plain = (f32 || f64) && rounding == Rounding::rn && !ftz && !saturate &&
                     !has(instruction, "relu") && !has(instruction, "oob");
  const bool plain_ftz =
      f32 && rounding == Rounding::rn && ftz && !saturate && !has(instruction, "relu");
  const bool approximate = has(instruction, "approx") || has(instruction, "full");

  struct Row {
    Opcode opcode;
    LaneFunction function;
    int sources;
  };
  static constexpr std::array<Row, 20> rows{
      {{Opcode::add, lane::add, 2},           {Opcode::sub, lane::sub, 2},
       {Opcode::mul, lane::mul, 2},           {Opcode::div, lane::div, 2},
       {Opcode::fma, lane::fma, 3},           {Opcode::mad, lane::fma, 3},
       {Opcode::sqrt, lane::sqrt, 1},         {Opcode::rcp, lane::rcp, 1},
       {Opcode::rsqrt, lane::rsqrt, 1},       {Opcode::sin, lane::sin, 1},
       {Opcode::cos, lane::cos, 1},           {Opcode::lg2, lane::lg2, 1},
       {Opcode::ex2, lane::ex2, 1},           {Opcode::tanh, lane::tanh, 1},
       {Opcode::neg, lane::neg, 1},           {Opcode::abs, lane::abs, 1},
       {Opcode::min, lane::min, 2},           {Opcode::max, lane::max, 2},
       {Opcode::copysign, lane::copysign, 2}, {Opcode::testp, lane::testp, 1}}};
  const auto pick = [&](Alu of32, Alu of64) { return f32 ? of32 : of64; };
  const bool simple_pick =
      plain && list.size() == 3 && !has(instruction, "NaN") && !has(instruction, "xorsign");
  switch (instruction.opcode) {
    case Opcode::add:
      if (plain || plain_ftz) {
        emit_alu(plain_ftz ? Alu::add_ftz_f32 : pick(Alu::add_f32, Alu::add_f64), d,
                 {in(1), in(2)});
        return true;
      }
      break;
    case Opcode::sub:
      if (plain || plain_ftz) {
        emit_alu(plain_ftz ? Alu::sub_ftz_f32 : pick(Alu::sub_f32, Alu::sub_f64), d,
                 {in(1), in(2)});
        return true;
      }
      break;
    case Opcode::mul:
      if (plain || plain_ftz) {
        emit_alu(plain_ftz ? Alu::mul_ftz_f32 : pick(Alu::mul_f32, Alu::mul_f64), d,
                 {in(1), in(2)});
        return true;
      }
      break;
    case Opcode::div:
      if (plain || plain_ftz) {
        emit_alu(plain_ftz ? Alu::div_ftz_f32 : pick(Alu::div_f32, Alu::div_f64), d,
                 {in(1), in(2)});
        return true;
      }
      break;
    case Opcode::fma:
    case Opcode::mad:
      if (plain || plain_ftz) {
        emit_alu(plain_ftz ? Alu::fma_ftz_f32 : pick(Alu::fma_f32, Alu::fma_f64), d,
                 {in(1), in(2), in(3)});
        return true;
      }
      break;
    case Opcode::sqrt:
      if (plain) {
        emit_alu(pick(Alu::sqrt_f32, Alu::sqrt_f64), d, {in(1)});
        return true;
      }
      break;
    case Opcode::rcp:
      if (plain) {
        emit_alu(pick(Alu::rcp_f32, Alu::rcp_f64), d, {in(1)});
        return true;
      }
      break;
    case Opcode::rsqrt:
      if (plain) {
        emit_alu(pick(Alu::rsqrt_f32, Alu::rsqrt_f64), d, {in(1)});
        return true;
      }
      break;
    case Opcode::neg:
      if (plain) {
        emit_alu(pick(Alu::neg_f32, Alu::neg_f64), d, {in(1)});
        return true;
      }
      break;
    case Opcode::abs:
      if (plain) {
        emit_alu(pick(Alu::abs_f32, Alu::abs_f64), d, {in(1)});
        return true;
      }
      break;
    case Opcode::min:
      if (simple_pick) {
        emit_alu(pick(Alu::min_f32, Alu::min_f64), d, {in(1), in(2)});
        return true;
      }
      break;
    case Opcode::max:
      if (simple_pick) {
        emit_alu(pick(Alu::max_f32, Alu::max_f64), d, {in(1), in(2)});
        return true;
      }
      break;
    default:
      break;
  }
  for (const Row& row : rows) {
    if (row.opcode != instruction.opcode) continue;
    const auto given = static_cast<int>(list.size()) - 1;
    if (given < row.sources) return false;
    const bool three = row.sources == 3 ||
                       (given == 3 && (row.opcode == Opcode::min || row.opcode == Opcode::max));
    if (given > (three ? 3 : row.sources)) return false;
    LaneDetails& made = three              ? emit_lanes(row.function, d, {in(1), in(2), in(3)})
                        : row.sources == 2 ? emit_lanes(row.function, d, {in(1), in(2)})
                                           : emit_lanes(row.function, d, {in(1)});
    made.type = lane_type(type);
    made.rounding = approximate ? Rounding::rn : rounding;
    made.ftz = ftz;
    made.saturate = saturate;
    made.relu = has(instruction, "relu");
    made.nan = has(instruction, "NaN");
    made.abs = has(instruction, "xorsign");
    if (row.opcode == Opcode::testp) {
      made.form = has(instruction, "finite")       ? FloatProperty::finite
                  : has(instruction, "infinite")   ? FloatProperty::infinite
                  : has(instruction, "number")     ? FloatProperty::number
                  : has(instruction, "notanumber") ? FloatProperty::not_a_number
                  : has(instruction, "normal")     ? FloatProperty::normal
                                                   : FloatProperty::subnormal;
    }
    const bool oob = has(instruction, "oob");
    return !oob;
  }
  return false;
}

bool Lowering::lower_logic(const ptx::Instruction& instruction) {
  const Type type = mnemonic(instruction).type();
  const std::uint32_t bytes = ptx::byte_size(type);
  const auto list = operands(instruction);
  if (type == Type::pred) {
    const Register d = destination(list[0]);
    const Source a = source(list[1], type);
    const Source b = list.size() > 2 ? source(list[2], type) : a;
    Handler handler = nullptr;
    bool inverts = false;
    switch (instruction.opcode) {
      case Opcode::and_:
        handler = control::pred_and;
        break;
      case Opcode::or_:
        handler = control::pred_or;
        break;
      case Opcode::xor_:
        handler = control::pred_xor;
        break;
      case Opcode::not_:
        handler = control::pred_and;
        inverts = true;
        break;
      default:
        return false;
    }
    MicroOp& op = emit(handler);
    op.d = d.slot;
    op.a = a.slot;
    op.b = b.slot;
    op.flags =
        static_cast<std::uint8_t>((a.negated != inverts ? 1 : 0) | (b.negated != inverts ? 2 : 0));
    return d.width == 0 && a.width == 0 && b.width == 0;
  }
  if (instruction.opcode == Opcode::lop3) {
    const bool pair = list[0].kind == ptx::OperandKind::pair;
    const auto results = pair ? body_->children(list[0]) : list.subspan(0, 1);
    const Register d = destination(results[0]);
    const bool combined = pair;
    LaneDetails& made =
        combined
            ? emit_lanes(lane::lop3, d,
                         {source(list[1], type), source(list[2], type), source(list[3], type),
                          source(list[5], Type::pred)})
            : emit_lanes(lane::lop3, d,
                         {source(list[1], type), source(list[2], type), source(list[3], type)});
    if (list[4].kind != ptx::OperandKind::immediate) return false;
    Lop3Form form;
    form.truth = static_cast<std::uint8_t>(list[4].value & 0xffU);
    if (combined) {
      const Register p = destination(results[1]);
      made.has_second = true;
      made.second_slot = p.slot;
      made.second_width = p.width;
      form.logic = has(instruction, "and") ? Logic::conjunction : Logic::disjunction;
    }
    made.form = form;
    return true;
  }
  const Register d = destination(list[0]);
  const auto in = [&](std::size_t i) { return source(list[i], type); };
  if (instruction.opcode == Opcode::cnot) {
    emit_lanes(lane::cnot, d, {in(1)}).type = lane_type(type);
    return true;
  }
  if (instruction.opcode == Opcode::shf) {
    LaneDetails& made = emit_lanes(has(instruction, "l") ? lane::shf_left : lane::shf_right, d,
                                   {in(1), in(2), source(list[3], Type::u32)});
    made.form = AmountForm{has(instruction, "wrap")};
    return true;
  }
  if (bytes < 2 || bytes > 8) return false;
  const bool is_signed = type_is_signed(type);
  switch (instruction.opcode) {
    case Opcode::and_:
      emit_alu(DEMARC_BY_WIDTH(and_b, ), d, {in(1), in(2)});
      return true;
    case Opcode::or_:
      emit_alu(DEMARC_BY_WIDTH(or_b, ), d, {in(1), in(2)});
      return true;
    case Opcode::xor_:
      emit_alu(DEMARC_BY_WIDTH(xor_b, ), d, {in(1), in(2)});
      return true;
    case Opcode::not_:
      emit_alu(DEMARC_BY_WIDTH(not_b, ), d, {in(1)});
      return true;
    case Opcode::shl:
      emit_alu(DEMARC_BY_WIDTH(shl_b, ), d, {in(1), source(list[2], Type::u32)});
      return true;
    case Opcode::shr:
      emit_alu(is_signed ? DEMARC_BY_WIDTH(shr_s, ) : DEMARC_BY_WIDTH(shr_u, ), d,
               {in(1), source(list[2], Type::u32)});
      return true;
    default:
      return false;
  }
}

#undef DEMARC_BY_WIDTH

}  // namespace demarc::emulate
