#include <algorithm>

#include "demarc/gpu/launch.hpp"
#include "lower/lower.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;

namespace {

std::uint32_t flow_round_up(std::uint32_t value, std::uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::string source_position(const ptx::Module& module, const ptx::Body& body,
                            const ptx::Instruction& instruction) {
  if (instruction.location == ptx::no_index) return {};
  const ptx::Location& location = body.locations[instruction.location];
  for (const ptx::SourceFile& file : module.files) {
    if (file.number == location.file) return fmt::format("{}:{}", file.path, location.line);
  }
  return {};
}

Result<void> check_no_cluster(const ptx::Function& kernel, const std::string& source) {
  for (const ptx::PerformanceDirective& directive : kernel.directives) {
    const bool several = std::any_of(directive.values.begin(), directive.values.end(),
                                     [](std::uint64_t blocks) { return blocks > 1; });
    if (directive.name != "explicitcluster" &&
        (directive.name != "reqnctapercluster" || !several)) {
      continue;
    }
    return invalid_input(
        "{}:{}: kernel '{}' is launched in clusters of blocks (.{}), which the emulator does not "
        "cover",
        source, kernel.line, kernel.name, directive.name);
  }
  return {};
}

}  // namespace

Lowering::Lowering(const LowerRequest& request)
    : request_(request), program_(std::make_unique<Program>()) {}

Result<std::unique_ptr<Program>> Lowering::run() {
  DEMARC_CHECK(check_no_cluster(*request_.kernel, request_.source));
  Program& program = *program_;
  program.tables = request_.tables;
  program.kernel = std::string(request_.kernel->name);
  program.grid = request_.grid;
  program.block = request_.block;
  program.dynamic_shared_bytes = request_.dynamic_shared_bytes;
  program.parameters = request_.parameters;
  program.constants = request_.memory->constants;
  program.code.emplace_back();  // index 0 is no micro-op
  place_shared();
  function_index(*request_.kernel);
  for (std::uint32_t i = 0; i < queue_.size(); ++i) lower_function(i);
  if (!unsupported_.empty()) {
    std::string message;
    for (const Unsupported& entry : unsupported_) {
      if (message.size() > 2000) {
        message += "\n…";
        break;
      }
      message += fmt::format("{}{}:{}: {}: {}", message.empty() ? "" : "\n", request_.source,
                             entry.line, entry.reason, entry.text);
    }
    return invalid_input("{}", message);
  }
  program.shared_bytes += request_.dynamic_shared_bytes;
  return std::move(program_);
}

Result<std::unique_ptr<Program>> lower(const LowerRequest& request) {
  return Lowering(request).run();
}

std::uint32_t Lowering::function_index(const ptx::Function& function) {
  const auto at = std::find(queue_.begin(), queue_.end(), &function);
  if (at != queue_.end()) return static_cast<std::uint32_t>(at - queue_.begin());
  queue_.push_back(&function);
  CodeFunction code;
  code.name = std::string(function.name);
  // Parameters and results lie at the start of the frame, so that callers know where.
  std::uint32_t used = 0;
  if (!function.is_entry) {
    for (const auto* list : {&function.parameters, &function.results}) {
      for (const ptx::Variable& variable : *list) {
        const bool fit = fits(variable, used / warp_size + variable.byte_size(),
                              most_parameter_bytes, "parameter");
        const std::uint64_t bytes = fit ? variable.byte_size() : 0;
        FrameVariable place{used, flow_round_up(static_cast<std::uint32_t>(bytes), 16)};
        used += place.bytes * warp_size;
        (list == &function.parameters ? code.parameters : code.results).push_back(place);
      }
    }
  }
  code.frame_bytes = used;
  program_->functions.push_back(std::move(code));
  return static_cast<std::uint32_t>(queue_.size() - 1);
}

// Shared variables of the kernel and of everything it may call, then the arrays without a size: all
// of these are the dynamic shared memory behind the rest.
void Lowering::place_shared() {
  std::vector<const ptx::Function*> reachable{request_.kernel};
  std::vector<const ptx::Variable*> dynamic;
  const auto place = [&](const ptx::Variable& variable) {
    if (variable.space != ptx::StateSpace::shared || shared_offset_.count(&variable) != 0) return;
    if (variable.byte_size() == 0) {
      dynamic.push_back(&variable);
      return;
    }
    const std::uint64_t start =
        flow_round_up(program_->shared_bytes, std::max(variable.alignment(), 1U));
    if (!fits(variable, start + variable.byte_size(), gpu::most_shared_bytes, "shared")) return;
    shared_offset_[&variable] = static_cast<std::uint32_t>(start);
    program_->shared_bytes = static_cast<std::uint32_t>(start + variable.byte_size());
  };
  for (std::size_t i = 0; i < reachable.size(); ++i) {
    const ptx::Body& body = reachable[i]->body;
    for (const ptx::Variable& variable : body.variables) place(variable);
    for (const ptx::Operand& operand : body.operands) {
      if (operand.kind != OperandKind::symbol && operand.kind != OperandKind::address) continue;
      if (operand.base == ptx::Base::global) place(request_.module->variables[operand.index]);
      if (operand.base != ptx::Base::function) continue;
      const ptx::Function* named = &request_.module->functions[operand.index];
      if (!named->has_body && named->definition != ptx::no_index)
        named = &request_.module->functions[named->definition];
      if (named->has_body &&
          std::find(reachable.begin(), reachable.end(), named) == reachable.end())
        reachable.push_back(named);
    }
  }
  if (dynamic.empty() && request_.dynamic_shared_bytes == 0) return;
  program_->shared_bytes = flow_round_up(program_->shared_bytes, 16);
  for (const ptx::Variable* variable : dynamic) shared_offset_[variable] = program_->shared_bytes;
}

void Lowering::allocate_registers() {
  const UniformRegisters facts = find_uniform_registers(*request_.module, *function_, *cfg_);
  registers_.assign(body_->register_count, {});
  for (const ptx::RegisterRange& range : body_->registers) {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const std::uint32_t number = range.first + i;
      Register& reg = registers_[number];
      const auto bytes = range.type == ptx::Type::pred ? 0U : ptx::byte_size(range.type);
      reg.width = static_cast<std::uint8_t>(bytes);
      if (bytes == 0) {
        reg.slot = take_slot(4, 4);
      } else if (bytes <= 8 && facts.uniform[number]) {
        reg.uniform = true;
        reg.slot = take_slot(8, 8);
      } else {
        reg.slot = take_slot(bytes * warp_size, 64);
      }
      if (facts.zeroed[number]) {
        const std::uint32_t size = bytes == 0 ? 4 : (reg.uniform ? 8 : bytes * warp_size);
        program_->functions[function_index_].zeroed.push_back({reg.slot, size});
      }
    }
  }
}

void Lowering::lower_function(std::uint32_t index) {
  function_ = queue_[index];
  function_index_ = index;
  body_ = &function_->body;
  const ptx::Cfg cfg(*body_);
  cfg_ = &cfg;
  constants_.clear();
  frame_variables_.clear();
  local_offset_.clear();
  fixups_.clear();
  lists_.clear();
  frame_used_ = program_->functions[index].frame_bytes;
  // Uniform slots and predicates first: they stay together in the cache. Registers are allocated in
  // order, the vector slots aligned; constants follow as they come.
  allocate_registers();

  std::uint32_t local = 0;
  for (const ptx::Variable& variable : body_->variables) {
    const bool local_space = variable.space == ptx::StateSpace::local;
    const std::uint64_t most = local_space ? most_local_bytes : most_parameter_bytes;
    const std::uint64_t wanted = variable.byte_size() + (local_space ? local : 0);
    if ((local_space || variable.space == ptx::StateSpace::param) &&
        !fits(variable, wanted, most, local_space ? "local" : "parameter")) {
      continue;
    }
    const auto bytes = static_cast<std::uint32_t>(variable.byte_size());
    switch (variable.space) {
      case ptx::StateSpace::local:
        local = flow_round_up(local, std::max(variable.alignment(), 1U));
        local_offset_[&variable] = local;
        local += bytes;
        break;
      case ptx::StateSpace::param: {
        const std::uint32_t size = flow_round_up(std::max(bytes, 1U), 16);
        frame_variables_[&variable] = {take_slot(size * warp_size, 64), size};
        break;
      }
      default:
        break;
    }
  }
  program_->functions[index].local_bytes = local;

  first_instruction_ = static_cast<std::uint32_t>(program_->instructions.size());
  for (const ptx::Instruction& instruction : body_->instructions) {
    CodeInstruction code;
    code.trace.function = std::string(function_->name);
    code.trace.line = instruction.line;
    code.trace.text = std::string(request_.module->text_of(instruction));
    code.source = source_position(*request_.module, *body_, instruction);
    program_->instructions.push_back(std::move(code));
  }

  const auto blocks = cfg.blocks();
  joins_.assign(blocks.size(), false);
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    if (!cfg.reachable(block) || blocks[block].successors.size() < 2) continue;
    const std::uint32_t join = cfg.immediate_post_dominator(block);
    if (join != ptx::no_index && join != cfg.exit()) joins_[join] = true;
  }
  block_start_.assign(blocks.size(), 0);
  program_->functions[index].entry = static_cast<std::uint32_t>(program_->code.size());
  failed_ = false;
  instruction_ = first_instruction_;
  if (!function_->is_entry) copy_register_parameters();
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    if (cfg.reachable(block)) lower_block(block);
  }
  resolve_targets();
  finish_function();
}

void Lowering::lower_block(std::uint32_t block) {
  const ptx::BasicBlock& basic = cfg_->blocks()[block];
  block_start_[block] = static_cast<std::uint32_t>(program_->code.size());
  header_ = 0;
  instruction_ = first_instruction_ + (basic.count > 0 ? basic.first : 0);
  if (joins_[block]) emit(control::join);
  for (std::uint32_t i = 0; i < basic.count; ++i) lower_instruction(basic.first + i);
  close_run();
  if (block == cfg_->exit()) {
    if (!function_->is_entry) copy_register_results();
    emit(function_->is_entry ? control::exit_lanes : control::return_lanes);
    return;
  }
  // What follows in the text is what follows here, unless that block was left out.
  if (basic.count > 0) {
    const ptx::Instruction& last = body_->instructions[basic.first + basic.count - 1];
    const bool leaves =
        (last.opcode == Opcode::bra || last.opcode == Opcode::ret || last.opcode == Opcode::exit ||
         last.opcode == Opcode::brx_idx || last.opcode == Opcode::trap) &&
        last.predicate == ptx::no_index;
    if (leaves) return;
  }
  std::uint32_t next = block + 1;
  while (next < cfg_->exit() && cfg_->blocks()[next].count == 0 && !cfg_->reachable(next)) ++next;
  if (!cfg_->reachable(next) || next != block + 1) {
    fixups_.push_back({program_->code.size(), next, ptx::no_index});
    emit(control::jump);
  }
}

void Lowering::begin_run(std::uint32_t instruction) {
  if (header_ == 0) {
    header_ = program_->code.size();
    run_count_ = 0;
    const std::uint32_t before = instruction_;
    instruction_ = instruction;
    emit(request_.tables.header);
    instruction_ = before;
  }
  ++run_count_;
  program_->code[header_].imm = run_count_;
  program_->longest_run = std::max(program_->longest_run, run_count_);
}

void Lowering::close_run() {
  header_ = 0;
}

void Lowering::lower_instruction(std::uint32_t index) {
  const ptx::Instruction& instruction = body_->instructions[index];
  instruction_ = first_instruction_ + index;
  failed_ = false;
  if (!mnemonic(instruction).understood || instruction.opcode == Opcode::unknown) {
    unsupported(instruction, "an instruction the emulator does not cover");
    return;
  }
  note_approximation(instruction);
  const ptx::OpcodeGroup group = ptx::info(instruction.opcode).group;
  const bool flow = group == ptx::OpcodeGroup::branch || group == ptx::OpcodeGroup::exit ||
                    group == ptx::OpcodeGroup::call || group == ptx::OpcodeGroup::barrier ||
                    instruction.opcode == Opcode::brkpt;
  if (flow) {
    begin_run(instruction_);
    if (!lower_control(instruction) || failed_)
      unsupported(instruction, "a form of this instruction the emulator does not cover");
    close_run();
    return;
  }
  const bool guarded = instruction.predicate != ptx::no_index;
  std::size_t guard = 0;
  if (guarded) {
    close_run();
    guard = program_->code.size();
    MicroOp& op = emit(control::guard);
    op.a = registers_[instruction.predicate].slot;
    op.flags = instruction.predicate_negated ? control::flag_negated : std::uint8_t{0};
  } else {
    begin_run(instruction_);
  }
  const bool covered =
      lower_arithmetic(instruction) || lower_memory(instruction) || lower_warp(instruction);
  if (!covered || failed_)
    unsupported(instruction, "a form of this instruction the emulator does not cover");
  if (guarded) {
    emit(control::unguard);
    program_->code[guard].target = static_cast<std::uint32_t>(program_->code.size());
    // The guard skips the restore as well: it restores the mask itself.
  }
}

void Lowering::resolve_targets() {
  for (const Fixup& fixup : fixups_) {
    MicroOp& op = program_->code[fixup.op];
    if (fixup.target_block != ptx::no_index) op.target = block_start_[fixup.target_block];
    if (fixup.join_block != ptx::no_index) {
      op.join = fixup.join_block == cfg_->exit() ? no_join : block_start_[fixup.join_block];
    } else if (op.run == control::branch || op.run == control::branch_index) {
      if (op.join == 0) op.join = no_join;
    }
  }
  for (auto& [list, blocks] : lists_) {
    for (const std::uint32_t block : blocks) list->push_back(block_start_[block]);
  }
}

void Lowering::finish_function() {
  CodeFunction& code = program_->functions[function_index_];
  code.frame_bytes = flow_round_up(frame_used_, 64);
  if (frame_full_) {
    unsupported_.push_back(
        {function_->line, std::string(function_->name),
         fmt::format("registers and parameters of more than {} bytes a warp", most_frame_bytes)});
  }
  for (const auto& [value, slot] : constants_) code.constants.push_back({slot, value});
}

}  // namespace demarc::emulate
