// Matrix products of a warpgroup: wgmma.
#include "ops/warpgroup.hpp"
#include "lower/instructions.hpp"
#include "lower/matrix_words.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr unsigned warpgroup_rows = 64;
constexpr unsigned fragment_registers = 4;

bool is_of_16_bits(MatrixType type) {
  return type == MatrixType::f16 || type == MatrixType::bf16;
}

bool set_types(const InstructionView& instruction, WarpgroupDetails& made) {
  const auto& types = instruction.words().types;
  const auto shape = matrix_shape(instruction.words());
  if (types.size() != 3 || !shape || shape->m != warpgroup_rows) return false;
  const auto d = matrix_type(types[0]);
  const auto a = matrix_type(types[1]);
  const auto b = matrix_type(types[2]);
  if (!d || !a || !b || !is_warpgroup_shape(*a, shape->n, shape->k)) return false;
  made.size = {.m = WarpgroupDetails::warp_rows, .n = shape->n, .k = shape->k};
  made.types.d = *d;
  made.types.a = *a;
  made.types.b = *b;
  made.types.c = *d;
  return set_operation(instruction, made.types);
}

// An immediate that is one of two.
std::optional<bool> is_second(const ptx::Operand& operand, std::int64_t first,
                              std::int64_t second) {
  if (operand.kind != OperandKind::immediate) return std::nullopt;
  const auto value = static_cast<std::int64_t>(operand.value);
  if (value != first && value != second) return std::nullopt;
  return value == second;
}

// Signs of floating-point operands, and of those of 16 bits how they lie in memory.
bool set_immediates(const InstructionView& instruction, WarpgroupDetails& made) {
  constexpr std::size_t first = 4;
  std::vector<std::pair<bool*, bool>> wanted;  // and whether it is a sign
  if (is_floating_matrix(made.types.a)) wanted = {{&made.a.negated, true}, {&made.b.negated, true}};
  if (is_of_16_bits(made.types.a)) {
    if (made.a.in_memory) wanted.emplace_back(&made.a.along_rows, false);
    wanted.emplace_back(&made.b.along_rows, false);
  }
  if (instruction.operands().size() != first + wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [target, sign] = wanted[i];
    const auto second = is_second(instruction[first + i], sign ? 1 : 0, sign ? -1 : 1);
    if (!second) return false;
    *target = *second;
  }
  return true;
}

bool set_descriptor(FunctionContext& f, const ptx::Operand& operand, WarpgroupOperand& made) {
  const Source source = f.operands.source(operand, Type::b64);
  made.descriptor = source.slot.offset;
  made.uniform = source.uniform;
  return !f.code.failed();
}

bool set_a(FunctionContext& f, const InstructionView& instruction, WarpgroupDetails& made) {
  const ptx::Operand& a = instruction[1];
  made.a.in_memory = a.kind != OperandKind::vector;
  if (made.a.in_memory) return set_descriptor(f, a, made.a);
  const FragmentRegisters wanted{.count = fragment_registers, .type = made.types.a};
  const auto fragment = fragment_lanes(f, instruction, a, wanted);
  if (fragment) made.a.fragment = fragment_of(*fragment, wanted);
  return fragment.has_value();
}

bool set_d(FunctionContext& f, const InstructionView& instruction, WarpgroupDetails& made) {
  const auto parts = instruction.elements(instruction[0]);
  const unsigned elements = warpgroup_rows * made.size.n / (4 * warp_size);
  if (parts.size() != registers_for(elements, made.types.d)) return false;
  made.registers = static_cast<unsigned>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Register d = f.operands.destination(parts[i], register_type(made.types.d));
    if (f.code.failed() || d.uniform) return false;
    made.d[i] = d.slot.offset;
  }
  return true;
}

bool lower_product(FunctionContext& f, const InstructionView& instruction) {
  auto& made = f.code.details<WarpgroupDetails>();
  if (instruction.operands().size() < 4 || !set_types(instruction, made) ||
      !set_a(f, instruction, made) || !set_descriptor(f, instruction[2], made.b) ||
      !set_immediates(instruction, made) || !set_d(f, instruction, made)) {
    return false;
  }
  const Source scale = f.operands.source(instruction[3], Type::pred);
  made.scale = scale.slot.offset;
  made.scale_negated = scale.negated;
  made.steps = product_steps(*f.kernel.request.tables.matrix, made.types, ProductLayout::warpgroup,
                             made.size.k);
  made.size.k = depth_of(made.size.k, made.types.a);
  made.scratch = f.frame.lanes(sizeof(std::uint64_t)).offset;
  made.part = f.operands.at_slot(made.scratch, ptx::StateSpace::shared);
  made.part.instruction = f.code.instruction();
  made.part.bytes = 16;
  f.code.note({.kind = AccessKind::load, .bytes = made.part.bytes, .place = AddressKind::shared});
  f.code.emit(matrix_ops::multiply_warpgroup).aux = &made;
  return true;
}

}  // namespace

bool lower_warpgroup(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::wgmma_mma_async:
      return lower_product(f, instruction);
    // Products are made when they are issued.
    case Opcode::wgmma_fence:
    case Opcode::wgmma_commit_group:
    case Opcode::wgmma_wait_group:
      f.code.emit(control::nothing);
      return true;
    default:
      return false;
  }
}

}  // namespace demarc::emulate
