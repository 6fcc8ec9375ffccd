// Finds accesses of a block whose addresses differ by known numbers of bytes.
#include "rewrite/colored/neighbours.hpp"

#include <algorithm>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"

namespace demarc::ptx {
namespace {

constexpr std::size_t fewest_addresses = 3;

// An address as a value of some register and a known number of bytes. Values have numbers.
struct Place {
  std::uint32_t value = 0;
  std::uint64_t offset = 0;  // two's complement
};

// What registers hold at a point of a block. An instruction of which it is not known what it writes
// refuses its kernel.
class Places {
 public:
  Places(const Module& module, const Body& body) : module_(module), body_(body) {}

  Place of(std::uint32_t reg) {
    const auto [found, added] = held_.try_emplace(reg, Place{next_, 0});
    if (added) ++next_;
    return found->second;
  }

  void pass(const Instruction& instruction) {
    const auto operands = body_.operands_of(instruction);
    if (adds_a_number(instruction)) {
      const Place from = of(operands[1].index);
      held_[operands[0].index] = {from.value, from.offset + operands[2].value};
    } else {
      for_each_written(body_, instruction, [this](std::uint32_t reg) { held_.erase(reg); });
    }
  }

 private:
  [[nodiscard]] bool adds_a_number(const Instruction& instruction) const {
    const Type type = module_.mnemonic(instruction).type();
    const auto operands = body_.operands_of(instruction);
    return instruction.opcode == Opcode::add && instruction.predicate == no_index &&
           (type == Type::s64 || type == Type::u64) && is_whole_register(operands[0]) &&
           is_whole_register(operands[1]) && operands[2].kind == OperandKind::immediate;
  }

  static bool is_whole_register(const Operand& operand) {
    return operand.kind == OperandKind::reg && operand.selector == Selector::none;
  }

  const Module& module_;
  const Body& body_;
  std::map<std::uint32_t, Place> held_;  // by register
  std::uint32_t next_ = 0;
};

struct Placed {
  std::int64_t offset = 0;
  std::uint32_t instruction = 0;
};

// Accesses of one value, in the order of the text.
class Groups {
 public:
  Groups(std::uint64_t chunk_bytes, std::map<std::uint32_t, Neighbour>& found)
      : chunk_bytes_(chunk_bytes), found_(found) {}

  void add(const std::vector<Placed>& placed) {
    std::vector<std::int64_t> offsets;
    offsets.reserve(placed.size());
    for (const Placed& one : placed) offsets.push_back(one.offset);
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    for (auto first = offsets.begin(); first != offsets.end();) {
      const auto end = std::find_if(first, offsets.end(), [&](std::int64_t offset) {
        return distance(*first, offset) >= chunk_bytes_;
      });
      if (static_cast<std::size_t>(end - first) >= fewest_addresses) {
        make(placed, *first, *std::prev(end));
      }
      first = end;
    }
  }

 private:
  static std::uint64_t distance(std::int64_t from, std::int64_t to) {
    return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
  }

  void make(const std::vector<Placed>& placed, std::int64_t lowest, std::int64_t highest) {
    std::uint32_t before = 0;
    for (const Placed& one : placed) {
      if (one.offset < lowest || one.offset > highest) continue;
      found_[one.instruction] = {groups_, distance(lowest, one.offset), distance(lowest, highest),
                                 before++};
    }
    ++groups_;
  }

  std::uint64_t chunk_bytes_;
  std::map<std::uint32_t, Neighbour>& found_;
  std::uint32_t groups_ = 0;
};

}  // namespace

std::map<std::uint32_t, Neighbour> find_neighbours(const Module& module, const Body& body,
                                                   std::span<const RegisterAccess> accesses,
                                                   std::uint64_t chunk_bytes) {
  std::map<std::uint32_t, Neighbour> found;
  if (accesses.size() < fewest_addresses) return found;
  Groups groups(chunk_bytes, found);
  auto access = accesses.begin();
  const Cfg cfg(body);
  for (const BasicBlock& block : cfg.blocks()) {
    Places places(module, body);
    std::map<std::uint32_t, std::vector<Placed>> of_value;
    for (std::uint32_t at = block.first; at < block.first + block.count; ++at) {
      if (access != accesses.end() && access->instruction == at) {
        const Place place = places.of(access->address.index);
        const std::uint64_t offset = place.offset + access->address.value;
        of_value[place.value].push_back({static_cast<std::int64_t>(offset), at});
        ++access;
      }
      places.pass(body.instructions[at]);
    }
    for (const auto& [value, placed] : of_value) groups.add(placed);
  }
  return found;
}

}  // namespace demarc::ptx
