// Loads and stores of elements of up to 8 bytes, and of vectors of these.
#include <algorithm>

#include "groups.hpp"
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

// Which load moves an element into a register: bytes of both.
struct LoadRow {
  std::uint32_t element;
  std::uint32_t reg;
  MemoryForm of_signed;
  MemoryForm of_unsigned;
};
constexpr std::array<LoadRow, 10> load_rows{{
    // clang-format off
    {1, 1, MemoryForm::u8_r8,   MemoryForm::u8_r8},
    {1, 2, MemoryForm::s8_r16,  MemoryForm::u8_r16},
    {1, 4, MemoryForm::s8_r32,  MemoryForm::u8_r32},
    {1, 8, MemoryForm::s8_r64,  MemoryForm::u8_r64},
    {2, 2, MemoryForm::u16_r16, MemoryForm::u16_r16},
    {2, 4, MemoryForm::s16_r32, MemoryForm::u16_r32},
    {2, 8, MemoryForm::s16_r64, MemoryForm::u16_r64},
    {4, 4, MemoryForm::u32_r32, MemoryForm::u32_r32},
    {4, 8, MemoryForm::s32_r64, MemoryForm::u32_r64},
    {8, 8, MemoryForm::u64_r64, MemoryForm::u64_r64},
    // clang-format on
}};

// Null: the register is too narrow.
Handler load_handler(const HandlerTables& tables, Type element, std::uint32_t width) {
  for (const LoadRow& row : load_rows) {
    if (row.element != ptx::byte_size(element) || row.reg != width) continue;
    const MemoryForm form = is_signed(element) ? row.of_signed : row.of_unsigned;
    return tables.memory->load[static_cast<std::size_t>(form)];
  }
  return nullptr;
}

// By the bytes of an element.
Handler store_handler(const HandlerTables& tables, std::uint32_t bytes) {
  const unsigned row = bytes == 1 ? 0 : (bytes == 2 ? 1 : (bytes == 4 ? 2 : 3));
  return tables.memory->store[row];
}

bool is_element(Type type) {
  const std::uint32_t bytes = ptx::byte_size(type);
  return type != Type::pred && bytes > 0 && bytes <= 8;
}

// The access of a load or store, without its handler and its registers.
std::optional<MicroOp> element_access(FunctionContext& f, const InstructionView& instruction,
                                      const ptx::Operand& place) {
  auto op = f.operands.address(place, instruction.words().space);
  if (!op) return std::nullopt;
  op->bytes = static_cast<std::uint8_t>(ptx::byte_size(instruction.type()));
  op->count = instruction.words().vector_width;
  if (instruction.has_any({"volatile", "relaxed", "acquire", "release", "mmio"}))
    op->flags |= memory_strong;
  note_order(f, instruction, *op);
  return op;
}

void emit_access(FunctionContext& f, AccessKind kind, const MicroOp& op) {
  f.code.note({.kind = kind,
               .bytes = std::uint32_t{op.bytes} * op.count,
               .place = static_cast<AddressKind>(op.kind)});
  f.code.emit(op);
}

// A load that other threads' stores reach may be one that waits for such a store.
void emit_poll(FunctionContext& f, const InstructionView& instruction, const MicroOp& load,
               const Register& polled) {
  if (polled.width == 0) return;
  MicroOp& op = f.code.emit(control::poll);
  op.a = polled.slot.offset;
  op.width = polled.width;
  op.d = f.frame.uniform(sizeof(std::uint64_t)).slot.offset;
  note_polls(f, instruction, static_cast<AddressKind>(load.kind));
}

// The registers of a vector that is loaded. Empty: not all of one width, or uniform.
struct LoadedVector {
  VectorDetails slots;
  std::uint32_t width = 0;  // bytes of the registers; those of an element where all are thrown away
};

std::optional<LoadedVector> loaded_vector(FunctionContext& f, const InstructionView& instruction) {
  const auto parts = instruction.children(instruction[0]);
  if (parts.size() != instruction.words().vector_width) return std::nullopt;
  LoadedVector out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == OperandKind::sink) {
      out.slots.slots[i] = VectorDetails::sink;
      continue;
    }
    const Register d = f.operands.any_destination(parts[i]);
    if (d.uniform || (out.width != 0 && out.width != d.width)) return std::nullopt;
    out.width = d.width;
    out.slots.slots[i] = d.slot.offset;
  }
  if (out.width == 0) out.width = ptx::byte_size(instruction.type());
  return out;
}

// Puts the elements of a vector that is stored into `op`.
bool store_vector(FunctionContext& f, const InstructionView& instruction, MicroOp& op) {
  if (instruction[1].kind != OperandKind::vector) return false;
  const auto parts = instruction.children(instruction[1]);
  if (parts.size() != instruction.words().vector_width) return false;
  auto& made = f.code.details<VectorDetails>();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Source part = f.operands.any_source(parts[i], instruction.type());
    if (!part.uniform) op.width = part.width;
    made.slots[i] = part.slot.offset;
    made.uniform[i] = part.uniform ? 1 : 0;
  }
  op.aux = &made;
  return true;
}

bool store_scalar(FunctionContext& f, const InstructionView& instruction, MicroOp& op) {
  const Source value = f.operands.any_source(instruction.sole(instruction[1]), instruction.type());
  if (f.code.failed() || value.width == 0) return false;
  if (!value.uniform) op.width = value.width;
  op.b = value.slot.offset;
  if (value.uniform) op.uniform |= uniform_b;
  return true;
}

}  // namespace

void note_order(FunctionContext& f, const InstructionView& instruction, MicroOp& op) {
  if (instruction.has_any({"acquire", "acq_rel"})) op.flags |= memory_acquires;
  if (instruction.has_any({"release", "acq_rel"})) op.flags |= memory_releases;
  if ((op.flags & (memory_acquires | memory_releases)) != 0) f.kernel.program.orders_warps = true;
}

bool lower_load(FunctionContext& f, const InstructionView& instruction) {
  const bool loads = instruction.opcode() == Opcode::ld || instruction.opcode() == Opcode::ldu;
  const Type type = instruction.type();
  if (!loads || !is_element(type)) return false;
  auto op = element_access(f, instruction, instruction[1]);
  if (!op) return false;
  const HandlerTables& tables = f.kernel.request.tables;
  Register polled;
  if (instruction.words().vector_width > 1) {
    if (instruction[0].kind != OperandKind::vector) return false;
    const auto vector = loaded_vector(f, instruction);
    if (!vector) return false;
    auto& made = f.code.details<VectorDetails>();
    made = vector->slots;
    op->aux = &made;
    op->run = load_handler(tables, type, vector->width);
    const auto* const kept =
        std::find_if(std::begin(made.slots), std::begin(made.slots) + op->count,
                     [](std::uint32_t slot) { return slot != VectorDetails::sink; });
    if (kept != std::begin(made.slots) + op->count)
      polled = {.slot = {*kept}, .width = static_cast<std::uint8_t>(vector->width)};
  } else {
    const Register d = f.operands.any_destination(instruction.sole(instruction[0]));
    op->d = d.slot.offset;
    if (d.uniform) op->uniform |= uniform_d;
    op->run = load_handler(tables, type, d.width);
    if (!d.uniform) polled = d;
  }
  if (op->run == nullptr) return false;
  emit_access(f, AccessKind::load, *op);
  if ((op->flags & memory_strong) != 0) emit_poll(f, instruction, *op, polled);
  return true;
}

// st.async takes words of 32 and 64 bits.
bool has_async_width(Type type) {
  return ptx::byte_size(type) == 4 || ptx::byte_size(type) == 8;
}

// st [place], value and st.async [place], value, [barrier], which is done when it is issued.
bool lower_store(FunctionContext& f, const InstructionView& instruction) {
  const bool async = instruction.opcode() == Opcode::st_async;
  if (instruction.opcode() != Opcode::st && !async) return false;
  const Type type = instruction.type();
  if (!is_element(type) || (async && !has_async_width(type))) return false;
  auto op = element_access(f, instruction, instruction[0]);
  if (!op) return false;
  op->width = op->bytes;
  const bool covered = instruction.words().vector_width > 1 ? store_vector(f, instruction, *op)
                                                            : store_scalar(f, instruction, *op);
  if (!covered || op->width < op->bytes) return false;
  op->run = store_handler(f.kernel.request.tables, op->bytes);
  op->flags |= async ? memory_unraced : memory_plain_store;
  emit_access(f, AccessKind::store, *op);
  if (!async) return true;
  return instruction.operands().size() == 3 &&
         complete_transfer(f, instruction, instruction[2], std::uint32_t{op->bytes} * op->count);
}

}  // namespace demarc::emulate
