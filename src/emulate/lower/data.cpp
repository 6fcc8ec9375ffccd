// Moves and conversions.
#include <array>
#include <optional>

#include "lower/lower.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;
using ptx::TypeKind;

namespace {

// Whether mov joins or splits so many parts of equal size; types that are no plain bits have none.
bool can_be_parts(Type type, std::size_t count) {
  return ptx::info(type).kind == TypeKind::bits && (count == 1 || count == 2 || count == 4);
}

Alu move_of_width(std::uint32_t width) {
  return width == 1 ? Alu::mov_b8
                    : (width == 2 ? Alu::mov_b16 : (width == 4 ? Alu::mov_b32 : Alu::mov_b64));
}

// Conversions that have a vector loop.
std::optional<Alu> fast_conversion(Type to, Type from, Rounding rounding) {
  const TypeKind from_kind = ptx::info(from).kind;
  const TypeKind to_kind = ptx::info(to).kind;
  const bool integers = from_kind != TypeKind::floating && to_kind != TypeKind::floating;
  const std::uint32_t to_bytes = ptx::byte_size(to);
  const std::uint32_t from_bytes = ptx::byte_size(from);
  if (integers) {
    if (to_bytes == from_bytes) return move_of_width(to_bytes);
    const bool is_signed = from_kind == TypeKind::signed_;
    switch (to_bytes * 16 + from_bytes) {
      case 2 * 16 + 1:
        return is_signed ? Alu::cvt_s16_s8 : Alu::cvt_u16_u8;
      case 4 * 16 + 1:
        return is_signed ? Alu::cvt_s32_s8 : Alu::cvt_u32_u8;
      case 8 * 16 + 1:
        return is_signed ? Alu::cvt_s64_s8 : Alu::cvt_u64_u8;
      case 4 * 16 + 2:
        return is_signed ? Alu::cvt_s32_s16 : Alu::cvt_u32_u16;
      case 8 * 16 + 2:
        return is_signed ? Alu::cvt_s64_s16 : Alu::cvt_u64_u16;
      case 8 * 16 + 4:
        return is_signed ? Alu::cvt_s64_s32 : Alu::cvt_u64_u32;
      case 4 * 16 + 8:
        return Alu::cvt_u32_u64;
      case 2 * 16 + 8:
        return Alu::cvt_u16_u64;
      case 2 * 16 + 4:
        return Alu::cvt_u16_u32;
      case 1 * 16 + 2:
        return Alu::cvt_u8_u16;
      case 1 * 16 + 4:
        return Alu::cvt_u8_u32;
      case 1 * 16 + 8:
        return Alu::cvt_u8_u64;
      default:
        return std::nullopt;
    }
  }
  const bool nearest = rounding == Rounding::rn || rounding == Rounding::none;
  if (to == Type::f32 && from == Type::s32 && nearest) return Alu::cvt_f32_s32;
  if (to == Type::f32 && from == Type::u32 && nearest) return Alu::cvt_f32_u32;
  if (to == Type::f64 && from == Type::s32 && nearest) return Alu::cvt_f64_s32;
  if (to == Type::f64 && from == Type::u32 && nearest) return Alu::cvt_f64_u32;
  if (to == Type::f32 && from == Type::f64 && nearest) return Alu::cvt_f32_f64;
  if (to == Type::s32 && from == Type::f32 && rounding == Rounding::rzi)
    return Alu::cvt_s32_f32_rzi;
  return std::nullopt;
}

}  // namespace

bool Lowering::lower_move(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const Type type = words.type();
  switch (instruction.opcode) {
    case Opcode::prmt: {
      const Register d = destination(list[0]);
      LaneDetails& made = emit_lanes(
          lane::prmt, d,
          {source(list[1], Type::b32), source(list[2], Type::b32), source(list[3], Type::b32)});
      static constexpr std::pair<std::string_view, PermuteMode> modes[] = {
          {"f4e", PermuteMode::f4e}, {"b4e", PermuteMode::b4e}, {"rc8", PermuteMode::rc8},
          {"ecl", PermuteMode::ecl}, {"ecr", PermuteMode::ecr}, {"rc16", PermuteMode::rc16}};
      made.form = PermuteMode::index;
      for (const auto& [name, mode] : modes) {
        if (has(instruction, name)) made.form = mode;
      }
      return true;
    }
    case Opcode::isspacep: {
      const Register d = destination(list[0]);
      LaneDetails& made = emit_lanes(lane::isspacep, d, {source(list[1], Type::u64)});
      switch (words.space) {
        case ptx::StateSpace::shared:
          made.form = AddressWindow::shared;
          break;
        case ptx::StateSpace::local:
          made.form = AddressWindow::local;
          break;
        case ptx::StateSpace::constant:
          made.form = AddressWindow::constant;
          break;
        case ptx::StateSpace::param:
          made.form = AddressWindow::param;
          break;
        default:
          made.form = AddressWindow::global;
          break;
      }
      return true;
    }
    case Opcode::cvta: {
      const Register d = destination(list[0]);
      const Source a = source(list[1], type);
      std::uint64_t window = 0;
      switch (words.space) {
        case ptx::StateSpace::shared:
          window = shared_window;
          break;
        case ptx::StateSpace::local:
          window = local_window;
          break;
        case ptx::StateSpace::constant:
          window = constant_window;
          break;
        case ptx::StateSpace::param:
          window = param_window;
          break;
        default:
          break;
      }
      if (d.width != 8 || a.width != 8) return false;
      if (window == 0) {
        emit_alu(Alu::mov_b64, d, {a});
      } else {
        emit_alu(has(instruction, "to") ? Alu::sub_b64 : Alu::add_b64, d,
                 {a, {constant_slot(window), true, 8, false}});
      }
      return true;
    }
    case Opcode::mapa: {
      // The block's own shared memory alone: rank 0 where no cluster is launched.
      const ptx::Operand& rank = list[2];
      if (rank.kind != OperandKind::immediate || rank.value != 0) {
        unsupported(instruction, std::string(no_clusters));
        return true;
      }
      const Register d = destination(list[0]);
      const Source a = source(list[1], type);
      emit_alu(move_of_width(d.width), d, {a});
      return d.width == a.width;
    }
    case Opcode::getctarank: {
      const Register d = destination(list[0]);
      emit_alu(Alu::mov_b32, d, {{constant_slot(0), true, 4, false}});
      return d.width == 4;
    }
    case Opcode::mov:
      break;
    default:
      return false;
  }
  if (type == Type::pred) {
    const Register d = destination(list[0]);
    const Source a = source(list[1], type);
    MicroOp& op = emit(control::pred_and);
    op.d = d.slot;
    op.a = a.slot;
    op.b = a.slot;
    op.flags = a.negated ? 3 : 0;
    return d.width == 0 && a.width == 0;
  }
  const std::uint32_t bytes = ptx::byte_size(type);
  if (type == Type::b128) return lower_wide_move(instruction);
  if (bytes > 8) return false;
  if (list[0].kind == OperandKind::vector) {
    const auto parts = body_->children(list[0]);
    if (!can_be_parts(type, parts.size())) return false;
    const Source a = source(list[1], type);
    const auto bits = static_cast<std::uint32_t>(bytes * 8 / parts.size());
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind == OperandKind::sink) continue;
      const Register d = destination(parts[i]);
      if (d.width * 8 != bits) return false;
      if (bits == 32 && d.width == 4 && a.width == 8 && i == 0) {
        emit_alu(Alu::cvt_u32_u64, d, {a});
        continue;
      }
      emit_lanes(lane::split_part, d, {a}).form = PartForm{bits, i};
    }
    return a.width == bytes;
  }
  const Register d = destination(list[0]);
  if (list[1].kind == OperandKind::vector) {
    const auto parts = body_->children(list[1]);
    if (!can_be_parts(type, parts.size())) return false;
    const auto bits = static_cast<std::uint32_t>(bytes * 8 / parts.size());
    static constexpr std::array<Type, 3> part_types{Type::b8, Type::b16, Type::b32};
    const Type part_type = part_types[bits == 8 ? 0 : (bits == 16 ? 1 : 2)];
    std::array<Source, 4> in;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      in[i] = source(parts[i], part_type);
      if (in[i].width * 8 != bits) return false;
    }
    LaneDetails& made = parts.size() == 2 ? emit_lanes(lane::join_parts, d, {in[0], in[1]})
                        : parts.size() == 4
                            ? emit_lanes(lane::join_parts, d, {in[0], in[1], in[2], in[3]})
                            : emit_lanes(lane::join_parts, d, {in[0]});
    made.form = PartForm{bits, 0};
    return d.width == bytes;
  }
  Source a = source(list[1], type);
  if (a.uniform) a.width = d.width;
  emit_alu(move_of_width(d.width), d, {a});
  return a.width == d.width;
}

bool Lowering::lower_convert(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const Register d = destination(list[0]);
  if (instruction.opcode == Opcode::cvt_pack) {
    LaneDetails& made = list.size() > 3
                            ? emit_lanes(lane::cvt_pack, d,
                                         {source(list[1], Type::s32), source(list[2], Type::s32),
                                          source(list[3], Type::b32)})
                            : emit_lanes(lane::cvt_pack, d,
                                         {source(list[1], Type::s32), source(list[2], Type::s32)});
    made.type = lane_type(words.type(0));
    return lane_bytes(made.type) != 0 && ptx::byte_size(words.type(0)) <= 2 &&
           ptx::info(words.type(0)).bits >= 8;
  }
  const Type to = words.type(0);
  const Type from = words.type(1);
  const LaneType to_lane = lane_type(to);
  const LaneType from_lane = lane_type(from);
  if (to_lane == LaneType::none || from_lane == LaneType::none) return false;
  Rounding rounding = Rounding::none;
  static constexpr std::array<std::pair<std::string_view, Rounding>, 9> names{
      {{"rn", Rounding::rn},
       {"rna", Rounding::rna},
       {"rz", Rounding::rz},
       {"rm", Rounding::rm},
       {"rp", Rounding::rp},
       {"rni", Rounding::rni},
       {"rzi", Rounding::rzi},
       {"rmi", Rounding::rmi},
       {"rpi", Rounding::rpi}}};
  for (const auto& [name, value] : names) {
    if (has(instruction, name)) rounding = value;
  }
  const bool saturate = has(instruction, "sat") || has(instruction, "satfinite");
  const bool ftz = has(instruction, "ftz");
  const bool relu = has(instruction, "relu");
  const bool packed_to =
      to == Type::f16x2 || to == Type::bf16x2 || to == Type::e4m3x2 || to == Type::e5m2x2;
  const bool packed_from = from == Type::e4m3x2 || from == Type::e5m2x2;
  if (packed_from) {
    if (to != Type::f16x2) return false;
    LaneDetails& made = emit_lanes(lane::cvt_unpack, d, {source(list[1], Type::b16)});
    made.from = from_lane;
    made.relu = relu;
    return true;
  }
  if (packed_to) {
    if (from == Type::f16x2 && (to == Type::e4m3x2 || to == Type::e5m2x2)) {
      LaneDetails& halves = emit_lanes(lane::cvt_halves, d, {source(list[1], Type::b32)});
      halves.type = to_lane;
      halves.rounding = rounding;
      halves.relu = relu;
      return true;
    }
    if (list.size() != 3 || from != Type::f32) return false;
    LaneDetails& made =
        emit_lanes(lane::cvt_two, d, {source(list[1], from), source(list[2], from)});
    made.type = to_lane;
    made.from = from_lane;
    made.rounding = rounding;
    made.saturate = saturate;
    made.relu = relu;
    return true;
  }
  if (list.size() != 2) return false;
  const Source a = source(list[1], from);
  const std::uint32_t from_bytes = ptx::byte_size(from);
  const std::uint32_t to_bytes = ptx::byte_size(to);
  const bool natural = d.width == to_bytes && (a.width == from_bytes || a.uniform);
  if (natural && !saturate && !ftz && !relu) {
    if (const auto alu = fast_conversion(to, from, rounding)) {
      emit_alu(*alu, d, {a});
      return true;
    }
    if (to == Type::f64 && from == Type::f32 && rounding == Rounding::none) {
      emit_alu(Alu::cvt_f64_f32, d, {a});
      return true;
    }
  }
  LaneDetails& made = emit_lanes(lane::cvt, d, {a});
  made.type = to_lane;
  made.from = from_lane;
  made.rounding = rounding;
  made.saturate = saturate && !(to == Type::f16 && has(instruction, "satfinite"));
  made.ftz = ftz;
  made.relu = relu;
  return true;
}

}  // namespace demarc::emulate
