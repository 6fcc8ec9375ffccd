// Makes an access a streaming one.
#include "rewrite/colored/eviction.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demarc::ptx {
namespace {

constexpr Modifier kept[] = {Modifier::volatile_, Modifier::mmio, Modifier::cs, Modifier::lu};

// These have no `.cs`, and may have a policy.
constexpr Modifier ordered[] = {Modifier::relaxed, Modifier::acquire, Modifier::release,
                                Modifier::cg,      Modifier::cv,      Modifier::wt};

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

template <std::size_t count>
bool has_one_of(const Modifier (&modifiers)[count], const Mnemonic& mnemonic) {
  return std::any_of(mnemonic.modifiers.begin(), mnemonic.modifiers.end(),
                     [&](const ModifierUse& use) { return is_one_of(modifiers, use); });
}

bool can_stream(const Mnemonic& mnemonic) {
  return (mnemonic.opcode == Opcode::ld || mnemonic.opcode == Opcode::st) &&
         !has_one_of(kept, mnemonic);
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

// Without wishes, and with a cache hint in front of what is read along, the vector and the type.
std::string hinted(const Mnemonic& mnemonic) {
  std::string text(info(mnemonic.opcode).name);
  bool is_hinted = false;
  for (const ModifierUse& use : mnemonic.modifiers) {
    if (is_one_of(wishes, use)) continue;
    const ModifierClass of = info(use.id).modifier_class;
    if (!is_hinted &&
        (of == ModifierClass::cache || of == ModifierClass::vector || of == ModifierClass::type)) {
      text += ".L2::cache_hint";
      is_hinted = true;
    }
    text += fmt::format(".{}", use.text);
  }
  return text;
}

std::string without_last_operand(std::string access) {
  const std::size_t end = access.rfind(';');
  const std::size_t comma = access.rfind(',', end);
  return access.erase(comma, end - comma);
}

constexpr std::string_view policy_of_its_own =
    "\t.reg .b64 %demarc_e;\n"
    "\tcreatepolicy.fractional.L2::evict_first.b64 \t%demarc_e, 0f3F800000;\n";

}  // namespace

bool streams_by_policy(const Mnemonic& mnemonic) {
  return can_stream(mnemonic) && has_one_of(ordered, mnemonic);
}

std::string streaming(const Mnemonic& mnemonic, std::string access, bool has_policies) {
  if (!can_stream(mnemonic)) return access;
  const bool by_policy = streams_by_policy(mnemonic);
  if (by_policy && !has_policies) return access;
  if (mnemonic.has(Modifier::L2_cache_hint)) access = without_last_operand(std::move(access));
  access.replace(access.find(mnemonic.text), mnemonic.text.size(),
                 by_policy ? hinted(mnemonic) : streaming(mnemonic));
  if (!by_policy) return access;
  access.insert(access.rfind(';'), ", %demarc_e");
  return fmt::format("{{\n{}\t{}\n\t}}", policy_of_its_own, access);
}

std::string streaming_copy(const Mnemonic& mnemonic, std::string_view access,
                           std::string_view destination) {
  std::string text(access);
  if (mnemonic.has(Modifier::L2_cache_hint)) text = without_last_operand(std::move(text));
  text.insert(text.rfind(';'), ", %demarc_e");
  const std::size_t open = text.find('[');
  text.replace(open, text.find(']', open) - open + 1, "[%demarc_d]");
  if (!mnemonic.has(Modifier::L2_cache_hint)) {
    constexpr std::string_view source = ".global";
    text.insert(text.find(source) + source.size(), ".L2::cache_hint");
  }
  return fmt::format(
      "{{\n\t.reg .b32 %demarc_d;\n{}\t{}\n\txor.b32 \t%demarc_d, %demarc_d, %demarc_zero;\n"
      "\t{}\n\t}}",
      policy_of_its_own, destination, text);
}

std::string copy_destination(const Body& body, const Instruction& instruction,
                             std::string_view text) {
  const Operand& to = body.operands_of(instruction)[0];
  if (to.base != Base::reg) {
    const std::size_t open = text.find('[') + 1;
    return fmt::format("mov.u32 \t%demarc_d, {};", text.substr(open, text.find(']', open) - open));
  }
  const std::string reg = body.register_name(to.index);
  if (byte_size(body.register_type(to.index)) == 4) {
    return fmt::format("add.s32 \t%demarc_d, {}, {};", reg, to.offset());
  }
  return fmt::format("cvt.u32.u64 \t%demarc_d, {};\n\tadd.s32 \t%demarc_d, %demarc_d, {};", reg,
                     to.offset());
}

}  // namespace demarc::ptx
