// Reads the table of operands and says which registers an operand takes.
#include "parse/operand_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace demarc::ptx {
namespace {

using What = OperandRule::What;

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The core of a word of the table: "0", "u32", "a".
void read_core(std::string_view core, OperandRule& rule) {
  if (core == "a") {
    rule.what = What::address;
  } else if (core == "i") {
    rule.what = What::constant;
  } else if (core == "ptr") {
    rule.what = What::pointer;
  } else if (core == "l") {
    rule.what = What::label;
  } else if (core == "T") {
    rule.what = What::targets;
  } else if (core != "*") {
    rule.what = What::typed;
    rule.type = find_type(core);
    rule.is_exact = rule.type != Type::none;
    if (!rule.is_exact) rule.type_number = static_cast<std::uint8_t>(core[0] - '0');
  }
}

OperandRule read_rule(std::string_view word) {
  OperandRule rule;
  rule.is_written = word.front() == '=';
  if (rule.is_written) word.remove_prefix(1);
  const bool is_number = word.front() >= '0' && word.front() <= '9';
  const std::size_t core = is_number || word.front() == '*'
                               ? 1
                               : std::min(word.find_first_of("w~^_|&%+!?<>/:"), word.size());
  read_core(word.substr(0, core), rule);
  word.remove_prefix(core);
  for (std::size_t choice = 0; !word.empty();) {
    const char flag = word.front();
    word.remove_prefix(1);
    switch (flag) {
      case 'w':
        rule.is_twice_as_wide = true;
        break;
      case '~':
        rule.takes_wider = true;
        break;
      case '_':
        rule.takes_sink = true;
        break;
      case '|':
        rule.needs_pair = rule.takes_pair;
        rule.takes_pair = true;
        break;
      case '&':
        rule.takes_variable = true;
        break;
      case '%':
        rule.takes_special = true;
        break;
      case '+':
        rule.takes_predicate = true;
        break;
      case '^':
        rule.is_exact = true;
        break;
      case '!':
        rule.needs_register = true;
        break;
      case '?':
        rule.may_be_missing = true;
        break;
      case '>':
        rule.least = take_number(word);
        break;
      case '<':
        rule.at_most_as_before = word.starts_with('<');
        if (rule.at_most_as_before) {
          word.remove_prefix(1);
        } else {
          rule.most = take_number(word);
        }
        break;
      case '/':
        rule.multiple_of = take_number(word);
        break;
      case ':':
        rule.choices.at(choice++) = take_number(word);
        break;
      default:
        break;
    }
  }
  return rule;
}

std::vector<OperandRule> read_rules(std::string_view text) {
  std::vector<OperandRule> rules;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    rules.push_back(read_rule(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rules;
}

// A row of the table: what the mnemonics with these modifiers take, in whatever order they stand.
struct OperandRow {
  std::vector<Modifier> modifiers;
  std::vector<OperandRule> rules;
};

OperandRow read_row(std::string_view name, std::string_view operands) {
  OperandRow row{{}, read_rules(operands)};
  while (!name.empty()) {
    name.remove_prefix(1);
    const std::size_t end = std::min(name.find('.'), name.size());
    row.modifiers.push_back(find_modifier(name.substr(0, end)));
    name.remove_prefix(end);
  }
  return row;
}

const std::multimap<Opcode, OperandRow>& all_rows() {
  static const auto rows = [] {
    constexpr std::pair<std::string_view, std::string_view> table[] = {
#define DEMARC_PTX_OPERANDS(name, operands) {name, operands},
#include "demarc/ptx/operands.def"
#undef DEMARC_PTX_OPERANDS
    };
    std::multimap<Opcode, OperandRow> read;
    for (const auto& [name, operands] : table) {
      const OpcodeMatch opcode = find_opcode(name);
      read.emplace(opcode.opcode, read_row(name.substr(opcode.length), operands));
    }
    return read;
  }();
  return rows;
}

// The row with the most modifiers, all of which the mnemonic has; null if there is none.
const OperandRow* row_of(const Mnemonic& mnemonic) {
  const OperandRow* best = nullptr;
  const auto [begin, end] = all_rows().equal_range(mnemonic.opcode);
  for (auto one = begin; one != end; ++one) {
    const auto& modifiers = one->second.modifiers;
    const bool has_all = std::all_of(modifiers.begin(), modifiers.end(),
                                     [&](Modifier modifier) { return mnemonic.has(modifier); });
    if (has_all && (best == nullptr || modifiers.size() > best->modifiers.size()))
      best = &one->second;
  }
  return best;
}

Type twice_as_wide(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return type;
  }
}

// Types of PTX 1.0, whose conversions take wider registers.
bool converts_wider(Type type) {
  const TypeKind kind = info(type).kind;
  return kind == TypeKind::unsigned_ || kind == TypeKind::signed_ || kind == TypeKind::bits ||
         type == Type::f16 || type == Type::f32 || type == Type::f64 || type == Type::f16x2;
}

// Beside f32, ptxas takes a bf16 like an integer.
bool is_mixed_bf16(const Mnemonic& mnemonic, Type type) {
  const bool is_mixed = mnemonic.types.size() > 1 &&
                        (mnemonic.opcode == Opcode::add || mnemonic.opcode == Opcode::sub ||
                         mnemonic.opcode == Opcode::fma);
  return is_mixed && type == Type::bf16;
}

bool is_integer(TypeKind kind) {
  return kind == TypeKind::unsigned_ || kind == TypeKind::signed_;
}

}  // namespace

std::vector<OperandRule> operand_rules(const Mnemonic& mnemonic) {
  const OperandRow* row = row_of(mnemonic);
  if (row == nullptr || !mnemonic.understood) return {};
  std::vector<OperandRule> rules = row->rules;
  bool all_convert_wider = true;
  for (const Type type : mnemonic.types) all_convert_wider &= converts_wider(type);
  for (OperandRule& rule : rules) {
    if (rule.what != What::typed) continue;
    if (rule.type == Type::none && !mnemonic.types.empty())
      rule.type = mnemonic.type(std::min<std::size_t>(rule.type_number, mnemonic.types.size() - 1));
    if (is_mixed_bf16(mnemonic, rule.type)) {
      rule.type = Type::u16;
      rule.is_exact = true;
    }
    if (rule.is_twice_as_wide) rule.type = twice_as_wide(rule.type);
    rule.takes_wider = rule.takes_wider && all_convert_wider;
    if (rule.type == Type::none) rule.what = What::unchecked;
  }
  return rules;
}

bool takes_register(const OperandRule& rule, Type have) {
  const TypeInfo& is = info(have);
  if (have == Type::pred && rule.takes_predicate) return true;
  if (rule.what == What::pointer) {
    return (is.bits == 32 || is.bits == 64) && (is_integer(is.kind) || is.kind == TypeKind::bits);
  }
  const TypeInfo& wanted = info(rule.type);
  if (rule.type == Type::pred || have == Type::pred) return rule.type == have;
  const bool is_wider = rule.takes_wider && is.bits > wanted.bits;
  if (is.bits != wanted.bits && !is_wider) return false;
  if (is.kind == TypeKind::bits) return true;
  if (rule.is_exact) return is_integer(is.kind) && wanted.kind != TypeKind::floating;
  if (wanted.kind == TypeKind::bits) return true;
  if (is_integer(wanted.kind)) {
    return is_integer(is.kind) || is.kind == TypeKind::packed;
  }
  if (rule.type == Type::u16x2 || rule.type == Type::s16x2) return have == Type::f16x2;
  return rule.type == have && !is_wider;
}

}  // namespace demarc::ptx
