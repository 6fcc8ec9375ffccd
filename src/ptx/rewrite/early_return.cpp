// Finds barriers that only some threads of a block reach because the others have returned.
#include "rewrite/early_return.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"
#include "divergence.hpp"

namespace demarc::ptx {
namespace {

// The blocks that are reached from `work` by blocks that `passes` lets through.
std::vector<bool> reached(const Cfg& cfg, std::vector<std::uint32_t> work,
                          const std::function<bool(std::uint32_t)>& passes) {
  std::vector<bool> seen(cfg.blocks().size(), false);
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    if (seen[block] || !passes(block)) continue;
    seen[block] = true;
    const auto& successors = cfg.blocks()[block].successors;
    work.insert(work.end(), successors.begin(), successors.end());
  }
  return seen;
}

}  // namespace

bool is_block_barrier(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::bar_sync:
    case Opcode::bar_cta_sync:
    case Opcode::barrier_sync:
    case Opcode::barrier_cta_sync:
      return instruction.operand_count == 1;
    case Opcode::bar_red:
    case Opcode::bar_cta_red:
    case Opcode::barrier_red:
    case Opcode::barrier_cta_red:
      return instruction.operand_count == 3;
    default:
      return false;
  }
}

std::optional<std::uint32_t> barrier_after_return(const Module& module, const Function& kernel,
                                                  bool calls_have_barriers) {
  const Body& body = kernel.body;
  const Cfg cfg(body);
  std::vector<std::uint32_t> barrier_of(cfg.blocks().size(), no_index);  // the first of each block
  for (std::uint32_t i = 0; i < body.instructions.size(); ++i) {
    const Instruction& instruction = body.instructions[i];
    const bool calls = calls_have_barriers && instruction.opcode == Opcode::call;
    std::uint32_t& barrier = barrier_of[cfg.block_of(i)];
    if ((calls || is_block_barrier(instruction)) && barrier == no_index) barrier = i;
  }
  if (std::all_of(barrier_of.begin(), barrier_of.end(),
                  [](std::uint32_t barrier) { return barrier == no_index; })) {
    return std::nullopt;
  }
  const DefUse def_use(body, cfg);
  const Divergence divergence = find_divergence(module, body, cfg, def_use);
  for (std::uint32_t block = 0; block < cfg.blocks().size(); ++block) {
    const BasicBlock& here = cfg.blocks()[block];
    if (here.count == 0 || !divergence.divergent_branch[here.first + here.count - 1]) continue;
    const auto way_out =
        reached(cfg, here.successors, [&](std::uint32_t at) { return barrier_of[at] == no_index; });
    if (!way_out[cfg.exit()]) continue;
    const std::uint32_t join = cfg.immediate_post_dominator(block);
    const auto apart = reached(cfg, here.successors, [&](std::uint32_t at) { return at != join; });
    for (std::uint32_t at = 0; at < apart.size(); ++at) {
      if (apart[at] && barrier_of[at] != no_index) return barrier_of[at];
    }
  }
  return std::nullopt;
}

}  // namespace demarc::ptx
