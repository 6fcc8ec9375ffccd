#include <array>
#include <charconv>

#include "lower/lower.hpp"
#include "ops/control.hpp"
#include "ops/matrix.hpp"
#include "ops/memory.hpp"
#include "ops/warp.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

bool matrix_type(Type type, MatrixType& out) {
  static constexpr std::array<std::pair<Type, MatrixType>, 13> rows{{{Type::f16, MatrixType::f16},
                                                                     {Type::bf16, MatrixType::bf16},
                                                                     {Type::tf32, MatrixType::tf32},
                                                                     {Type::f32, MatrixType::f32},
                                                                     {Type::f64, MatrixType::f64},
                                                                     {Type::e4m3, MatrixType::e4m3},
                                                                     {Type::e5m2, MatrixType::e5m2},
                                                                     {Type::s8, MatrixType::s8},
                                                                     {Type::u8, MatrixType::u8},
                                                                     {Type::s4, MatrixType::s4},
                                                                     {Type::u4, MatrixType::u4},
                                                                     {Type::b1, MatrixType::b1},
                                                                     {Type::s32, MatrixType::s32}}};
  for (const auto& [ours, theirs] : rows) {
    if (ours != type) continue;
    out = theirs;
    return true;
  }
  return false;
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

bool matrix_shape(const ptx::Mnemonic& words, MatrixDetails& out) {
  for (const ptx::ModifierUse& use : words.modifiers) {
    if (use.id == ptx::Modifier::shape_mnk) return matrix_shape(use.text, out);
  }
  return false;
}

Type register_type(MatrixType type) {
  return type == MatrixType::f64 ? Type::f64 : (type == MatrixType::f32 ? Type::f32 : Type::b32);
}

// The first two layouts that are written: of a, and of b.
std::array<std::string_view, 2> layouts(const ptx::Mnemonic& words) {
  std::array<std::string_view, 2> out;
  std::size_t count = 0;
  for (const ptx::ModifierUse& use : words.modifiers) {
    if ((use.text == "row" || use.text == "col") && count < 2) out[count++] = use.text;
  }
  return out;
}

}  // namespace

bool Lowering::lower_matrix(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  switch (instruction.opcode) {
    case Opcode::ldmatrix:
    case Opcode::stmatrix: {
      const bool loads = instruction.opcode == Opcode::ldmatrix;
      if (words.type() != Type::b16 || !has(instruction, "m8n8")) return false;
      auto& made = details<MatrixAccessDetails>();
      made.transposed = has(instruction, "trans");
      const ptx::Operand& value = list[loads ? 0 : 1];
      const auto parts =
          value.kind == OperandKind::vector ? body_->children(value) : std::span(&value, 1);
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
    case Opcode::wmma_mma:
      return lower_product(instruction);
    case Opcode::wmma_load:
    case Opcode::wmma_store:
      return lower_fragment(instruction);
    default:
      return false;
  }
}

// The registers of a fragment. `uniform` null: none of them may be a uniform slot.
bool Lowering::fragment_registers(const ptx::Operand& operand, std::uint32_t* slots, bool* uniform,
                                  unsigned expected, ptx::Type type) {
  const auto parts =
      operand.kind == OperandKind::vector ? body_->children(operand) : std::span(&operand, 1);
  if (parts.size() != expected || expected > 8) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Source s = source(parts[i], type);
    if (failed_) return false;
    if (s.uniform && uniform == nullptr) {
      // A copy of its own in every lane.
      const std::uint8_t width = type == Type::f64 ? 8 : 4;
      Register copy;
      copy.width = width;
      copy.slot = take_slot(std::uint32_t{width} * warp_size, 64);
      emit_alu(width == 8 ? Alu::mov_b64 : Alu::mov_b32, copy, {s});
      s = {copy.slot, false, width, false};
    }
    slots[i] = s.slot;
    if (uniform != nullptr) uniform[i] = s.uniform;
  }
  return true;
}

bool Lowering::lower_product(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const bool fragments = instruction.opcode == Opcode::wmma_mma;
  auto& made = details<MatrixDetails>();
  if (!matrix_shape(words, made) || list.size() != 4) return false;
  // wmma of f16 names the types of d and c only.
  const bool short_form = fragments && words.types.size() == 2;
  if (!short_form && words.types.size() != 4) return false;
  const Type a_type = short_form ? Type::f16 : words.type(1);
  const Type b_type = short_form ? Type::f16 : words.type(2);
  if (!matrix_type(words.type(0), made.d_type) || !matrix_type(a_type, made.a_type) ||
      !matrix_type(b_type, made.b_type) ||
      !matrix_type(words.type(short_form ? 1 : 3), made.c_type)) {
    return false;
  }
  if (matrix_bits(made.a_type) != matrix_bits(made.b_type)) return false;
  made.saturate = has(instruction, "satfinite");
  made.exclusive = made.a_type == MatrixType::b1 && has(instruction, "xor");
  const auto [a_layout, b_layout] = layouts(words);
  if (a_layout.empty() || b_layout.empty()) return false;
  const bool quads =
      !fragments && made.m == 8 && made.n == 8 && made.k == 4 && made.a_type == MatrixType::f16;
  made.a_by_column = a_layout == "col";
  made.b_by_row = b_layout == "row";
  const bool usual = a_layout == "row" && b_layout == "col";
  if (!quads && !(fragments ? is_fragment_shape(made) : usual && is_product_shape(made)))
    return false;
  unsigned in_a = registers_for(made.m * made.k / warp_size, made.a_type);
  unsigned in_b = registers_for(made.k * made.n / warp_size, made.b_type);
  unsigned in_d = registers_for(made.m * made.n / warp_size, made.d_type);
  unsigned in_c = registers_for(made.m * made.n / warp_size, made.c_type);
  if (fragments && made.a_type == MatrixType::f16) in_a = in_b = 8;
  if (quads) {
    in_a = in_b = 2;
    in_d = made.d_type == MatrixType::f16 ? 4 : 8;
    in_c = made.c_type == MatrixType::f16 ? 4 : 8;
  }
  if (!fragment_registers(list[0], made.d, nullptr, in_d, register_type(made.d_type)) ||
      !fragment_registers(list[1], made.a, nullptr, in_a, register_type(made.a_type)) ||
      !fragment_registers(list[2], made.b, nullptr, in_b, register_type(made.b_type)) ||
      !fragment_registers(list[3], made.c, made.c_uniform, in_c, register_type(made.c_type)))
    return false;
  MicroOp& op = emit(quads       ? matrix_ops::multiply_quads
                     : fragments ? matrix_ops::multiply_fragments
                                 : matrix_ops::multiply);
  op.aux = &made;
  return true;
}

// wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {..}, [p], stride, and the store.
bool Lowering::lower_fragment(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const bool loads = instruction.opcode == Opcode::wmma_load;
  MatrixDetails shape;
  auto& made = details<FragmentDetails>();
  if (!matrix_shape(words, shape) || words.types.size() != 1 ||
      !matrix_type(words.type(), made.type))
    return false;
  const bool is_a = loads && has(instruction, "a");
  const bool is_b = loads && has(instruction, "b");
  made.rows = is_b ? shape.k : shape.m;
  made.columns = is_a ? shape.k : shape.n;
  made.by_column = has(instruction, "col");
  const unsigned elements = made.rows * made.columns / warp_size;
  if (matrix_bits(made.type) < 8 || elements == 0) return false;
  made.registers = registers_for(elements, made.type);
  if ((is_a || is_b) && made.type == MatrixType::f16) made.registers = 8;
  const ptx::Operand& value = list[loads ? 0 : 1];
  if (!fragment_registers(value, made.slots, nullptr, made.registers, register_type(made.type)) ||
      !address(list[loads ? 1 : 0], words.space, made.part))
    return false;
  if (list.size() > 2) {
    const Source stride = source(list[2], Type::u32);
    made.has_stride = true;
    made.stride = stride.slot;
    made.stride_uniform = stride.uniform;
  }
  made.scratch = take_slot(8 * warp_size, 64);
  made.part.instruction = instruction_;
  made.part.bytes = static_cast<std::uint8_t>(std::max(matrix_bits(made.type) / 8, 1U));
  note_access(loads ? AccessKind::load : AccessKind::store, made.part.bytes,
              static_cast<AddressKind>(made.part.kind));
  MicroOp& op = emit(loads ? matrix_ops::load_fragment : matrix_ops::store_fragment);
  op.aux = &made;
  return true;
}

}  // namespace demarc::emulate
