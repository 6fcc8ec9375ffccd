// Finds opcodes, modifiers, types and special registers of PTX by name.
#include "demarc/ptx/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <unordered_map>

namespace demarc::ptx {
namespace {

constexpr OpcodeInfo opcode_table[] = {
    {"", "", 0, 255, 0, OpcodeGroup::unknown},
#define DEMARC_PTX_OPCODE(enumerator, name, section, fewest, most, written, group) \
  {name, section, fewest, most, written, OpcodeGroup::group},
#include "demarc/ptx/opcodes.def"
#undef DEMARC_PTX_OPCODE
};

constexpr ModifierInfo modifier_table[] = {
    {"", "", ModifierClass::none},
#define DEMARC_PTX_TYPE(enumerator, text, section, bits, kind) {text, section, ModifierClass::type},
#include "demarc/ptx/types.def"
#undef DEMARC_PTX_TYPE
#define DEMARC_PTX_MODIFIER(enumerator, text, section, modifier_class) \
  {text, section, ModifierClass::modifier_class},
#include "demarc/ptx/modifiers.def"
#undef DEMARC_PTX_MODIFIER
    {"m*n*k*", "9.7.14", ModifierClass::matrix},
};

constexpr TypeInfo type_table[] = {
    {"", 0, TypeKind::none},
#define DEMARC_PTX_TYPE(enumerator, text, section, bits, kind) {text, bits, TypeKind::kind},
#include "demarc/ptx/types.def"
#undef DEMARC_PTX_TYPE
};

constexpr SpecialRegisterInfo special_table[] = {
#define DEMARC_PTX_SPECIAL(enumerator, name, section, type, is_vector) \
  {name, section, Type::type, is_vector},
#include "demarc/ptx/special_registers.def"
#undef DEMARC_PTX_SPECIAL
};

// Name -> row number, over the column that `name_of` picks.
template <class Row, std::size_t n, class NameOf>
std::unordered_map<std::string_view, std::uint16_t> index_table(const Row (&table)[n],
                                                                NameOf name_of) {
  std::unordered_map<std::string_view, std::uint16_t> index;
  index.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!name_of(table[i]).empty()) index.emplace(name_of(table[i]), static_cast<std::uint16_t>(i));
  }
  return index;
}

// m16n8k16 and the like.
bool is_matrix_shape(std::string_view text) {
  std::size_t at = 0;
  for (const char letter : {'m', 'n', 'k'}) {
    if (at >= text.size() || text[at] != letter) return false;
    const std::size_t digits = ++at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == digits) return false;
  }
  return at == text.size();
}

}  // namespace

const OpcodeInfo& info(Opcode opcode) {
  return opcode_table[static_cast<std::size_t>(opcode)];
}
const ModifierInfo& info(Modifier modifier) {
  return modifier_table[static_cast<std::size_t>(modifier)];
}
const TypeInfo& info(Type type) {
  return type_table[static_cast<std::size_t>(type)];
}
const SpecialRegisterInfo& info(SpecialRegister name) {
  return special_table[static_cast<std::size_t>(name)];
}

std::size_t opcode_count() {
  return std::size(opcode_table);
}
std::size_t modifier_count() {
  return std::size(modifier_table);
}
std::size_t special_register_count() {
  return std::size(special_table);
}

OpcodeMatch find_opcode(std::string_view mnemonic) {
  static const auto index =
      index_table(opcode_table, [](const OpcodeInfo& row) { return row.name; });
  const std::size_t first_dot = std::min(mnemonic.find('.'), mnemonic.size());
  OpcodeMatch best{Opcode::unknown, first_dot};
  std::size_t end = first_dot;
  while (true) {
    if (const auto found = index.find(mnemonic.substr(0, end)); found != index.end()) {
      best = {static_cast<Opcode>(found->second), end};
    }
    if (end == mnemonic.size()) return best;
    end = std::min(mnemonic.find('.', end + 1), mnemonic.size());
  }
}

Modifier find_modifier(std::string_view text) {
  static const auto index =
      index_table(modifier_table, [](const ModifierInfo& row) { return row.text; });
  const auto found = index.find(text);
  if (found != index.end()) return static_cast<Modifier>(found->second);
  return is_matrix_shape(text) ? Modifier::shape_mnk : Modifier::unknown;
}

Type find_type(std::string_view text) {
  return type_of(find_modifier(text));
}

std::optional<SpecialRegister> find_special_register(std::string_view name) {
  static const auto index =
      index_table(special_table, [](const SpecialRegisterInfo& row) { return row.name; });
  const auto found = index.find(name);
  if (found == index.end()) return std::nullopt;
  return static_cast<SpecialRegister>(found->second);
}

StateSpace find_state_space(std::string_view text) {
  const std::string_view stem = text.substr(0, text.find("::"));
  if (stem == "global") return StateSpace::global;
  if (stem == "shared") return StateSpace::shared;
  if (stem == "local") return StateSpace::local;
  if (stem == "param") return StateSpace::param;
  if (stem == "const") return StateSpace::constant;
  if (stem == "reg") return StateSpace::reg;
  if (stem == "tex") return StateSpace::texture;
  return StateSpace::none;
}

std::string_view name(StateSpace space) {
  constexpr std::array<std::string_view, 8> names = {"",      "reg",   "global", "shared",
                                                     "local", "param", "const",  "tex"};
  return names[static_cast<std::size_t>(space)];
}

Type type_of(Modifier modifier) {
  const auto number = static_cast<std::size_t>(modifier);
  return number < std::size(type_table) ? static_cast<Type>(number) : Type::none;
}

std::uint32_t byte_size(Type type) {
  const TypeInfo& row = info(type);
  if (row.kind == TypeKind::opaque) return 8;
  return (row.bits + 7U) / 8U;
}

}  // namespace demarc::ptx
