// Emits branches, and fills in where they lead.
#include "lower/branches.hpp"

#include <utility>

#include "ops/control.hpp"

namespace demarc::emulate {

Branches::Branches(const ptx::Body& body, const ptx::Cfg& cfg, Emitter& code)
    : body_(body), cfg_(cfg), code_(code) {
  const auto blocks = cfg.blocks();
  start_.resize(blocks.size());
  joins_.resize(blocks.size());
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    if (!cfg.reachable(block) || blocks[block].count == 0) continue;
    // One that leads to what follows it anyway is a branch here, too.
    const ptx::Instruction& last = body.instructions[blocks[block].first + blocks[block].count - 1];
    const bool parts = last.opcode == ptx::Opcode::brx_idx ||
                       (last.opcode == ptx::Opcode::bra && last.predicate != ptx::no_index);
    if (!parts) continue;
    const std::uint32_t join = cfg.immediate_post_dominator(block);
    if (join != ptx::no_index && join != cfg.exit()) joins_[join] = true;
  }
}

void Branches::begin(std::uint32_t block) {
  start_[block] = code_.next();
}

std::uint32_t Branches::block_of_label(std::uint32_t label) const {
  const std::uint32_t at = body_.labels[label].instruction;
  return at < body_.instructions.size() ? cfg_.block_of(at) : cfg_.exit();
}

void Branches::jump(std::uint32_t block) {
  fixups_.push_back({.op = code_.next(), .to = block});
  code_.emit(control::jump);
}

MicroOp& Branches::branch(std::uint32_t from, std::uint32_t to) {
  fixups_.push_back({.op = code_.next(), .to = to, .from = from});
  return code_.emit(control::branch);
}

MicroOp& Branches::branch_index(std::uint32_t from, const std::vector<std::uint32_t>& to) {
  auto& targets = code_.details<std::vector<std::uint32_t>>();
  lists_.push_back({.targets = &targets, .blocks = to});
  fixups_.push_back({.op = code_.next(), .from = from});
  MicroOp& op = code_.emit(control::branch_index);
  op.aux = &targets;
  return op;
}

void Branches::resolve() {
  for (const Fixup& fixup : fixups_) {
    MicroOp& op = code_[fixup.op];
    if (fixup.to != ptx::no_index) op.target = start_of(fixup.to);
    if (fixup.from != ptx::no_index) op.join = join_of(fixup.from);
  }
  for (const ListFixup& list : lists_) {
    for (const std::uint32_t block : list.blocks) list.targets->push_back(start_of(block));
  }
}

std::uint32_t Branches::start_of(std::uint32_t block) const {
  return static_cast<std::uint32_t>(start_[block]);
}

std::uint32_t Branches::join_of(std::uint32_t from) const {
  const std::uint32_t join = cfg_.immediate_post_dominator(from);
  return join == ptx::no_index || join == cfg_.exit() ? no_join : start_of(join);
}

}  // namespace demarc::emulate
