// Finds where a warp waits for its accesses to global memory.
#include "predict/waits.hpp"

#include <set>

#include "demarc/ptx/def_use.hpp"

namespace demarc::locality {
namespace {

using ptx::OpcodeGroup;

// The loads of one basic block that are under way.
class LoadsUnderWay {
 public:
  explicit LoadsUnderWay(const ptx::Body& body) : body_(body) {}

  [[nodiscard]] bool feed(const ptx::Instruction& instruction) const {
    bool found = false;
    ptx::for_each_read(body_, instruction,
                       [&](std::uint32_t reg) { found = found || awaited_.contains(reg); });
    return found;
  }
  void add(const ptx::Instruction& instruction, Access& load) {
    last_ = &load;
    hold(instruction);
  }
  // Values computed from them wait as they do.
  void pass_on(const ptx::Instruction& instruction) {
    if (feed(instruction)) return hold(instruction);
    ptx::for_each_written(body_, instruction, [&](std::uint32_t reg) { awaited_.erase(reg); });
  }
  void wait() {
    if (last_ != nullptr) last_->waits = true;
    last_ = nullptr;
    awaited_.clear();
  }

 private:
  void hold(const ptx::Instruction& instruction) {
    ptx::for_each_written(body_, instruction, [&](std::uint32_t reg) { awaited_.insert(reg); });
  }

  const ptx::Body& body_;
  std::set<std::uint32_t> awaited_;  // registers
  Access* last_ = nullptr;
};

bool result_is_read(const ptx::Body& body, const ptx::DefUse& uses,
                    const ptx::Instruction& instruction) {
  bool read = false;
  ptx::for_each_written(body, instruction,
                        [&](std::uint32_t reg) { read = read || !uses.uses(reg).empty(); });
  return read;
}

// No load is moved over it.
bool holds_loads(OpcodeGroup group) {
  return group == OpcodeGroup::barrier || group == OpcodeGroup::fence || group == OpcodeGroup::call;
}

}  // namespace

void mark_waits(const ptx::Body& body, const ptx::Cfg& cfg, std::vector<Access>& accesses) {
  const ptx::DefUse uses(body, cfg);
  auto next = accesses.begin();
  for (const ptx::BasicBlock& block : cfg.blocks()) {
    LoadsUnderWay loads(body);
    for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
      const ptx::Instruction& instruction = body.instructions[i];
      while (next != accesses.end() && next->index < i) ++next;
      const bool accesses_memory = next != accesses.end() && next->index == i;
      if (!accesses_memory) {
        if (holds_loads(ptx::info(instruction.opcode).group)) loads.wait();
        loads.pass_on(instruction);
        continue;
      }
      if (loads.feed(instruction)) loads.wait();
      next->waits = false;
      if (next->kind == AccessKind::load) {
        loads.add(instruction, *next);
      } else if (next->kind == AccessKind::atomic && result_is_read(body, uses, instruction)) {
        loads.add(instruction, *next);
        loads.wait();
      }
    }
    loads.wait();
  }
}

}  // namespace demarc::locality
