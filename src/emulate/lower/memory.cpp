#include <array>

#include "lower/lower.hpp"
#include "ops/control.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

AddressKind address_kind_of(ptx::StateSpace space) {
  switch (space) {
    case ptx::StateSpace::global:
      return AddressKind::global;
    case ptx::StateSpace::shared:
      return AddressKind::shared;
    case ptx::StateSpace::local:
      return AddressKind::local;
    case ptx::StateSpace::constant:
      return AddressKind::constant;
    case ptx::StateSpace::param:
      return AddressKind::param;
    default:
      return AddressKind::generic;
  }
}

MemorySpace memory_space_of(AddressKind kind) {
  switch (kind) {
    case AddressKind::shared:
      return MemorySpace::shared;
    case AddressKind::local:
      return MemorySpace::local;
    case AddressKind::constant:
      return MemorySpace::constant;
    case AddressKind::param:
    case AddressKind::frame:
      return MemorySpace::param;
    default:
      return MemorySpace::global;
  }
}

// Which load moves an element of `bytes` into a register of `width` bytes.
bool memory_form(std::uint32_t bytes, bool is_signed, std::uint32_t width, MemoryForm& form) {
  if (width < bytes) return false;
  switch (bytes * 16 + width) {
    case 1 * 16 + 1:
      form = MemoryForm::u8_r8;
      return true;
    case 1 * 16 + 2:
      form = is_signed ? MemoryForm::s8_r16 : MemoryForm::u8_r16;
      return true;
    case 1 * 16 + 4:
      form = is_signed ? MemoryForm::s8_r32 : MemoryForm::u8_r32;
      return true;
    case 1 * 16 + 8:
      form = is_signed ? MemoryForm::s8_r64 : MemoryForm::u8_r64;
      return true;
    case 2 * 16 + 2:
      form = MemoryForm::u16_r16;
      return true;
    case 2 * 16 + 4:
      form = is_signed ? MemoryForm::s16_r32 : MemoryForm::u16_r32;
      return true;
    case 2 * 16 + 8:
      form = is_signed ? MemoryForm::s16_r64 : MemoryForm::u16_r64;
      return true;
    case 4 * 16 + 4:
      form = MemoryForm::u32_r32;
      return true;
    case 4 * 16 + 8:
      form = is_signed ? MemoryForm::s32_r64 : MemoryForm::u32_r64;
      return true;
    case 8 * 16 + 8:
      form = MemoryForm::u64_r64;
      return true;
    default:
      return false;
  }
}

}  // namespace

void Lowering::note_access(AccessKind kind, std::uint32_t bytes, AddressKind place) {
  TraceInstruction& trace = program_->instructions[instruction_].trace;
  trace.kind = kind;
  trace.bytes = bytes;
  trace.space = memory_space_of(place);
  if (place == AddressKind::shared || place == AddressKind::generic) {
    program_->shared_granule = std::min(program_->shared_granule, bytes);
  }
}

// Fills in what says where the access goes: kind, a, imm, c and join.
bool Lowering::address(const ptx::Operand& operand, ptx::StateSpace space, MicroOp& op) {
  AddressKind kind = address_kind_of(space);
  if (operand.kind != OperandKind::address) return false;
  const bool variable_base = operand.base == ptx::Base::variable ||
                             operand.base == ptx::Base::parameter ||
                             operand.base == ptx::Base::result;
  if (space == ptx::StateSpace::param && variable_base) {
    FrameVariable place;
    bool in_frame = true;
    const CodeFunction& code = program_->functions[function_index_];
    if (operand.base == ptx::Base::variable) {
      const auto at = frame_variables_.find(&body_->variables[operand.index]);
      if (at == frame_variables_.end()) return false;
      place = at->second;
    } else if (operand.base == ptx::Base::result) {
      place = code.results[operand.index];
    } else if (!function_->is_entry) {
      place = code.parameters[operand.index];
    } else {
      in_frame = false;
    }
    if (in_frame) {
      op.kind = static_cast<std::uint8_t>(AddressKind::frame);
      op.a = constant_slot(0);
      op.uniform = uniform_a;
      op.imm = operand.value;
      op.c = place.offset;
      op.join = place.bytes;
      return operand.offset() >= 0 && operand.value < place.bytes;
    }
  }
  if (operand.base == ptx::Base::reg) {
    const Register& reg = registers_[operand.index];
    if (reg.width != 4 && reg.width != 8) return false;
    op.a = reg.slot;
    op.uniform = reg.uniform ? uniform_a : std::uint8_t{0};
    op.flags = reg.width == 4 ? memory_narrow_address : std::uint8_t{0};
    op.imm = operand.value;
  } else if (operand.base == ptx::Base::none) {
    op.a = constant_slot(operand.value);
    op.uniform = uniform_a;
  } else {
    ptx::Operand symbol = operand;
    symbol.kind = OperandKind::symbol;
    const Source at = symbol_source(symbol);
    if (failed_) return false;
    op.a = at.slot;
    op.uniform = uniform_a;
    if (kind == AddressKind::generic && operand.base != ptx::Base::parameter) {
      // A named variable without a space is in its own.
      const ptx::Variable& variable = operand.base == ptx::Base::global
                                          ? request_.module->variables[operand.index]
                                          : body_->variables[operand.index];
      kind = address_kind_of(variable.space);
    }
  }
  op.kind = static_cast<std::uint8_t>(kind);
  op.join = program_->memory_sites++;
  return true;
}

bool Lowering::lower_memory(const ptx::Instruction& instruction) {
  switch (ptx::info(instruction.opcode).group) {
    case ptx::OpcodeGroup::load:
      return lower_load(instruction);
    case ptx::OpcodeGroup::store:
      return lower_store(instruction);
    case ptx::OpcodeGroup::atomic:
      return lower_atomic(instruction);
    case ptx::OpcodeGroup::async:
      return lower_async(instruction);
    case ptx::OpcodeGroup::mbarrier:
      return lower_mbarrier(instruction);
    default:
      return false;
  }
}

bool Lowering::lower_load(const ptx::Instruction& instruction) {
  if (instruction.opcode != Opcode::ld && instruction.opcode != Opcode::ldu) return false;
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const Type type = words.type();
  const std::uint32_t bytes = ptx::byte_size(type);
  if (type == Type::b128) return lower_wide_access(instruction, list[1], list[0], true);
  if (bytes == 0 || bytes > 8 || type == Type::pred) return false;
  const bool is_signed = ptx::info(type).kind == ptx::TypeKind::signed_;
  // Parameters of a kernel are known.
  MicroOp op;
  if (!address(list[1], words.space, op)) return false;
  op.instruction = instruction_;
  op.bytes = static_cast<std::uint8_t>(bytes);
  op.count = words.vector_width;
  if (has(instruction, "volatile") || has(instruction, "relaxed") || has(instruction, "acquire") ||
      has(instruction, "mmio")) {
    op.flags |= memory_volatile;
  }
  MemoryForm form{};
  const MemoryHandlers& handlers = *request_.tables.memory;
  if (words.vector_width > 1) {
    if (list[0].kind != OperandKind::vector) return false;
    auto& made = details<VectorDetails>();
    const auto parts = body_->children(list[0]);
    if (parts.size() != words.vector_width) return false;
    std::uint32_t width = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind == OperandKind::sink) {
        made.slots[i] = VectorDetails::sink;
        continue;
      }
      const Register d = destination(parts[i]);
      if (d.uniform || (width != 0 && width != d.width)) return false;
      width = d.width;
      made.slots[i] = d.slot;
    }
    if (width == 0) width = bytes;
    if (!memory_form(bytes, is_signed, width, form)) return false;
    op.aux = &made;
  } else {
    const Register d = destination(list[0]);
    if (!memory_form(bytes, is_signed, d.width, form)) return false;
    op.d = d.slot;
    if (d.uniform) op.uniform |= uniform_d;
  }
  op.run = handlers.load[static_cast<std::size_t>(form)];
  note_access(AccessKind::load, bytes * op.count, static_cast<AddressKind>(op.kind));
  program_->code.push_back(op);
  return true;
}

bool Lowering::lower_store(const ptx::Instruction& instruction) {
  if (instruction.opcode != Opcode::st) return false;
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  const Type type = words.type();
  const std::uint32_t bytes = ptx::byte_size(type);
  if (type == Type::b128) return lower_wide_access(instruction, list[0], list[1], false);
  if (bytes == 0 || bytes > 8 || type == Type::pred) return false;
  MicroOp op;
  if (!address(list[0], words.space, op)) return false;
  op.instruction = instruction_;
  op.bytes = static_cast<std::uint8_t>(bytes);
  op.count = words.vector_width;
  op.width = static_cast<std::uint8_t>(bytes);
  if (has(instruction, "volatile") || has(instruction, "relaxed") || has(instruction, "release") ||
      has(instruction, "mmio")) {
    op.flags |= memory_volatile;
  }
  if (words.vector_width > 1) {
    if (list[1].kind != OperandKind::vector) return false;
    const auto parts = body_->children(list[1]);
    if (parts.size() != words.vector_width) return false;
    auto& made = details<VectorDetails>();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Source part = source(parts[i], type);
      if (!part.uniform) op.width = part.width;
      made.slots[i] = part.slot;
      made.uniform[i] = part.uniform ? 1 : 0;
    }
    op.aux = &made;
  } else {
    const Source value = source(list[1], type);
    if (failed_ || value.width == 0) return false;
    if (!value.uniform) op.width = value.width;
    op.b = value.slot;
    if (value.uniform) op.uniform |= uniform_b;
  }
  if (op.width < bytes) return false;
  const unsigned row = bytes == 1 ? 0 : (bytes == 2 ? 1 : (bytes == 4 ? 2 : 3));
  op.run = request_.tables.memory->store[row];
  note_access(AccessKind::store, bytes * op.count, static_cast<AddressKind>(op.kind));
  program_->code.push_back(op);
  return true;
}

std::optional<AtomicType> atomic_type(Type type) {
  static constexpr std::array<std::pair<Type, AtomicType>, 13> types{
      {{Type::b32, AtomicType::b32},
       {Type::b64, AtomicType::b64},
       {Type::u32, AtomicType::u32},
       {Type::u64, AtomicType::u64},
       {Type::s32, AtomicType::s32},
       {Type::s64, AtomicType::s64},
       {Type::f16, AtomicType::f16},
       {Type::bf16, AtomicType::bf16},
       {Type::f16x2, AtomicType::f16x2},
       {Type::bf16x2, AtomicType::bf16x2},
       {Type::f32, AtomicType::f32},
       {Type::f64, AtomicType::f64},
       {Type::b16, AtomicType::b16}}};
  for (const auto& [ours, theirs] : types) {
    if (ours == type) return theirs;
  }
  return std::nullopt;
}

bool Lowering::lower_atomic(const ptx::Instruction& instruction) {
  const bool reduction = instruction.opcode == Opcode::red;
  if (!reduction && instruction.opcode != Opcode::atom) return false;
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  auto& made = details<AtomicDetails>();
  static constexpr std::array<std::pair<std::string_view, AtomicKind>, 10> kinds{
      {{"add", AtomicKind::add},
       {"min", AtomicKind::min},
       {"max", AtomicKind::max},
       {"inc", AtomicKind::inc},
       {"dec", AtomicKind::dec},
       {"exch", AtomicKind::exch},
       {"cas", AtomicKind::cas},
       {"and", AtomicKind::bit_and},
       {"or", AtomicKind::bit_or},
       {"xor", AtomicKind::bit_xor}}};
  bool found = false;
  for (const auto& [name, kind] : kinds) {
    if (!has(instruction, name)) continue;
    made.kind = kind;
    found = true;
  }
  const Type type = words.type();
  const auto known_type = atomic_type(type);
  if (!found || !known_type) return false;
  made.type = *known_type;
  const std::size_t at = reduction ? 0 : 1;
  MicroOp op;
  if (!address(list[at], words.space, op)) return false;
  const auto parts_of = [&](const ptx::Operand& operand) {
    return operand.kind == OperandKind::vector ? body_->children(operand) : std::span(&operand, 1);
  };
  const std::uint32_t bytes = ptx::byte_size(type);
  const auto values = parts_of(list[at + 1]);
  if (values.size() != words.vector_width || bytes == 0 || bytes > 8) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Source b = source(values[i], type);
    if (!b.uniform && b.width != bytes) return false;
    made.b[i] = b.slot;
    made.b_uniform[i] = b.uniform;
  }
  if (made.kind == AtomicKind::cas) {
    const Source c = source(list[at + 2], type);
    made.c = c.slot;
    made.c_uniform = c.uniform;
  }
  bool has_result = false;
  if (!reduction) {
    const auto results = parts_of(list[0]);
    if (list[0].kind != OperandKind::sink && results.size() != values.size()) return false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].kind == OperandKind::sink) continue;
      const Register d = destination(results[i]);
      if (d.uniform || d.width != bytes) return false;
      made.d[i] = d.slot;
      has_result = true;
    }
  }
  op.run = memory_ops::atomic;
  op.instruction = instruction_;
  op.bytes = static_cast<std::uint8_t>(bytes);
  op.count = words.vector_width;
  op.aux = &made;
  const auto place = static_cast<AddressKind>(op.kind);
  note_access(AccessKind::atomic, bytes * op.count, place);
  program_->code.push_back(op);
  if (place != AddressKind::shared) {
    const bool floating = ptx::info(type).kind == ptx::TypeKind::floating ||
                          ptx::info(type).kind == ptx::TypeKind::packed;
    const bool commutes = made.kind != AtomicKind::exch && made.kind != AtomicKind::cas &&
                          made.kind != AtomicKind::inc && made.kind != AtomicKind::dec &&
                          !(floating && made.kind == AtomicKind::add);
    if (has_result || !commutes) program_->ordered = true;
  }
  return true;
}

}  // namespace demarc::emulate
