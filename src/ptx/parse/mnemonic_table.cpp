// Decodes each mnemonic of a module once and remembers it.
#include "parse/mnemonic_table.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

std::uint8_t width_of(Modifier modifier) {
  if (modifier == Modifier::v2) return 2;
  if (modifier == Modifier::v4) return 4;
  return modifier == Modifier::v8 ? 8 : 1;
}

void add_modifier(Mnemonic& mnemonic, std::string_view text) {
  const Modifier id = find_modifier(text);
  mnemonic.modifiers.push_back({id, text});
  if (id == Modifier::unknown) {
    mnemonic.understood = false;
    return;
  }
  switch (info(id).modifier_class) {
    case ModifierClass::type:
      mnemonic.types.push_back(type_of(id));
      break;
    case ModifierClass::vector:
      mnemonic.vector_width = width_of(id);
      break;
    case ModifierClass::space:
      if (mnemonic.space == StateSpace::none) mnemonic.space = find_state_space(text);
      break;
    default:
      break;
  }
}

}  // namespace

Mnemonic decode_mnemonic(std::string_view text) {
  Mnemonic mnemonic;
  mnemonic.text = text;
  const OpcodeMatch match = find_opcode(text);
  mnemonic.opcode = match.opcode;
  std::size_t at = match.length;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('.', at + 1), text.size());
    add_modifier(mnemonic, text.substr(at + 1, end - at - 1));
    at = end;
  }
  mnemonic.understood = mnemonic.understood && mnemonic.opcode != Opcode::unknown;
  return mnemonic;
}

void MnemonicTable::remember(std::string_view text, std::uint32_t number, const char* end) {
  Word word;
  if (static_cast<std::size_t>(end - text.data()) < Word::longest || !word.read(text.data()) ||
      word.length != text.size()) {
    return;
  }
  const Mnemonic& mnemonic = (*mnemonics_)[number];
  const OpcodeInfo& row = info(mnemonic.opcode);
  known_[slot_of(word)] = {word,
                           number,
                           mnemonic.opcode,
                           row.fewest_operands,
                           row.max_operands,
                           mnemonic.understood && mnemonic.opcode != Opcode::call};
}

}  // namespace demarc::ptx
