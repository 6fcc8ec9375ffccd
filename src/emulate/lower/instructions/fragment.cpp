// Fragments of wmma between memory and registers.
#include <algorithm>

#include "lower/instructions.hpp"
#include "lower/matrix_words.hpp"

namespace demarc::emulate {

using ptx::Opcode;

namespace {

constexpr unsigned fragment_byte_bits = 8;

enum class FragmentRole : std::uint8_t { a, b, sum };

FragmentRole fragment_role(const InstructionView& instruction) {
  if (instruction.opcode() == Opcode::wmma_store) return FragmentRole::sum;
  if (instruction.has("a")) return FragmentRole::a;
  return instruction.has("b") ? FragmentRole::b : FragmentRole::sum;
}

bool is_sum_shape(const ProductSize& size, MatrixType type) {
  switch (type) {
    case MatrixType::f16:
    case MatrixType::s32:
      return is_fragment_shape(size, MatrixType::f16);
    case MatrixType::f32:
      return is_fragment_shape(size, MatrixType::f16) || is_fragment_shape(size, MatrixType::tf32);
    case MatrixType::f64:
      return is_fragment_shape(size, MatrixType::f64);
    default:
      return false;
  }
}

// Rows, columns, type and number of registers. False: not covered.
bool set_fragment(const InstructionView& instruction, FragmentDetails& made) {
  const auto shape = matrix_shape(instruction.words());
  if (!shape || instruction.words().types.size() != 1) return false;
  const auto type = matrix_type(instruction.type());
  if (!type) return false;
  const FragmentRole role = fragment_role(instruction);
  if (role == FragmentRole::sum ? !is_sum_shape(*shape, *type) : !is_fragment_shape(*shape, *type))
    return false;
  made.type = *type;
  made.rows = role == FragmentRole::b ? shape->k : shape->m;
  made.columns = role == FragmentRole::a ? shape->k : shape->n;
  made.by_column = instruction.has("col");
  const unsigned elements = made.rows * made.columns / warp_size;
  const bool doubled = role != FragmentRole::sum && *type == MatrixType::f16;
  made.fragment.registers = doubled ? Fragment::max_registers : registers_for(elements, *type);
  return true;
}

}  // namespace

// wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {..}, [p], stride, and the store.
bool lower_fragment(FunctionContext& f, const InstructionView& instruction) {
  const bool loads = instruction.opcode() == Opcode::wmma_load;
  if (!loads && instruction.opcode() != Opcode::wmma_store) return false;
  auto& made = f.code.details<FragmentDetails>();
  if (!set_fragment(instruction, made)) return false;
  const FragmentRegisters wanted{made.fragment.registers, made.type};
  const auto registers = fragment_lanes(f, instruction, instruction[loads ? 0 : 1], wanted);
  auto part = f.operands.address(instruction[loads ? 1 : 0], instruction.words().space);
  if (!registers || !part) return false;
  made.fragment = fragment_of(*registers, wanted);
  if (instruction.operands().size() > 2) {
    const Source stride = f.operands.source(instruction[2], ptx::Type::u32);
    made.has_stride = true;
    made.stride = stride.slot.offset;
    made.stride_uniform = stride.uniform;
  }
  made.scratch = f.frame.lanes(sizeof(std::uint64_t)).offset;
  part->instruction = f.code.instruction();
  part->bytes = static_cast<std::uint8_t>(matrix_bits(made.type) / fragment_byte_bits);
  made.part = *part;
  f.code.note({.kind = loads ? AccessKind::load : AccessKind::store,
               .bytes = part->bytes,
               .place = static_cast<AddressKind>(part->kind)});
  f.code.emit(loads ? matrix_ops::load_fragment : matrix_ops::store_fragment).aux = &made;
  return true;
}

}  // namespace demarc::emulate
