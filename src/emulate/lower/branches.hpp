// Where the basic blocks of a function begin among the micro-ops, and what leads to them. Branches
// are written before the blocks behind them, so their targets are filled in at the end. Blocks have
// the numbers of ptx::Cfg.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"
#include "lower/emitter.hpp"

namespace demarc::emulate {

class Branches {
 public:
  Branches(const ptx::Body& body, const ptx::Cfg& cfg, Emitter& code);

  // The block begins with the micro-op that comes next.
  void begin(std::uint32_t block);
  // Whether lanes that took different ways meet at the start of the block.
  [[nodiscard]] bool is_join(std::uint32_t block) const { return joins_[block]; }
  [[nodiscard]] std::uint32_t block_of_label(std::uint32_t label) const;
  [[nodiscard]] std::uint32_t block_of(std::uint32_t instruction) const {
    return cfg_.block_of(instruction);
  }
  [[nodiscard]] bool is_in_loop(std::uint32_t block) const {
    return !cfg_.reducible() || cfg_.loop_of(block) != ptx::no_index;
  }

  // What is emitted, and where it leads. The lanes of a branch meet again where all ways from
  // block `from` do.
  void jump(std::uint32_t block);
  MicroOp& branch(std::uint32_t from, std::uint32_t to);
  MicroOp& branch_index(std::uint32_t from, const std::vector<std::uint32_t>& to);

  // To be called once, when all blocks have begun.
  void resolve();

 private:
  struct Fixup {
    OpIndex op{};
    std::uint32_t to = ptx::no_index;    // sets MicroOp::target
    std::uint32_t from = ptx::no_index;  // sets MicroOp::join
  };
  struct ListFixup {
    std::vector<std::uint32_t>* targets = nullptr;
    std::vector<std::uint32_t> blocks;
  };

  [[nodiscard]] std::uint32_t start_of(std::uint32_t block) const;
  [[nodiscard]] std::uint32_t join_of(std::uint32_t from) const;

  const ptx::Body& body_;
  const ptx::Cfg& cfg_;
  Emitter& code_;
  std::vector<OpIndex> start_;  // by block
  std::vector<bool> joins_;     // by block
  std::vector<Fixup> fixups_;
  std::vector<ListFixup> lists_;
};

}  // namespace demarc::emulate
