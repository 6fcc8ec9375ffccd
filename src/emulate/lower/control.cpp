#include "ops/control.hpp"
#include "lower/lower.hpp"
#include "ops/device_calls.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;

bool Lowering::lower_control(const ptx::Instruction& instruction) {
  const bool conditional = instruction.predicate != ptx::no_index;
  const std::uint8_t negated =
      instruction.predicate_negated ? control::flag_negated : std::uint8_t{0};
  const std::uint32_t predicate = conditional ? registers_[instruction.predicate].slot : 0;
  switch (instruction.opcode) {
    case Opcode::bra:
      lower_branch(instruction);
      return true;
    case Opcode::ret:
    case Opcode::exit: {
      if (instruction.opcode == Opcode::ret) copy_register_results();
      const bool leaves_kernel = function_->is_entry || instruction.opcode == Opcode::exit;
      MicroOp& op = emit(leaves_kernel ? control::exit_lanes : control::return_lanes);
      op.a = predicate;
      op.flags = conditional ? static_cast<std::uint8_t>(negated | control::flag_conditional)
                             : std::uint8_t{0};
      return true;
    }
    case Opcode::brx_idx: {
      if (conditional) return false;
      const auto list = operands(instruction);
      const Source index = source(list[0], ptx::Type::u32);
      auto& targets = details<std::vector<std::uint32_t>>();
      std::vector<std::uint32_t> blocks;
      if (list[1].base != ptx::Base::targets) return false;
      for (const std::uint32_t label : body_->targets[list[1].index].targets) {
        const std::uint32_t at = body_->labels[label].instruction;
        blocks.push_back(at < body_->instructions.size() ? cfg_->block_of(at) : cfg_->exit());
      }
      lists_.emplace_back(&targets, std::move(blocks));
      const std::uint32_t block = cfg_->block_of(instruction_ - first_instruction_);
      fixups_.push_back(
          {program_->code.size(), ptx::no_index, cfg_->immediate_post_dominator(block)});
      MicroOp& op = emit(control::branch_index);
      op.a = index.slot;
      op.uniform = index.uniform ? uniform_a : std::uint8_t{0};
      op.aux = &targets;
      return true;
    }
    default:
      break;
  }
  // Calls, barriers and traps that are guarded become branches around them.
  std::size_t around = 0;
  if (conditional) {
    around = program_->code.size();
    MicroOp& op = emit(control::branch);
    op.a = predicate;
    op.flags = negated ^ control::flag_negated;
  }
  bool covered = true;
  switch (instruction.opcode) {
    case Opcode::trap:
    case Opcode::brkpt:
      emit(control::trap);
      break;
    case Opcode::call:
      lower_call(instruction);
      break;
    default:
      lower_barrier(instruction);
      break;
  }
  covered = !failed_;
  if (conditional) {
    const auto join = static_cast<std::uint32_t>(program_->code.size());
    program_->code[around].target = join;
    program_->code[around].join = join;
    emit(control::join);
  }
  return covered;
}

void Lowering::lower_branch(const ptx::Instruction& instruction) {
  const ptx::Operand& target = operands(instruction)[0];
  if (target.base != ptx::Base::label) {
    failed_ = true;
    return;
  }
  const std::uint32_t at = body_->labels[target.index].instruction;
  const std::uint32_t block = at < body_->instructions.size() ? cfg_->block_of(at) : cfg_->exit();
  if (instruction.predicate == ptx::no_index) {
    fixups_.push_back({program_->code.size(), block, ptx::no_index});
    emit(control::jump);
    return;
  }
  const std::uint32_t here = cfg_->block_of(instruction_ - first_instruction_);
  fixups_.push_back({program_->code.size(), block, cfg_->immediate_post_dominator(here)});
  MicroOp& op = emit(control::branch);
  op.a = registers_[instruction.predicate].slot;
  op.flags = instruction.predicate_negated ? control::flag_negated : std::uint8_t{0};
}

void Lowering::lower_barrier(const ptx::Instruction& instruction) {
  const auto list = operands(instruction);
  enum class Kind { sync, arrive, reduce };
  Kind kind = Kind::sync;
  switch (instruction.opcode) {
    case Opcode::bar_warp_sync:
      emit(control::nothing);  // lanes run in step
      return;
    case Opcode::barrier_cluster_arrive:
    case Opcode::barrier_cluster_wait:
      unsupported(instruction, std::string(no_clusters));
      return;
    case Opcode::bar_arrive:
    case Opcode::bar_cta_arrive:
    case Opcode::barrier_arrive:
    case Opcode::barrier_cta_arrive:
      kind = Kind::arrive;
      break;
    case Opcode::bar_red:
    case Opcode::bar_cta_red:
    case Opcode::barrier_red:
    case Opcode::barrier_cta_red:
      kind = Kind::reduce;
      break;
    default:
      break;
  }
  const std::size_t skip = kind == Kind::reduce ? 1 : 0;
  const std::size_t inputs = list.size() - skip - (kind == Kind::reduce ? 1 : 0);
  const Source id = source(list[skip], ptx::Type::u32);
  Source count;
  if (inputs > 1) count = source(list[skip + 1], ptx::Type::u32);
  Source predicate;
  Register d;
  if (kind == Kind::reduce) {
    predicate = source(list.back(), ptx::Type::pred);
    d = destination(list[0]);
    if (d.uniform) failed_ = true;
  }
  MicroOp& op = emit(control::barrier);
  op.a = id.slot;
  op.b = count.slot;
  op.c = predicate.slot;
  op.d = d.slot;
  op.uniform =
      static_cast<std::uint8_t>((id.uniform ? uniform_a : 0) | (count.uniform ? uniform_b : 0));
  op.flags = static_cast<std::uint8_t>((inputs > 1 ? control::barrier_has_count : 0) |
                                       (kind == Kind::arrive ? control::barrier_arrive_only : 0) |
                                       (kind == Kind::reduce ? control::barrier_reduces : 0) |
                                       (predicate.negated ? control::barrier_negated : 0));
  op.width = has(instruction, "and") ? 1 : (has(instruction, "or") ? 2 : 0);
  program_->suspends = true;
}

void Lowering::lower_call(const ptx::Instruction& instruction) {
  const auto list = operands(instruction);
  std::vector<std::uint32_t> arguments;
  std::vector<std::uint32_t> results;
  std::size_t target = 0;
  // Registers and immediates (of functions with .reg parameters) pass through the frame, too.
  std::vector<std::pair<std::uint32_t, Register>> taken;  // from the frame, after the call
  const auto collect = [&](const ptx::Operand& group, std::vector<std::uint32_t>& into,
                           bool is_result) {
    for (const ptx::Operand& operand : body_->children(group)) {
      if (operand.kind == OperandKind::symbol && operand.base == ptx::Base::variable) {
        const auto at = frame_variables_.find(&body_->variables[operand.index]);
        if (at != frame_variables_.end()) {
          into.push_back(at->second.offset);
          continue;
        }
      }
      if (operand.kind != OperandKind::reg && operand.kind != OperandKind::immediate) {
        failed_ = true;
        return;
      }
      const std::uint32_t slot = take_slot(call_pitch * warp_size, 64);
      into.push_back(slot);
      if (is_result) {
        taken.emplace_back(slot, destination(operand));
      } else {
        const Source value = source(operand, ptx::Type::b64);
        copy_lanes({slot, call_pitch}, value.slot, value.width, value.uniform, value.width);
      }
    }
  };
  if (list[0].kind == OperandKind::list) {
    collect(list[0], results, true);
    target = 1;
  }
  if (target + 1 < list.size() && list[target + 1].kind == OperandKind::list)
    collect(list[target + 1], arguments, false);
  if (failed_ || target >= list.size()) {
    failed_ = true;
    return;
  }
  emit_call(instruction, list[target], std::move(arguments), std::move(results));
  for (const auto& [slot, reg] : taken) {
    if (reg.uniform || reg.width == 0 || reg.width > 8) failed_ = true;
    copy_lanes({reg.slot, reg.width}, slot, call_pitch, false, reg.width);
  }
}

void Lowering::emit_call(const ptx::Instruction& instruction, const ptx::Operand& callee,
                         std::vector<std::uint32_t> arguments, std::vector<std::uint32_t> results) {
  program_->calls = true;
  if (callee.kind == OperandKind::reg) {
    auto& made = details<CallDetails>();
    made.arguments = std::move(arguments);
    made.results = std::move(results);
    const Source address = source(callee, ptx::Type::u64);
    const auto at = static_cast<std::uint32_t>(program_->code.size());
    MicroOp& op = emit(control::call_indirect);
    op.a = address.slot;
    op.uniform = address.uniform ? uniform_a : std::uint8_t{0};
    op.aux = &made;
    op.join = at + 1;
    emit(control::join);
    return;
  }
  if (callee.base != ptx::Base::function) {
    failed_ = true;
    return;
  }
  const ptx::Function& named = request_.module->functions[callee.index];
  const std::uint32_t definition = named.has_body ? callee.index : named.definition;
  if (definition == ptx::no_index) {
    if (!lower_device_call(instruction, named.name, arguments, results)) {
      unsupported(instruction,
                  fmt::format("function '{}' is declared but has no body", named.name));
    }
    return;
  }
  auto& made = details<CallDetails>();
  made.arguments = std::move(arguments);
  made.results = std::move(results);
  made.function = function_index(request_.module->functions[definition]);
  MicroOp& op = emit(control::call);
  op.aux = &made;
}

// d: frame offset and bytes a lane.
void Lowering::copy_lanes(std::pair<std::uint32_t, std::uint32_t> d, std::uint32_t from,
                          std::uint32_t pitch, bool uniform, std::uint32_t bytes) {
  MicroOp& op = emit(memory_ops::copy_lanes);
  op.d = d.first;
  op.b = d.second;
  op.a = from;
  op.c = pitch;
  op.uniform = uniform ? uniform_a : std::uint8_t{0};
  op.bytes = static_cast<std::uint8_t>(bytes);
  if (bytes == 0 || bytes > 8) failed_ = true;
}

// The register that a .reg parameter or result of the function is.
const Lowering::Register* Lowering::register_parameter(const ptx::Variable& variable) const {
  if (variable.space != ptx::StateSpace::reg) return nullptr;
  for (const ptx::RegisterRange& range : body_->registers) {
    if (range.name == variable.name && !range.is_range) return &registers_[range.first];
  }
  return nullptr;
}

void Lowering::copy_register_parameters() {
  const CodeFunction& code = program_->functions[function_index_];
  for (std::size_t i = 0; i < function_->parameters.size(); ++i) {
    const Register* reg = register_parameter(function_->parameters[i]);
    if (reg == nullptr) continue;
    const FrameVariable place = code.parameters[i];
    copy_lanes({reg->slot, reg->width}, place.offset, place.bytes, false, reg->width);
  }
}

void Lowering::copy_register_results() {
  for (std::size_t i = 0; i < function_->results.size(); ++i) {
    const Register* reg = register_parameter(function_->results[i]);
    if (reg == nullptr) continue;
    const FrameVariable place = program_->functions[function_index_].results[i];
    copy_lanes({place.offset, place.bytes}, reg->slot, reg->width, reg->uniform, reg->width);
  }
}

// Functions that the driver provides.
bool Lowering::lower_device_call(const ptx::Instruction&, std::string_view name,
                                 const std::vector<std::uint32_t>& arguments,
                                 const std::vector<std::uint32_t>& results) {
  Handler handler = nullptr;
  if (name == "vprintf" && arguments.size() == 2) handler = device_calls::print;
  if (name == "malloc" && arguments.size() == 1 && results.size() == 1) {
    handler = device_calls::allocate;
    program_->allocates = true;
    program_->ordered = true;  // which block gets which address depends on the order
  }
  if (name == "free" && arguments.size() == 1) {
    handler = device_calls::release;
    program_->allocates = true;
    program_->ordered = true;
  }
  if (name == "__assertfail" && arguments.size() == 5) handler = device_calls::assertion;
  if (handler == nullptr) return false;
  auto& made = details<CallDetails>();
  made.arguments = arguments;
  made.results = results;
  MicroOp& op = emit(handler);
  op.aux = &made;
  return true;
}

}  // namespace demarc::emulate
