// Finds where warps of a traced kernel wait for their loads.
#include "traced_code.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace demarc::sim::memory {
namespace {

using emulate::AccessKind;
using emulate::MemorySpace;
using emulate::TraceInstruction;
using Instructions = std::vector<TraceInstruction>;

bool loads(const TraceInstruction& instruction) {
  return instruction.kind == AccessKind::load || instruction.kind == AccessKind::atomic;
}

// Through the caches; an address without a space may be global, too.
bool is_global(const TraceInstruction& instruction) {
  return instruction.space == MemorySpace::global || instruction.space == MemorySpace::none;
}

// No load from global memory is moved over it.
bool holds_loads(const TraceInstruction& instruction, std::string_view text) {
  constexpr std::array<std::string_view, 3> names{"membar", "fence", "call"};
  if (instruction.kind == AccessKind::store || instruction.kind == AccessKind::atomic)
    return is_global(instruction);
  return is_barrier(text) || std::any_of(names.begin(), names.end(), [&](std::string_view name) {
           return text.starts_with(name);
         });
}

std::vector<std::string_view> results_of(const TraceInstruction& instruction) {
  if (instruction.kind == AccessKind::store) return {};
  return written_by(instruction.text);
}

// Where a register that load `i` writes is used next in the text; else first, which a loop leads
// back to.
std::uint32_t next_use(const std::map<std::string_view, std::vector<std::uint32_t>>& uses,
                       const Instructions& instructions, std::uint32_t i) {
  std::uint32_t found = no_use;
  for (const std::string_view name : written_by(instructions[i].text)) {
    const auto& places = uses.at(name);
    const auto next = std::upper_bound(places.begin(), places.end(), i);
    const std::uint32_t use = next != places.end() ? *next : places.front();
    if (use == i) continue;
    if (found == no_use || (use > i && (found < i || use < found))) found = use;
  }
  return found;
}

// By instruction of a basic block [begin, end): the last load behind it that is moved before its
// use of loaded data, if there is one.
class MovedLoads {
 public:
  MovedLoads(const Instructions& instructions, std::uint32_t begin, std::uint32_t end)
      : begin_(begin), last_(end - begin, no_use) {
    std::set<std::string_view> loaded;  // registers that come from a load of the block
    std::vector<std::uint8_t> stays(end - begin, 0);
    std::vector<std::uint8_t> moves(end - begin, 0);
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::string_view text = without_guard(instructions[i].text);
      const auto written = results_of(instructions[i]);
      const bool from_load = reads(instructions[i].text, written, loaded);
      const bool load = instructions[i].kind == AccessKind::load && is_global(instructions[i]);
      stays[i - begin] = holds_loads(instructions[i], text) || (load && from_load) ? 1 : 0;
      moves[i - begin] = load && !from_load ? 1 : 0;
      for (const std::string_view name : written) {
        if (load || from_load) {
          loaded.insert(name);
        } else {
          loaded.erase(name);
        }
      }
    }
    std::uint32_t behind = no_use;
    for (std::uint32_t i = end; i-- > begin;) {
      if (stays[i - begin] != 0) behind = no_use;
      last_[i - begin] = behind;
      if (moves[i - begin] != 0 && behind == no_use) behind = i;
    }
  }

  // Where a warp waits for what is used at `use`, behind the load in the block.
  [[nodiscard]] std::uint32_t wait_for(std::uint32_t use) const {
    const std::uint32_t load = last_[use - begin_];
    return load == no_use ? use : load + 1;
  }

 private:
  static bool reads(std::string_view text, const std::vector<std::string_view>& written,
                    const std::set<std::string_view>& loaded) {
    const auto names = registers_in(text);
    // What is written comes first in the text, once.
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (loaded.count(names[i]) == 0) continue;
      const bool is_result = std::find(written.begin(), written.end(), names[i]) != written.end();
      if (!is_result || std::count(names.begin(), names.end(), names[i]) > 1) return true;
    }
    return false;
  }

  std::uint32_t begin_;
  std::vector<std::uint32_t> last_;
};

void move_loads(const Instructions& instructions, std::vector<std::uint32_t>& first_use) {
  const auto size = static_cast<std::uint32_t>(instructions.size());
  for (std::uint32_t begin = 0; begin < size;) {
    std::uint32_t end = begin + 1;
    while (end < size && !instructions[end].begins_block) ++end;
    const MovedLoads moved(instructions, begin, end);
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t use = first_use[i];
      if (use == no_use || use <= i || use >= end) continue;
      const std::uint32_t wait = moved.wait_for(use);
      if (wait < end) first_use[i] = wait;
    }
    begin = end;
  }
}

}  // namespace

TracedCode study_code(const Instructions& instructions) {
  std::map<std::string_view, std::vector<std::uint32_t>> uses;
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    for (const std::string_view name : registers_in(instructions[i].text)) uses[name].push_back(i);
  }
  TracedCode code;
  code.first_use.assign(instructions.size(), no_use);
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    const std::string_view text = without_guard(instructions[i].text);
    code.barrier.push_back(is_barrier(text) ? 1 : 0);
    code.reduces.push_back(is_reduction(text) ? 1 : 0);
    code.cache_use.push_back(cache_use(text));
    if (loads(instructions[i])) code.first_use[i] = next_use(uses, instructions, i);
  }
  move_loads(instructions, code.first_use);
  std::vector<std::uint8_t> marked = code.barrier;
  for (const std::uint32_t use : code.first_use)
    if (use != no_use) marked[use] = 1;
  code.special.assign(instructions.size() + 1, 0);
  code.floats.assign(instructions.size() + 1, 0);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    code.special[i + 1] = code.special[i] + marked[i];
    const bool floats = is_float_arithmetic(without_guard(instructions[i].text));
    code.floats[i + 1] = code.floats[i] + (floats ? 1 : 0);
  }
  return code;
}

}  // namespace demarc::sim::memory
