// Finds operands that are of another kind than the table of operands asks for: registers,
// constants, addresses, `_`.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "parse/operand_check.hpp"

namespace demarc::ptx {
namespace {

using What = OperandRule::What;

// Integers stand for integers and untyped bits, and no constant for numbers below 32 bits or
// packed.
bool takes_constant(Type type, ImmediateKind kind) {
  const bool is_single = kind == ImmediateKind::f32;
  const bool is_double = kind == ImmediateKind::f64;
  switch (type) {
    case Type::f32:
    case Type::f64:
      return is_single || is_double;
    case Type::b32:
      return !is_double;
    case Type::b64:
      return !is_single;
    default:
      return !is_single && !is_double && info(type).kind != TypeKind::floating &&
             info(type).kind != TypeKind::packed;
  }
}

// What would be right, in words.
std::string wanted_by(const OperandRule& rule) {
  const std::string_view type = info(rule.type).text;
  switch (rule.what) {
    case What::address:
      return "an address in brackets";
    case What::constant:
      return "an integer constant";
    case What::pointer:
      return "an integer of 32 or 64 bits";
    case What::label:
      return "a label";
    case What::targets:
      return "the name of a '.branchtargets' that stands before";
    default:
      break;
  }
  if (rule.type == Type::pred) return "a predicate";
  return fmt::format("a register {}{}",
                     rule.takes_wider ? "as wide as or wider than ." : "for type .", type) +
         (rule.is_written || rule.needs_register ? "" : " or a constant");
}

// Why that constant is not one of the rule's; nullptr when it is.
std::string why_no_constant(const OperandRule& rule, std::uint64_t value, std::uint64_t before) {
  const std::uint64_t most = rule.at_most_as_before ? before : rule.most;
  if (value < rule.least || value > most)
    return fmt::format("must be an integer from {} to {}", rule.least, most);
  if (value % rule.multiple_of != 0)
    return fmt::format("must be a multiple of {}", rule.multiple_of);
  const auto& choices = rule.choices;
  if (choices[0] == 0 ||
      (value != 0 && std::find(choices.begin(), choices.end(), value) != choices.end()))
    return {};
  std::string names = fmt::format("{}", choices[0]);
  for (const std::uint64_t one : std::span(choices).subspan(1)) {
    if (one != 0) names += fmt::format(" or {}", one);
  }
  return fmt::format("must be {}", names);
}

// Some of the registers that tell a thread's place had 16 bits in PTX 1.0, and the grid's
// number 32.
bool has_size(SpecialRegister name, unsigned bits) {
  if (info(info(name).type).bits == bits) return true;
  switch (name) {
    case SpecialRegister::tid:
    case SpecialRegister::ntid:
    case SpecialRegister::ctaid:
    case SpecialRegister::nctaid:
      return bits == 16;
    case SpecialRegister::gridid:
      return bits == 32;
    default:
      return false;
  }
}

Type untyped(unsigned bits) {
  constexpr Type types[] = {Type::b8, Type::b16, Type::b32, Type::b64, Type::b128};
  for (const Type type : types) {
    if (info(type).bits == bits) return type;
  }
  return Type::b8;
}

// Those with elements stand beside no constant.
bool is_special_element(const OperandRule& rule, const Operand& element, bool has_constant) {
  if (element.kind != OperandKind::special || rule.is_written) return false;
  const SpecialRegisterInfo& row = info(static_cast<SpecialRegister>(element.index));
  return row.is_vector == (element.selector != Selector::none) && row.type != Type::pred &&
         !(row.is_vector && has_constant) && takes_register(rule, untyped(info(row.type).bits));
}

bool takes_special_register(const OperandRule& rule, const Mnemonic& mnemonic,
                            const Operand& operand) {
  if (!rule.takes_special) return false;
  for (const Type type : mnemonic.types) {
    if (info(type).kind == TypeKind::floating || info(type).kind == TypeKind::packed) return false;
  }
  const auto name = static_cast<SpecialRegister>(operand.index);
  const SpecialRegisterInfo& row = info(name);
  const unsigned bits = info(rule.type).bits;
  if (row.is_vector != (operand.selector != Selector::none)) {
    return row.is_vector && (mnemonic.vector_width > 1 || bits == 128);
  }
  if (row.type == Type::pred || rule.type == Type::pred) return row.type == rule.type;
  return has_size(name, bits) || (rule.takes_wider && info(row.type).bits > bits);
}

// Accesses, whose elements are counted by the width of the access.
bool is_access(Opcode opcode) {
  return opcode == Opcode::ld || opcode == Opcode::ldu || opcode == Opcode::st;
}

// The space of the mnemonic's first or second address; none where it is generic. Barriers lie in
// shared memory whether they say so or not, and what the uniform cache holds in global memory.
StateSpace space_of_address(const Mnemonic& mnemonic, std::size_t number) {
  StateSpace space = StateSpace::none;
  for (const ModifierUse& use : mnemonic.modifiers) {
    const StateSpace one = find_state_space(use.text);
    if (one == StateSpace::none) continue;
    space = one;
    if (number-- == 0) break;
  }
  if (mnemonic.opcode == Opcode::prefetchu) return StateSpace::global;
  const bool is_barrier = info(mnemonic.opcode).group == OpcodeGroup::mbarrier;
  return is_barrier && space == StateSpace::none ? StateSpace::shared : space;
}

}  // namespace

// One rule per mnemonic, read once.
const std::vector<OperandRule>& OperandCheck::operand_rules_of(std::uint32_t mnemonic) {
  while (operand_rules_.size() <= mnemonic) {
    operand_rules_.push_back(operand_rules(module_.mnemonics[operand_rules_.size()]));
  }
  return operand_rules_[mnemonic];
}

bool OperandCheck::check_rules(const Instruction& instruction, const Mnemonic& mnemonic) {
  const std::vector<OperandRule>& rules = operand_rules_of(instruction.mnemonic);
  if (rules.empty()) return true;
  static const OperandRule policy = {.what = What::typed, .type = Type::b64, .is_exact = true};
  const auto operands = body_.operands_of(instruction);
  const std::size_t count = operands.size() - (mnemonic.has(Modifier::L2_cache_hint) ? 1 : 0);
  std::size_t missing = rules.size() - std::min(rules.size(), count);
  std::size_t next = 0;
  std::size_t addresses = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    while (next < rules.size() && rules[next].may_be_missing && missing > 0 && i < count) {
      ++next;
      --missing;
    }
    if (i < count && next >= rules.size()) return true;  // the table of opcodes counts them
    const OperandRule& rule = i < count ? rules[next++] : policy;
    const bool is_address = rule.what == What::address && operands[i].kind == OperandKind::address;
    const std::uint64_t before = i > 0 ? operands[i - 1].value : 0;
    std::string why = is_address ? why_no_address(mnemonic, operands[i], addresses++)
                                 : why_no_operand(rule, mnemonic, operands[i]);
    if (why.empty() && operands[i].kind == OperandKind::immediate && rule.what != What::unchecked)
      why = why_no_constant(rule, operands[i].value, before);
    if (why.empty()) continue;
    return fail_at(instruction.text_offset,
                   fmt::format("'{}': operand {} {}", excerpt(mnemonic.text, 60), i + 1, why));
  }
  return true;
}

std::string OperandCheck::why_no_operand(const OperandRule& rule, const Mnemonic& mnemonic,
                                         const Operand& operand) const {
  if (rule.what == What::unchecked) return {};
  if (rule.needs_pair && operand.kind != OperandKind::pair) {
    return "is none of a register and a predicate, as in 'r|p'";
  }
  switch (operand.kind) {
    case OperandKind::reg:
      return why_no_register(rule, mnemonic, operand);
    case OperandKind::special:
      if (takes_special_register(rule, mnemonic, operand)) return {};
      return fmt::format(
          "is the special register '{}', which stands only in 'mov' and 'cvt' of integers of its "
          "width",
          info(static_cast<SpecialRegister>(operand.index)).name);
    case OperandKind::immediate:
      if (rule.is_written) return "is written, so it cannot be a constant";
      if (rule.what == What::address || rule.what == What::label || rule.what == What::targets ||
          rule.needs_register)
        break;
      if (!takes_constant(rule.is_exact ? Type::u64 : rule.type, operand.immediate)) {
        return rule.type == Type::none
                   ? fmt::format("must be {}", wanted_by(rule))
                   : fmt::format("is a constant that type .{} does not take", info(rule.type).text);
      }
      return {};
    case OperandKind::symbol:
      return why_no_symbol(rule, mnemonic, operand);
    case OperandKind::address:
      return fmt::format("is an address in brackets, but {} is wanted", wanted_by(rule));
    case OperandKind::vector:
      return why_no_vector(rule, mnemonic, operand);
    case OperandKind::pair: {
      if (!rule.takes_pair) return fmt::format("is a pair, but {} is wanted", wanted_by(rule));
      const auto children = body_.children(operand);
      OperandRule each = rule;
      each.takes_sink = true;
      each.needs_pair = false;
      if (std::string why = why_no_operand(each, mnemonic, children[0]); !why.empty()) return why;
      each.type = Type::pred;
      return why_no_operand(each, mnemonic, children[1]);
    }
    case OperandKind::sink:
      return rule.takes_sink ? "" : fmt::format("is '_', but {} is wanted", wanted_by(rule));
    default:
      return {};
  }
  return fmt::format("is a constant, but {} is wanted", wanted_by(rule));
}

std::string OperandCheck::why_no_register(const OperandRule& rule, const Mnemonic& mnemonic,
                                          const Operand& operand) const {
  const RegisterRange& range = body_.range_of(operand.index);
  const bool is_vector = range.vector_width > 1 && operand.selector == Selector::none;
  const bool is_video = info(mnemonic.opcode).group == OpcodeGroup::video;
  const bool may_be_minus = mnemonic.opcode == Opcode::vmad;
  if (operand.selector > Selector::w && !is_video)
    return "selects bytes, which only video instructions do";
  const bool may_be_negated =
      (rule.type == Type::pred || (rule.takes_predicate && range.type == Type::pred)) &&
      !rule.is_written;
  if ((operand.minus && !may_be_minus) || (operand.negated && !may_be_negated)) {
    return fmt::format("has a sign, but {} without one is wanted", wanted_by(rule));
  }
  const bool has_value = rule.what == What::typed || rule.what == What::pointer;
  const bool is_packed = mnemonic.opcode == Opcode::mov && info(rule.type).kind == TypeKind::bits &&
                         info(range.type).bits * range.vector_width == info(rule.type).bits;
  const bool may_be_vector = has_value && (mnemonic.vector_width > 1 || is_packed);
  if (is_vector && !may_be_vector) {
    return fmt::format("is the vector '{}', but {} is wanted", body_.register_name(operand.index),
                       wanted_by(rule));
  }
  if (is_vector || (has_value && takes_register(rule, range.type))) return {};
  return fmt::format("is '{}', a .{} register, but {} is wanted",
                     body_.register_name(operand.index), info(range.type).text, wanted_by(rule));
}

// A function's name and name+offset are numbers to ptxas; labels that are not known yet are none.
std::string OperandCheck::why_no_symbol(const OperandRule& rule, const Mnemonic& mnemonic,
                                        const Operand& operand) const {
  if (rule.what == What::targets) {
    const bool is_list = operand.base == Base::targets && !operand.has_offset &&
                         body_.targets[operand.index].kind == TargetSet::Kind::branch_targets;
    return is_list ? "" : fmt::format("is not {}", wanted_by(rule));
  }
  if (operand.base == Base::unresolved && operand.has_offset && rule.what == What::label)
    return "is a label with an offset";
  if (operand.base == Base::unresolved) return {};
  if (rule.what == What::label) {
    const bool is_label = operand.base == Base::label && !operand.has_offset;
    return is_label ? "" : fmt::format("is not {}", wanted_by(rule));
  }
  const TypeKind kind = info(rule.type).kind;
  const bool is_number = kind == TypeKind::bits || kind == TypeKind::unsigned_ ||
                         kind == TypeKind::signed_ || rule.what == What::pointer;
  const bool takes_offset = is_number && !rule.is_written && !rule.needs_register &&
                            !(rule.is_exact && info(rule.type).bits != 32) &&
                            (!rule.takes_variable || mnemonic.has(Modifier::to));
  if (operand.has_offset && takes_offset) return {};
  const bool takes_function = rule.what == What::typed && !rule.is_exact && !rule.is_written;
  if (operand.base == Base::function && takes_function) return {};
  const StateSpace space = space_of(operand);
  if (!rule.takes_variable || space == StateSpace::none || !is_number) {
    return fmt::format("is a name, but {} is wanted", wanted_by(rule));
  }
  const bool is_shared = mnemonic.opcode == Opcode::mapa || mnemonic.opcode == Opcode::getctarank;
  const StateSpace wanted = is_shared ? StateSpace::shared : mnemonic.space;
  if (mnemonic.has(Modifier::to))
    return "is a variable, but a generic address in a register is wanted";
  if (wanted != StateSpace::none && wanted != space) {
    return fmt::format("names a variable in .{} memory, but one in .{} memory is wanted",
                       name(space), name(wanted));
  }
  return {};
}

// Where a named variable or parameter lies; none for functions, labels and textures.
StateSpace OperandCheck::space_of(const Operand& operand) const {
  switch (operand.base) {
    case Base::parameter:
    case Base::result:
      return StateSpace::param;
    case Base::variable:
      return body_.variables[operand.index].space;
    case Base::global:
      return module_.variables[operand.index].space;
    default:
      return StateSpace::none;
  }
}

std::string OperandCheck::why_no_address(const Mnemonic& mnemonic, const Operand& operand,
                                         std::size_t number) const {
  if (operand.base == Base::unresolved) return {};
  if (operand.base == Base::none) {
    return mnemonic.space == StateSpace::local
               ? ""
               : "is a number, but only .local memory has addresses that are numbers";
  }
  if (operand.base == Base::reg) {
    const RegisterRange& range = body_.range_of(operand.index);
    const TypeInfo& type = info(range.type);
    const bool is_number = type.kind == TypeKind::bits || type.kind == TypeKind::unsigned_ ||
                           type.kind == TypeKind::signed_;
    if (is_number && type.bits <= 64 && range.vector_width == 1) return {};
    return fmt::format(
        "is an address in '{}', a .{} register, but an integer register of 64 or 32 bits is wanted",
        body_.register_name(operand.index), type.text);
  }
  const StateSpace space = space_of(operand);
  if (space == StateSpace::none) return "is an address of a name without memory";
  const StateSpace wanted = space_of_address(mnemonic, number);
  const bool has_generic =
      space == StateSpace::global || space == StateSpace::shared || space == StateSpace::local;
  if (space == StateSpace::texture || space == wanted ||
      (wanted == StateSpace::none && has_generic))
    return {};
  return fmt::format("names a variable in .{} memory, but the instruction accesses {} memory",
                     name(space),
                     wanted == StateSpace::none ? "generic" : fmt::format(".{}", name(wanted)));
}

// What an element is, among the others: an integer, a floating-point or packed number, or bits,
// which go with each.
TypeKind OperandCheck::kind_of_element(const Operand& element) const {
  if (element.kind == OperandKind::immediate) {
    const bool is_float =
        element.immediate == ImmediateKind::f32 || element.immediate == ImmediateKind::f64;
    return is_float ? TypeKind::floating : TypeKind::unsigned_;
  }
  if (element.kind != OperandKind::reg) return TypeKind::bits;
  const TypeKind kind = info(body_.register_type(element.index)).kind;
  return kind == TypeKind::signed_ ? TypeKind::unsigned_ : kind;
}

std::string OperandCheck::why_no_vector(const OperandRule& rule, const Mnemonic& mnemonic,
                                        const Operand& operand) const {
  if (mnemonic.has(Modifier::rs)) return {};  // four numbers into one
  const auto children = body_.children(operand);
  OperandRule each = rule;
  each.takes_sink = rule.is_written;
  each.takes_special = false;  // they are judged as registers
  if (mnemonic.opcode == Opcode::mov && mnemonic.vector_width == 1) {
    if (info(rule.type).kind != TypeKind::bits)
      return "is a vector, which 'mov' takes with an untyped type only, such as .b64";
    const auto bits =
        static_cast<unsigned>(info(rule.type).bits / std::max<std::size_t>(children.size(), 1));
    each.type = untyped(bits);
    if (info(each.type).bits * children.size() != info(rule.type).bits)
      return fmt::format("has {} elements, which do not make up type .{}", children.size(),
                         info(rule.type).text);
    each.takes_variable = false;
  } else if (rule.what != What::typed ||
             (mnemonic.vector_width == 1 && !is_access(mnemonic.opcode))) {
    return fmt::format("is a vector, but {} is wanted", wanted_by(rule));
  }
  return why_no_elements(each, mnemonic, children);
}

// Special registers among elements that are read are untyped registers of their width. With an
// untyped register beside them the others may have any type; integers, floating-point and
// packed numbers do not stand side by side.
std::string OperandCheck::why_no_elements(OperandRule rule, const Mnemonic& mnemonic,
                                          std::span<const Operand> elements) const {
  bool has_untyped = false;
  bool has_constant = false;
  for (const Operand& element : elements) {
    const bool is_sink = element.kind == OperandKind::sink;
    has_untyped |= !is_sink && kind_of_element(element) == TypeKind::bits;
    has_constant |= element.kind == OperandKind::immediate;
  }
  const Type typed = rule.type;
  if (has_untyped && info(typed).kind != TypeKind::predicate) rule.type = untyped(info(typed).bits);
  TypeKind before = TypeKind::bits;
  for (const Operand& element : elements) {
    const bool takes_typed = !rule.is_written && element.kind == OperandKind::immediate &&
                             takes_constant(typed, element.immediate);
    const std::string why = is_special_element(rule, element, has_constant) || takes_typed
                                ? ""
                                : why_no_operand(rule, mnemonic, element);
    if (!why.empty()) return "has an element that " + why;
    const TypeKind kind = kind_of_element(element);
    if (kind != TypeKind::bits && before != TypeKind::bits && kind != before)
      return "has elements of different types side by side";
    before = kind;
    const bool has_width = element.kind == OperandKind::reg || element.kind == OperandKind::special;
    if (!is_access(mnemonic.opcode) || !has_width) continue;
    const Type type = element.kind == OperandKind::reg
                          ? body_.register_type(element.index)
                          : info(static_cast<SpecialRegister>(element.index)).type;
    rule.type = untyped(info(type).bits);  // as wide as the first
    rule.takes_wider = false;
  }
  return {};
}

}  // namespace demarc::ptx
