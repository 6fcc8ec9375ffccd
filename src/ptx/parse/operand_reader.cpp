// Parses operands of every form and resolves the names in them.
#include "parse/operand_reader.hpp"

#include <fmt/format.h>

#include "parse/constant_expression.hpp"

namespace demarc::ptx {
namespace {

constexpr int deepest_operand = 4;

// The selector that a suffix names; Selector::none when it is not a selector at all.
Selector selector_of(std::string_view text) {
  struct Row {
    std::string_view text;
    Selector selector;
  };
  constexpr Row rows[] = {{"x", Selector::x},   {"y", Selector::y},   {"z", Selector::z},
                          {"w", Selector::w},   {"r", Selector::x},   {"g", Selector::y},
                          {"b", Selector::z},   {"a", Selector::w},   {"b0", Selector::b0},
                          {"b1", Selector::b1}, {"b2", Selector::b2}, {"b3", Selector::b3},
                          {"h0", Selector::h0}, {"h1", Selector::h1}};
  for (const Row& row : rows) {
    if (row.text == text) return row.selector;
  }
  const bool is_simd = text.size() >= 3 && text.size() <= 5 && (text[0] == 'b' || text[0] == 'h') &&
                       text.find_first_not_of("01234567", 1) == std::string_view::npos;
  return is_simd ? Selector::other : Selector::none;
}

std::uint64_t pack_selector(std::string_view text) {
  std::uint64_t packed = 0;
  std::memcpy(&packed, text.data(), text.size());
  return packed;
}

// Labels and variables, which come often, need not be looked up among the special registers.
bool may_be_special(std::string_view name) {
  return name[0] == '%';
}

bool ends_operand(char c) {
  return c == ',' || c == ';' || c == '}' || c == ']' || c == ')';
}

}  // namespace

// `%r12` where `%r<20>` is declared, unless a register of that very name hides it.
bool OperandReader::find_numbered_register(std::string_view name, std::uint32_t& reg) {
  std::size_t stem_length = name.size();
  while (stem_length > 0 && Cursor::is(name[stem_length - 1], char_digit)) --stem_length;
  const std::size_t digits = name.size() - stem_length;
  if (digits == 0 || digits > 9 || stem_length == 0) return false;
  const std::uint32_t stem = names_.intern_short(name.substr(0, stem_length));
  const Binding& binding = names_.stem(stem);
  if (binding.base == Base::none) return false;
  std::uint32_t number = 0;
  for (std::size_t i = stem_length; i < name.size(); ++i) {
    number = number * 10 + static_cast<std::uint32_t>(name[i] - '0');
  }
  const RegisterRange& range = body_.registers[binding.index];
  if (number >= range.count) return false;
  if (names_.stem_is_shadowed(stem)) {
    const Binding& exact = names_.binding(names_.intern(name));
    if (exact.base != Base::none && exact.depth >= binding.depth) return false;
  }
  reg = range.first + number;
  return true;
}

// A name that is not a numbered register: what it is bound to, a special register, or something
// that may be defined further down. operand.kind stays `sink` only for a register (index is set).
void OperandReader::resolve_name(std::string_view name, Operand& operand) {
  const std::uint32_t number = names_.intern(name);
  const Binding& binding = names_.binding(number);
  operand.base = Base::none;
  if (binding.base == Base::reg) {
    operand.index = binding.index;
    return;
  }
  if (binding.base != Base::none) {
    operand.kind = OperandKind::symbol;
    operand.base = binding.base;
    operand.index = binding.index;
    return;
  }
  const auto special = may_be_special(name) ? find_special_register(name) : std::nullopt;
  if (special) {
    operand.kind = OperandKind::special;
    operand.index = static_cast<std::uint32_t>(*special);
    return;
  }
  operand.kind = OperandKind::symbol;
  operand.base = Base::unresolved;
  operand.index = number;
}

bool OperandReader::parse_guard(Instruction& instruction) {
  ++cursor_.at;
  instruction.predicate_negated = cursor_.take('!');
  cursor_.skip();
  const std::uint32_t offset = cursor_.offset();
  const std::string_view name = cursor_.name();
  Operand operand;
  if (!name.empty() && !find_numbered_register(name, operand.index)) resolve_name(name, operand);
  if (!name.empty() && operand.kind == OperandKind::sink) operand.kind = OperandKind::reg;
  if (name.empty() || operand.kind != OperandKind::reg) {
    return fail_at(offset, fmt::format("a predicate register was expected after '@', found '{}'",
                                       excerpt(name, 60)));
  }
  if (body_.register_type(operand.index) != Type::pred) {
    return fail_at(offset, fmt::format("'{}' guards an instruction, but is not a .pred register",
                                       excerpt(name, 60)));
  }
  instruction.predicate = operand.index;
  return true;
}

bool OperandReader::read_list(const Mnemonic& mnemonic) {
  scratch_.clear();
  in_call_ = mnemonic.opcode == Opcode::call;
  takes_label_ = mnemonic.opcode == Opcode::bra || !mnemonic.understood;
  if (cursor_.is_next(';')) return true;
  do {
    Operand operand;
    if (!parse_operand(operand, 0)) return false;
    scratch_.push_back(operand);
  } while (cursor_.take(','));
  return true;
}

// WARP_SZ is a number.
bool OperandReader::begins_name() const {
  return Cursor::is(cursor_.peek(), char_start) && !is_warp_size(cursor_);
}

bool OperandReader::parse_operand(Operand& operand, int depth) {
  if (depth > deepest_operand) return fail("operands are nested too deeply");
  cursor_.skip();
  const char c = cursor_.peek();
  if (begins_name()) return parse_named(operand, depth);
  if (Cursor::is(c, char_digit)) return parse_immediate(operand);
  switch (c) {
    case '[':
      return parse_bracket(operand, depth);
    case '{':
      return parse_group(operand, OperandKind::vector, '}', depth);
    case '!':
    case '-': {
      const char* sign = cursor_.at++;
      cursor_.skip();
      if (begins_name()) {
        if (!parse_named(operand, depth)) return false;
        if (operand.kind == OperandKind::symbol) {
          return fail_at(cursor_.offset_of(sign), "an address has no sign and is not negated");
        }
        if (c == '!') {
          operand.negated = true;
        } else {
          operand.minus = true;
        }
        return true;
      }
      cursor_.at = sign;
      return parse_immediate(operand);
    }
    case '(': {
      if (in_call_) return parse_group(operand, OperandKind::list, ')', depth);
      return parse_immediate(operand);
    }
    default:
      break;
  }
  if (cursor_.done() || ends_operand(c)) return fail("an operand was expected, " + found());
  return parse_immediate(operand);
}

bool OperandReader::parse_immediate(Operand& operand) {
  const char* first = cursor_.at;
  const std::uint32_t line = cursor_.line;
  Constant constant;
  bool plain = false;
  if (Cursor::is(*first, char_digit) && read_literal(cursor_, constant) == nullptr) {
    cursor_.skip();
    plain = ends_operand(cursor_.peek());
  }
  if (!plain) {
    cursor_.at = first;
    cursor_.line = line;
    if (ConstantError error = read_constant(cursor_, constant)) {
      cursor_.skip();
      return fail(fmt::format("{}, {}", error, found()));
    }
  }
  operand.kind = OperandKind::immediate;
  operand.immediate = constant.kind;
  operand.value = constant.bits;
  return true;
}

bool OperandReader::parse_named(Operand& operand, int depth) {
  const char* first = cursor_.at;
  const std::string_view name = cursor_.name();
  if (find_numbered_register(name, operand.index)) {
    operand.kind = OperandKind::reg;
  } else if (name == "_") {
    operand.kind = OperandKind::sink;
  } else {
    resolve_name(name, operand);
    if (operand.kind == OperandKind::sink) operand.kind = OperandKind::reg;
  }
  cursor_.skip();
  if (cursor_.is_next('.') && !parse_selector(operand)) return false;
  cursor_.skip();
  const char c = cursor_.peek();
  if (c == '|') return parse_pair(operand);
  if (operand.kind != OperandKind::symbol) return true;
  if (operand.base == Base::unresolved) unresolved_at_ = cursor_.offset_of(first);
  if (c == '[') return parse_element(operand, depth);
  return parse_offset(operand);
}

bool OperandReader::parse_selector(Operand& operand) {
  const char* dot = cursor_.at;
  const std::string_view text = word_after_dot();
  const Selector selector = selector_of(text);
  if (selector == Selector::none ||
      (operand.kind != OperandKind::reg && operand.kind != OperandKind::special)) {
    return fail_at(cursor_.offset_of(dot),
                   fmt::format("'.{}' does not select a part of an operand", excerpt(text, 40)));
  }
  if (operand.kind == OperandKind::reg) {
    const std::size_t elements = body_.range_of(operand.index).vector_width;
    const auto element = static_cast<std::size_t>(selector) - static_cast<std::size_t>(Selector::x);
    const bool names_element = selector <= Selector::w;
    if (names_element ? elements == 1 || element >= elements : elements > 1) {
      return fail_at(
          cursor_.offset_of(dot),
          fmt::format("'.{}' is not a part of '{}', a register of {} element{}", excerpt(text, 40),
                      body_.register_name(operand.index), elements, elements == 1 ? "" : "s"));
    }
  }
  operand.selector = selector;
  if (selector == Selector::other) operand.value = pack_selector(text);
  return true;
}

bool OperandReader::parse_pair(Operand& operand) {
  ++cursor_.at;
  cursor_.skip();
  Operand second;
  if (cursor_.is_next('!')) {
    second.negated = true;
    ++cursor_.at;
    cursor_.skip();
  }
  const std::string_view name = cursor_.name();
  if (name.empty()) return fail("a register was expected after '|', " + found());
  if (find_numbered_register(name, second.index)) {
    second.kind = OperandKind::reg;
  } else if (name != "_") {
    resolve_name(name, second);
    if (second.kind == OperandKind::sink) second.kind = OperandKind::reg;
  }
  cursor_.skip();
  operand = both(operand, second, OperandKind::pair);
  return true;
}

Operand OperandReader::both(const Operand& first, const Operand& second, OperandKind kind) {
  const std::size_t start = scratch_.size();
  scratch_.push_back(first);
  scratch_.push_back(second);
  Operand group{};
  group.kind = kind;
  group.index = 2;
  group.value = flush(start);
  return group;
}

// name[i]
bool OperandReader::parse_element(Operand& operand, int depth) {
  ++cursor_.at;
  Operand index;
  if (!parse_operand(index, depth + 1)) return false;
  if (!expect(']', "an array index")) return false;
  cursor_.skip();
  operand = both(operand, index, OperandKind::element);
  return true;
}

// {a, b} and (a, b)
bool OperandReader::parse_group(Operand& operand, OperandKind kind, char close, int depth) {
  ++cursor_.at;
  const std::size_t start = scratch_.size();
  if (!cursor_.take(close)) {
    do {
      Operand child;
      if (!parse_operand(child, depth + 1)) return false;
      scratch_.push_back(child);
    } while (cursor_.take(','));
    if (!expect(close, kind == OperandKind::vector ? "a vector" : "a list of arguments")) {
      return false;
    }
  }
  cursor_.skip();
  operand.kind = kind;
  operand.index = static_cast<std::uint32_t>(scratch_.size() - start);
  operand.value = flush(start);
  return true;
}

// [base+offset], or [base+offset, more...]
bool OperandReader::parse_bracket(Operand& operand, int depth) {
  ++cursor_.at;
  cursor_.skip();
  if (!parse_address(operand)) return false;
  if (cursor_.take(']')) {
    cursor_.skip();
    if (cursor_.is_next('.')) {
      const char* dot = cursor_.at;
      if (word_after_dot() != "unified") {
        return fail_at(cursor_.offset_of(dot), "only '.unified' may follow an address");
      }
      operand.selector = Selector::unified;
    }
    cursor_.skip();
    return true;
  }
  const std::size_t start = scratch_.size();
  scratch_.push_back(operand);
  while (cursor_.take(',')) {
    Operand child;
    if (!parse_operand(child, depth + 1)) return false;
    scratch_.push_back(child);
  }
  if (!expect(']', "an address")) return false;
  cursor_.skip();
  operand = Operand{};
  operand.kind = OperandKind::tuple;
  operand.index = static_cast<std::uint32_t>(scratch_.size() - start);
  operand.value = flush(start);
  return true;
}

bool OperandReader::parse_address(Operand& operand) {
  const char* first = cursor_.at;
  if (!begins_name()) {
    if (!parse_immediate(operand)) return false;
    if (operand.immediate == ImmediateKind::f32 || operand.immediate == ImmediateKind::f64) {
      return fail_at(cursor_.offset_of(first), "an address must be an integer");
    }
    operand.kind = OperandKind::address;
    operand.base = Base::none;
    return true;
  }
  const std::string_view name = cursor_.name();
  if (find_numbered_register(name, operand.index)) {
    operand.base = Base::reg;
  } else {
    resolve_name(name, operand);
    if (operand.kind == OperandKind::special) {
      return fail_at(cursor_.offset_of(first), "a special register cannot be an address");
    }
    if (operand.kind == OperandKind::sink) operand.base = Base::reg;
    if (operand.base == Base::unresolved) unresolved_at_ = cursor_.offset_of(first);
  }
  operand.kind = OperandKind::address;
  cursor_.skip();
  return parse_offset(operand);
}

// +expression behind a name; nothing is subtracted but by a sign in the expression.
bool OperandReader::parse_offset(Operand& operand) {
  if (cursor_.is_next('-')) return fail("an offset is added, as in [p+-4], not subtracted");
  if (!cursor_.is_next('+')) return true;
  ++cursor_.at;
  operand.has_offset = true;
  Constant constant;
  if (ConstantError error = read_constant(cursor_, constant)) {
    cursor_.skip();
    return fail(fmt::format("an offset: {}, {}", error, found()));
  }
  if (is_float(constant)) return fail("an offset must be an integer");
  operand.value = constant.bits;
  cursor_.skip();
  return true;
}

// The operand just added names something that is not known yet.
void OperandReader::refer_later(std::uint32_t name) {
  pending_.push_back({PendingReference::Kind::operand,
                      static_cast<std::uint32_t>(body_.operands.size()) - 1, 0, name,
                      unresolved_at_, names_.pending(name), false, takes_label_});
  names_.pending(name) = static_cast<std::uint32_t>(pending_.size() - 1);
}

std::uint32_t OperandReader::flush(std::size_t first) {
  const auto start = static_cast<std::uint32_t>(body_.operands.size());
  for (std::size_t i = first; i < scratch_.size(); ++i) {
    const Operand& operand = scratch_[i];
    body_.operands.push_back(operand);
    if (operand.base == Base::unresolved) refer_later(operand.index);
  }
  scratch_.resize(first);
  return start;
}

}  // namespace demarc::ptx
