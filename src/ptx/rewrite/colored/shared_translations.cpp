// Compares the addresses of accesses by the definitions of their registers.
#include "rewrite/colored/shared_translations.hpp"

#include <algorithm>

namespace demarc::ptx {

bool SharedTranslations::is_shared(std::uint32_t instruction, const Operand& address) {
  Key key{address.base, address.index, address.offset(), {}};
  if (address.base == Base::reg) {
    DefUse::Reaching reaching = def_use_.reaching(address.index, instruction);
    if (reaching.may_be_unwritten) return false;
    std::get<3>(key) = std::move(reaching.definitions);
  }
  std::vector<std::uint32_t>& same = earlier_[std::move(key)];
  const bool found = std::any_of(same.begin(), same.end(), [&](std::uint32_t other) {
    return keeps_its_value(address, other, instruction);
  });
  if (!found) same.push_back(instruction);
  return found;
}

bool SharedTranslations::dominates(std::uint32_t block, std::uint32_t other) const {
  while (other != block && other != no_index) other = cfg_.immediate_dominator(other);
  return other == block;
}

// Whether the address is that of `from` whenever `to` is reached. The same definitions reach both.
bool SharedTranslations::keeps_its_value(const Operand& address, std::uint32_t from,
                                         std::uint32_t to) const {
  const std::uint32_t block = cfg_.block_of(from);
  if (!dominates(block, cfg_.block_of(to))) return false;
  if (address.base != Base::reg) return true;
  const auto definitions = def_use_.definitions(address.index);
  if (block != cfg_.block_of(to)) {
    // A single definition in front of `from`: a thread that runs it again passes `from` again.
    return definitions.size() == 1;
  }
  return std::none_of(definitions.begin(), definitions.end(),
                      [&](std::uint32_t one) { return from <= one && one < to; });
}

}  // namespace demarc::ptx
