// Lowers a function block by block, in the order of the text.
#include "lower/function.hpp"

#include <fmt/format.h>

#include "lower/instructions.hpp"
#include "lower/register_parameters.hpp"
#include "lower/tracking.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;

namespace {

// What traces and findings say about the instructions of a function.
void list_instructions(const ptx::Module& module, const ptx::Function& function,
                       const ptx::Cfg& cfg, std::vector<CodeInstruction>& list) {
  const std::size_t start = list.size();
  for (const ptx::Instruction& instruction : function.body.instructions) {
    CodeInstruction code;
    code.trace.function = std::string(function.name);
    code.trace.line = instruction.line;
    code.trace.text = std::string(module.text_of(instruction));
    code.trace.begins_block = false;
    code.source = module.source_position(function.body, instruction);
    list.push_back(std::move(code));
  }
  for (const ptx::BasicBlock& block : cfg.blocks())
    if (block.count > 0) list[start + block.first].trace.begins_block = true;
}

// Whether nothing runs behind the last instruction of the block.
bool ends_in_leaving(const ptx::BasicBlock& block, const ptx::Body& body) {
  if (block.count == 0) return false;
  const ptx::Instruction& last = body.instructions[block.first + block.count - 1];
  const bool leaves = last.opcode == Opcode::bra || last.opcode == Opcode::brx_idx ||
                      last.opcode == Opcode::ret || last.opcode == Opcode::exit ||
                      last.opcode == Opcode::trap;
  return leaves && last.predicate == ptx::no_index;
}

void leave_at_end(FunctionContext& f) {
  if (f.function.is_entry) {
    f.code.emit(control::exit_lanes);
    return;
  }
  give_results(f);
  f.code.emit(control::return_lanes);
}

// What follows in the text is what follows here, unless that block was left out.
void fall_through(FunctionContext& f, const ptx::Cfg& cfg, std::uint32_t block) {
  std::uint32_t next = block + 1;
  while (next < cfg.exit() && cfg.blocks()[next].count == 0 && !cfg.reachable(next)) ++next;
  if (!cfg.reachable(next) || next != block + 1) f.branches.jump(next);
}

void lower_block(FunctionContext& f, const ptx::Cfg& cfg, std::uint32_t block,
                 const std::vector<bool>& is_read) {
  const ptx::BasicBlock& basic = cfg.blocks()[block];
  f.branches.begin(block);
  f.code.begin(basic.count > 0 ? basic.first : 0);
  if (f.branches.is_join(block)) f.code.emit(control::join);
  for (std::uint32_t i = basic.first; i < basic.first + basic.count; ++i) {
    const InstructionView instruction(f.kernel.module(), f.function.body, i);
    lower_instruction(f, instruction);
    if (!f.code.failed()) track(f, instruction, is_read);
  }
  f.code.close_run();
  if (block == cfg.exit()) {
    leave_at_end(f);
  } else if (!ends_in_leaving(basic, f.function.body)) {
    fall_through(f, cfg, block);
  }
}

}  // namespace

void lower_function(const KernelContext& kernel, std::uint32_t index) {
  Program& program = kernel.program;
  const ptx::Function& function = kernel.functions[index];
  const ptx::Cfg cfg(function.body);
  const auto first = static_cast<std::uint32_t>(program.instructions.size());
  list_instructions(kernel.module(), function, cfg, program.instructions);
  program.functions[index].entry = static_cast<std::uint32_t>(program.code.size());

  Frame frame(kernel.module(), function, cfg, program.functions[index], kernel.refusals);
  Emitter code(program, first);
  Operands operands(kernel, index, frame, code);
  Branches branches(function.body, cfg, code);
  FunctionContext f{kernel, function, index, frame, code, operands, branches};
  if (!function.is_entry) take_parameters(f);
  program.tracked.resize(program.instructions.size());
  const std::vector<bool> is_read = read_registers(function);
  for (std::uint32_t block = 0; block < cfg.blocks().size(); ++block) {
    if (cfg.reachable(block)) lower_block(f, cfg, block, is_read);
  }
  branches.resolve();
  frame.finish(program.functions[index], kernel.refusals);
}

}  // namespace demarc::emulate
