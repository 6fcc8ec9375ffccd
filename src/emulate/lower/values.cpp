#include <algorithm>
#include <bit>
#include <cmath>

#include "lower/lower.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Operand;
using ptx::OperandKind;

LaneType lane_type(ptx::Type type) {
  switch (type) {
    case ptx::Type::pred:
      return LaneType::pred;
    case ptx::Type::b8:
      return LaneType::b8;
    case ptx::Type::b16:
      return LaneType::b16;
    case ptx::Type::b32:
      return LaneType::b32;
    case ptx::Type::b64:
      return LaneType::b64;
    case ptx::Type::u8:
      return LaneType::u8;
    case ptx::Type::u16:
      return LaneType::u16;
    case ptx::Type::u32:
      return LaneType::u32;
    case ptx::Type::u64:
      return LaneType::u64;
    case ptx::Type::s8:
      return LaneType::s8;
    case ptx::Type::s16:
      return LaneType::s16;
    case ptx::Type::s32:
      return LaneType::s32;
    case ptx::Type::s64:
      return LaneType::s64;
    case ptx::Type::f16:
      return LaneType::f16;
    case ptx::Type::bf16:
      return LaneType::bf16;
    case ptx::Type::tf32:
      return LaneType::tf32;
    case ptx::Type::f32:
      return LaneType::f32;
    case ptx::Type::f64:
      return LaneType::f64;
    case ptx::Type::f16x2:
      return LaneType::f16x2;
    case ptx::Type::bf16x2:
      return LaneType::bf16x2;
    case ptx::Type::u16x2:
      return LaneType::u16x2;
    case ptx::Type::s16x2:
      return LaneType::s16x2;
    case ptx::Type::e4m3x2:
      return LaneType::e4m3x2;
    case ptx::Type::e5m2x2:
      return LaneType::e5m2x2;
    case ptx::Type::f32x2:
      return LaneType::f32x2;
    default:
      return LaneType::none;
  }
}

namespace {

// The bits of an immediate as an operand of `type`.
std::uint64_t immediate_bits(const Operand& operand, ptx::Type type) {
  const bool written_as_f32 = operand.immediate == ptx::ImmediateKind::f32;
  const bool written_as_f64 = operand.immediate == ptx::ImmediateKind::f64;
  if (!written_as_f32 && !written_as_f64) {
    // An integer where a floating value is meant is its value, except for untyped bits.
    if (type == ptx::Type::f32)
      return std::bit_cast<std::uint32_t>(
          static_cast<float>(static_cast<std::int64_t>(operand.value)));
    if (type == ptx::Type::f64)
      return std::bit_cast<std::uint64_t>(
          static_cast<double>(static_cast<std::int64_t>(operand.value)));
    return operand.value;
  }
  const double value =
      written_as_f64
          ? std::bit_cast<double>(operand.value)
          : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.value)));
  switch (type) {
    case ptx::Type::f64:
      return written_as_f64 ? operand.value : std::bit_cast<std::uint64_t>(value);
    case ptx::Type::f32:
      return written_as_f32 ? operand.value
                            : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case ptx::Type::f16:
      return lane_from_double(value, LaneType::f16, Rounding::rn);
    case ptx::Type::bf16:
      return lane_from_double(value, LaneType::bf16, Rounding::rn);
    default:
      return operand.value;
  }
}

std::uint8_t bytes_of_type(ptx::Type type) {
  return type == ptx::Type::pred ? std::uint8_t{0}
                                 : static_cast<std::uint8_t>(ptx::byte_size(type));
}

}  // namespace

std::uint32_t Lowering::take_slot(std::uint32_t bytes, std::uint32_t alignment) {
  if (frame_used_ > most_frame_bytes || bytes > most_frame_bytes) {
    frame_full_ = true;
    return 0;
  }
  frame_used_ = (frame_used_ + alignment - 1) / alignment * alignment;
  const std::uint32_t slot = frame_used_;
  frame_used_ += bytes;
  return slot;
}

std::uint32_t Lowering::constant_slot(std::uint64_t value) {
  const auto known = constants_.find(value);
  if (known != constants_.end()) return known->second;
  const std::uint32_t slot = take_slot(8, 8);
  constants_.emplace(value, slot);
  return slot;
}

Source Lowering::source(const Operand& operand, ptx::Type type) {
  switch (operand.kind) {
    case OperandKind::reg: {
      const Register& reg = registers_[operand.index];
      return {reg.slot, reg.uniform, reg.width, operand.negated};
    }
    case OperandKind::immediate: {
      if (type == ptx::Type::pred) {
        // A predicate is a mask: all lanes or none.
        return {constant_slot((operand.value & 1U) != 0 ? full_mask : 0), false, 0,
                operand.negated};
      }
      const std::uint8_t width = std::max<std::uint8_t>(bytes_of_type(type), 1);
      return {constant_slot(immediate_bits(operand, type)), true, width, false};
    }
    case OperandKind::special:
      return special_source(operand);
    case OperandKind::symbol:
      return symbol_source(operand);
    default:
      failed_ = true;
      return {};
  }
}

Source Lowering::special_source(const Operand& operand) {
  using ptx::SpecialRegister;
  const auto which = static_cast<SpecialRegister>(operand.index);
  const auto axis = static_cast<unsigned>(operand.selector == ptx::Selector::y   ? 1
                                          : operand.selector == ptx::Selector::z ? 2
                                          : operand.selector == ptx::Selector::w ? 3
                                                                                 : 0);
  const auto constant = [&](std::uint64_t value, std::uint8_t width) {
    return Source{constant_slot(value), true, width, false};
  };
  switch (which) {
    case SpecialRegister::tid: {
      if (axis == 3) return constant(0, 4);
      const std::uint32_t slot = take_slot(4 * warp_size, 64);
      MicroOp& op = emit(control::read_tid);
      op.d = slot;
      op.imm = axis;
      return {slot, false, 4, false};
    }
    case SpecialRegister::ctaid:
    case SpecialRegister::clusterid: {
      if (axis == 3) return constant(0, 4);
      const std::uint32_t slot = take_slot(8, 8);
      MicroOp& op = emit(control::read_block_index);
      op.d = slot;
      op.imm = axis;
      return {slot, true, 4, false};
    }
    case SpecialRegister::ntid:
      return constant(axis == 3 ? 0 : request_.block[axis], 4);
    case SpecialRegister::nctaid:
    case SpecialRegister::nclusterid:
      return constant(axis == 3 ? 0 : request_.grid[axis], 4);
    case SpecialRegister::cluster_ctaid:
    case SpecialRegister::cluster_ctarank:
      return constant(0, 4);
    case SpecialRegister::cluster_nctaid:
    case SpecialRegister::cluster_nctarank:
      return constant(1, 4);
    case SpecialRegister::nwarpid:
      return constant(program_->warps(), 4);
    case SpecialRegister::nsmid:
      return constant(request_.sms, 4);
    case SpecialRegister::gridid:
      return constant(0, 8);
    case SpecialRegister::warp_sz:
      return constant(warp_size, 4);
    case SpecialRegister::dynamic_smem_size:
      return constant(request_.dynamic_shared_bytes, 4);
    case SpecialRegister::laneid:
    case SpecialRegister::warpid:
    case SpecialRegister::smid:
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_ge:
    case SpecialRegister::lanemask_gt:
    case SpecialRegister::clock:
    case SpecialRegister::clock_hi:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::globaltimer_lo:
    case SpecialRegister::globaltimer_hi: {
      const auto width = static_cast<std::uint8_t>(ptx::byte_size(ptx::info(which).type));
      const std::uint32_t slot = take_slot(std::uint32_t{width} * warp_size, 64);
      MicroOp& op = emit(control::read_special);
      op.d = slot;
      op.imm = operand.index;
      op.bytes = width;
      return {slot, false, width, false};
    }
    default:
      failed_ = true;
      return {};
  }
}

// The address of a thing in its own state space.
Source Lowering::symbol_source(const Operand& operand) {
  const std::uint64_t offset = operand.value;
  const auto constant = [&](std::uint64_t value) {
    return Source{constant_slot(value + offset), true, 8, false};
  };
  switch (operand.base) {
    case ptx::Base::global:
    case ptx::Base::variable: {
      const ptx::Variable& variable = operand.base == ptx::Base::global
                                          ? request_.module->variables[operand.index]
                                          : body_->variables[operand.index];
      if (const auto at = shared_offset_.find(&variable); at != shared_offset_.end())
        return constant(at->second);
      if (const auto at = local_offset_.find(&variable); at != local_offset_.end()) {
        const std::uint32_t slot = take_slot(8, 8);
        MicroOp& op = emit(control::local_address);
        op.d = slot;
        op.imm = at->second + offset;
        return {slot, true, 8, false};
      }
      if (const auto at = request_.memory->global_address.find(&variable);
          at != request_.memory->global_address.end()) {
        return constant(at->second);
      }
      if (const auto at = request_.memory->constant_offset.find(&variable);
          at != request_.memory->constant_offset.end()) {
        return constant(at->second);
      }
      break;
    }
    case ptx::Base::parameter:
      if (function_->is_entry) return constant(request_.parameter_offsets[operand.index]);
      break;
    case ptx::Base::function: {
      const ptx::Function& named = request_.module->functions[operand.index];
      const std::uint32_t definition = named.has_body ? operand.index : named.definition;
      if (definition == ptx::no_index) break;
      const std::uint32_t index = function_index(request_.module->functions[definition]);
      const std::uint64_t at = function_base + std::uint64_t{16} * index;
      program_->function_of_address[at] = index;
      return constant(at);
    }
    default:
      break;
  }
  failed_ = true;
  return {};
}

Lowering::Register Lowering::destination(const Operand& operand) {
  if (operand.kind == OperandKind::reg) return registers_[operand.index];
  if (operand.kind == OperandKind::sink) {
    Register thrown;
    thrown.width = 8;
    thrown.slot = take_slot(8 * warp_size, 64);
    return thrown;
  }
  failed_ = true;
  return {};
}

MicroOp& Lowering::emit(Handler handler) {
  MicroOp op;
  op.run = handler;
  op.instruction = instruction_;
  program_->code.push_back(op);
  return program_->code.back();
}

void Lowering::emit_alu(Alu alu, const Register& d, std::initializer_list<Source> sources) {
  const AluHandlers& handlers = request_.tables.alu[static_cast<std::size_t>(alu)];
  std::uint32_t slots[3] = {};
  std::uint8_t bits = 0;
  unsigned count = 0;
  for (const Source& s : sources) {
    slots[count] = s.slot;
    if (s.uniform) bits = static_cast<std::uint8_t>(bits | (1U << count));
    ++count;
  }
  MicroOp& op = emit(d.uniform ? handlers.uniform : handlers.vector[bits]);
  op.d = d.slot;
  op.a = slots[0];
  op.b = slots[1];
  op.c = slots[2];
  op.uniform = static_cast<std::uint8_t>(bits | (d.uniform ? uniform_d : 0));
  if (op.run == nullptr) failed_ = true;
}

LaneDetails& Lowering::emit_lanes(LaneFunction function, const Register& d,
                                  std::initializer_list<Source> sources) {
  auto& made = details<LaneDetails>();
  made.function = function;
  for (const Source& s : sources) {
    made.slot[made.sources] = s.slot;
    made.width[made.sources] = s.width;
    made.uniform[made.sources] = s.uniform ? 1 : 0;
    made.negated[made.sources] = s.negated;
    ++made.sources;
  }
  made.result_width = d.width;
  MicroOp& op = emit(run_lanes);
  op.d = d.slot;
  op.aux = &made;
  if (d.uniform) op.uniform = uniform_d;
  return made;
}

bool Lowering::has(const ptx::Instruction& instruction, std::string_view modifier) const {
  const auto& uses = mnemonic(instruction).modifiers;
  return std::any_of(uses.begin(), uses.end(),
                     [&](const ptx::ModifierUse& use) { return use.text == modifier; });
}

bool Lowering::fits(const ptx::Variable& variable, std::uint64_t bytes, std::uint64_t most,
                    std::string_view memory) {
  if (bytes <= most) return true;
  unsupported_.push_back(
      {variable.line, std::string(variable.name),
       fmt::format("{} bytes of {} memory, {} are the most", bytes, memory, most)});
  return false;
}

void Lowering::unsupported(const ptx::Instruction& instruction, std::string reason) {
  unsupported_.push_back(
      {instruction.line, std::string(request_.module->text_of(instruction)), std::move(reason)});
}

}  // namespace demarc::emulate
