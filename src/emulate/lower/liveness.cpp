// Backwards data flow over the basic blocks, one bit for each register.
#include "lower/liveness.hpp"

#include <cstdint>

#include "demarc/base/rounding.hpp"
#include "demarc/ptx/def_use.hpp"

namespace demarc::emulate {

namespace {

constexpr std::size_t word_bits = 64;

// A set of registers for each basic block.
class BlockSets {
 public:
  BlockSets(std::size_t blocks, std::size_t registers)
      : words_(ceil_div(registers, word_bits)), bits_(blocks * words_) {}

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::uint64_t& word(std::uint32_t block, std::size_t i) {
    return bits_[block * words_ + i];
  }
  void add(std::uint32_t block, std::uint32_t reg) { word(block, reg / word_bits) |= bit(reg); }
  [[nodiscard]] bool has(std::uint32_t block, std::uint32_t reg) {
    return (word(block, reg / word_bits) & bit(reg)) != 0;
  }

 private:
  [[nodiscard]] static std::uint64_t bit(std::uint32_t reg) {
    return std::uint64_t{1} << (reg % word_bits);
  }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// What a block reads before it writes it, and what it surely writes.
void collect(const ptx::Body& body, const ptx::Cfg& cfg, BlockSets& used, BlockSets& killed) {
  const auto blocks = cfg.blocks();
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (std::uint32_t i = blocks[b].first; i < blocks[b].first + blocks[b].count; ++i) {
      const ptx::Instruction& instruction = body.instructions[i];
      ptx::for_each_read(body, instruction, [&](std::uint32_t reg) {
        if (!killed.has(b, reg)) used.add(b, reg);
      });
      if (instruction.predicate != ptx::no_index) continue;
      ptx::for_each_written(body, instruction, [&](std::uint32_t reg) { killed.add(b, reg); });
    }
  }
}

}  // namespace

std::vector<bool> live_at_entry(const ptx::Body& body, const ptx::Cfg& cfg) {
  const auto blocks = cfg.blocks();
  BlockSets used(blocks.size(), body.register_count);
  BlockSets killed(blocks.size(), body.register_count);
  BlockSets live(blocks.size(), body.register_count);
  collect(body, cfg, used, killed);
  const auto order = cfg.reverse_post_order();
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t n = order.size(); n-- > 0;) {
      const std::uint32_t b = order[n];
      for (std::size_t i = 0; i < live.words(); ++i) {
        std::uint64_t leaving = 0;
        for (const std::uint32_t successor : blocks[b].successors)
          leaving |= live.word(successor, i);
        const std::uint64_t entering = used.word(b, i) | (leaving & ~killed.word(b, i));
        changed = changed || entering != live.word(b, i);
        live.word(b, i) = entering;
      }
    }
  }
  std::vector<bool> out(body.register_count);
  for (std::uint32_t reg = 0; reg < body.register_count; ++reg)
    out[reg] = live.has(cfg.entry(), reg);
  return out;
}

}  // namespace demarc::emulate
