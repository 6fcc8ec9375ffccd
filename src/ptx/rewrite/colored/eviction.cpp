// Makes an access a streaming one.
#include "rewrite/colored/eviction.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demarc::ptx {
namespace {

constexpr Modifier kept[] = {
    Modifier::volatile_, Modifier::mmio, Modifier::relaxed, Modifier::acquire, Modifier::release,
    Modifier::cg,        Modifier::cs,   Modifier::lu,      Modifier::cv,      Modifier::wt};

// What says how long a line stays, other than that it goes first.
constexpr Modifier wishes[] = {
    Modifier::ca,
    Modifier::wb,
    Modifier::L1_evict_normal,
    Modifier::L1_evict_unchanged,
    Modifier::L1_evict_first,
    Modifier::L1_evict_last,
    Modifier::L1_no_allocate,
    Modifier::L2_evict_normal,
    Modifier::L2_evict_first,
    Modifier::L2_evict_last,
    Modifier::L2_cache_hint,
};

template <std::size_t count>
bool is_one_of(const Modifier (&modifiers)[count], const ModifierUse& use) {
  return std::find(std::begin(modifiers), std::end(modifiers), use.id) != std::end(modifiers);
}

// Without wishes, and with `.cs` behind the state space, or where none is named behind the opcode.
std::string streaming(const Mnemonic& mnemonic) {
  std::size_t in_front =
      (mnemonic.has(Modifier::weak) ? 1U : 0U) + (mnemonic.space == StateSpace::none ? 0U : 1U);
  std::string text(info(mnemonic.opcode).name);
  if (in_front == 0) text += ".cs";
  for (const ModifierUse& use : mnemonic.modifiers) {
    if (is_one_of(wishes, use)) continue;
    text += fmt::format(".{}", use.text);
    if (in_front != 0 && --in_front == 0) text += ".cs";
  }
  return text;
}

std::string without_last_operand(std::string access) {
  const std::size_t end = access.rfind(';');
  const std::size_t comma = access.rfind(',', end);
  return access.erase(comma, end - comma);
}

}  // namespace

std::string streaming(const Mnemonic& mnemonic, std::string access) {
  if (mnemonic.opcode != Opcode::ld && mnemonic.opcode != Opcode::st) return access;
  const auto& modifiers = mnemonic.modifiers;
  if (std::any_of(modifiers.begin(), modifiers.end(),
                  [](const ModifierUse& use) { return is_one_of(kept, use); })) {
    return access;
  }
  if (mnemonic.has(Modifier::L2_cache_hint)) access = without_last_operand(std::move(access));
  return access.replace(access.find(mnemonic.text), mnemonic.text.size(), streaming(mnemonic));
}

}  // namespace demarc::ptx
