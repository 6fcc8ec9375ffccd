#include <array>
#include <charconv>

#include "control.hpp"
#include "lower.hpp"
#include "memory_ops.hpp"
#include "warp_ops.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

bool matrix_type(Type type, MatrixType& out) {
  switch (type) {
    case Type::f16:
      out = MatrixType::f16;
      return true;
    case Type::bf16:
      out = MatrixType::bf16;
      return true;
    case Type::tf32:
      out = MatrixType::tf32;
      return true;
    case Type::f32:
      out = MatrixType::f32;
      return true;
    case Type::f64:
      out = MatrixType::f64;
      return true;
    case Type::s8:
      out = MatrixType::s8;
      return true;
    case Type::u8:
      out = MatrixType::u8;
      return true;
    case Type::s32:
      out = MatrixType::s32;
      return true;
    default:
      return false;
  }
}

// "m16n8k16"
bool matrix_shape(std::string_view text, MatrixDetails& out) {
  const auto number = [&](std::size_t at, unsigned& value) {
    return at != std::string_view::npos &&
           std::from_chars(text.data() + at + 1, text.data() + text.size(), value).ec ==
               std::errc{};
  };
  return number(text.find('m'), out.m) && number(text.find('n'), out.n) &&
         number(text.find('k'), out.k);
}

}  // namespace

bool Lowering::lower_warp(const ptx::Instruction& instruction) {
  if (ptx::info(instruction.opcode).group == ptx::OpcodeGroup::matrix)
    return lower_matrix(instruction);
  if (ptx::info(instruction.opcode).group != ptx::OpcodeGroup::warp) return false;
  const auto list = operands(instruction);
  const Type type = mnemonic(instruction).type();
  auto& made = details<WarpDetails>();
  const bool sync = has(instruction, "sync");
  const bool pair = list[0].kind == OperandKind::pair;
  const auto results = pair ? body_->children(list[0]) : list.subspan(0, 1);
  Register d;
  if (results[0].kind == OperandKind::sink) {
    made.has_result = false;
  } else {
    d = destination(results[0]);
    if (d.uniform) return false;
  }
  if (pair && results[1].kind != OperandKind::sink) {
    made.has_predicate = true;
    made.predicate = destination(results[1]).slot;
  }
  const auto operand = [&](unsigned at, std::size_t index, Type as) {
    const Source s = source(list[index], as);
    made.slot[at] = s.slot;
    made.uniform[at] = s.uniform;
    if (at == 0) {
      made.negated = s.negated;
      if (!s.uniform && s.width != 0) made.width = s.width;
    }
    return s;
  };
  switch (instruction.opcode) {
    case Opcode::shfl: {
      made.operation = has(instruction, "up")     ? WarpOperation::shuffle_up
                       : has(instruction, "down") ? WarpOperation::shuffle_down
                       : has(instruction, "bfly") ? WarpOperation::shuffle_butterfly
                                                  : WarpOperation::shuffle_index;
      const Source a = operand(0, 1, Type::b32);
      operand(1, 2, Type::b32);
      operand(2, 3, Type::b32);
      if (!a.uniform && a.width != 4) return false;
      break;
    }
    case Opcode::vote:
      made.operation = has(instruction, "ballot") ? WarpOperation::vote_ballot
                       : has(instruction, "all")  ? WarpOperation::vote_all
                       : has(instruction, "any")  ? WarpOperation::vote_any
                                                  : WarpOperation::vote_uniform;
      operand(0, 1, Type::pred);
      break;
    case Opcode::match:
      made.operation =
          has(instruction, "all") ? WarpOperation::match_all : WarpOperation::match_any;
      made.width = static_cast<std::uint8_t>(ptx::byte_size(type));
      operand(0, 1, type);
      operand(1, 2, Type::b32);
      break;
    case Opcode::activemask:
      made.operation = WarpOperation::active_mask;
      break;
    case Opcode::elect:
      made.operation = WarpOperation::elect;
      break;
    case Opcode::redux: {
      static constexpr std::array<std::pair<std::string_view, WarpOperation>, 6> kinds{
          {{"add", WarpOperation::reduce_add},
           {"min", WarpOperation::reduce_min},
           {"max", WarpOperation::reduce_max},
           {"and", WarpOperation::reduce_and},
           {"or", WarpOperation::reduce_or},
           {"xor", WarpOperation::reduce_xor}}};
      if (type == Type::f32) return false;
      for (const auto& [name, kind] : kinds) {
        if (has(instruction, name)) made.operation = kind;
      }
      made.is_signed = type == Type::s32;
      operand(0, 1, type);
      operand(1, 2, Type::b32);
      break;
    }
    default:
      return false;
  }
  static_cast<void>(sync);
  MicroOp& op = emit(warp_ops::exchange);
  op.d = d.slot;
  op.aux = &made;
  return true;
}

bool Lowering::lower_matrix(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const auto parts_of = [&](const ptx::Operand& operand) {
    return operand.kind == OperandKind::vector ? body_->children(operand) : std::span(&operand, 1);
  };
  switch (instruction.opcode) {
    case Opcode::ldmatrix:
    case Opcode::stmatrix: {
      const bool loads = instruction.opcode == Opcode::ldmatrix;
      if (words.type() != Type::b16 || !has(instruction, "m8n8")) return false;
      auto& made = details<MatrixAccessDetails>();
      made.transposed = has(instruction, "trans");
      const auto parts = parts_of(list[loads ? 0 : 1]);
      made.matrices = static_cast<unsigned>(parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const Register reg = destination(parts[i]);
        if (reg.uniform || reg.width != 4 || i >= 4) return false;
        made.slots[i] = reg.slot;
      }
      MicroOp op;
      if (!address(list[loads ? 1 : 0], words.space, op)) return false;
      op.run = loads ? memory_ops::load_matrix : memory_ops::store_matrix;
      op.instruction = instruction_;
      op.bytes = 16;
      op.aux = &made;
      note_access(loads ? AccessKind::load : AccessKind::store, 16,
                  static_cast<AddressKind>(op.kind));
      program_->code.push_back(op);
      return true;
    }
    case Opcode::movmatrix: {
      const Register d = destination(list[0]);
      const Source a = source(list[1], Type::b32);
      if (a.uniform || d.uniform) return false;
      MicroOp& op = emit(warp_ops::move_matrix);
      op.d = d.slot;
      op.a = a.slot;
      return true;
    }
    case Opcode::mma:
      break;
    default:
      return false;
  }
  auto& made = details<MatrixDetails>();
  bool shaped = false;
  for (const ptx::ModifierUse& use : words.modifiers) {
    if (use.id == ptx::Modifier::shape_mnk) shaped = matrix_shape(use.text, made);
  }
  if (!shaped || words.types.size() < 4 || list.size() != 4) return false;
  if (!matrix_type(words.type(0), made.d_type) || !matrix_type(words.type(1), made.a_type) ||
      !matrix_type(words.type(2), made.b_type) || !matrix_type(words.type(3), made.c_type)) {
    return false;
  }
  made.saturate = has(instruction, "satfinite");
  if (!has(instruction, "row") || !has(instruction, "col")) return false;
  const unsigned in_a = elements_of_a(made);
  if (in_a == 0 || matrix_bits(made.a_type) != matrix_bits(made.b_type)) return false;
  const auto registers_for = [](unsigned elements, MatrixType type) {
    return type == MatrixType::f64 ? elements : elements * matrix_bits(type) / 32;
  };
  const auto fill = [&](const ptx::Operand& operand, std::uint32_t* slots, bool* uniform,
                        unsigned expected, Type type) {
    const auto parts = parts_of(operand);
    if (parts.size() != expected || expected > 8) return false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Source s = source(parts[i], type);
      if (failed_ || (s.uniform && uniform == nullptr)) return false;
      slots[i] = s.slot;
      if (uniform != nullptr) uniform[i] = s.uniform;
    }
    return true;
  };
  const unsigned in_c = made.m * made.n / warp_size;
  const Type register_type = made.a_type == MatrixType::f64 ? Type::f64 : Type::b32;
  return fill(list[0], made.d, nullptr, registers_for(in_c, made.d_type), register_type) &&
         fill(list[1], made.a, nullptr, registers_for(in_a, made.a_type), register_type) &&
         fill(list[2], made.b, nullptr, registers_for(elements_of_b(made), made.b_type),
              register_type) &&
         fill(list[3], made.c, made.c_uniform, registers_for(in_c, made.c_type),
              made.c_type == MatrixType::f32 ? Type::f32 : register_type) &&
         [&] {
           MicroOp& op = emit(warp_ops::multiply);
           op.aux = &made;
           return true;
         }();
}

}  // namespace demarc::emulate
