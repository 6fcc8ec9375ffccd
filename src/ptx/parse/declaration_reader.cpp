// Parses declarations of registers and variables, with their initialisers.
#include "parse/declaration_reader.hpp"

#include <fmt/format.h>

#include <limits>

#include "parse/initialiser_check.hpp"

namespace demarc::ptx {
namespace {

constexpr std::uint64_t max_registers = 1U << 24U;
constexpr std::uint64_t max_variable_range = 65'536;
constexpr std::uint64_t max_variable_bytes = std::uint64_t{1} << 46U;  // as a launch's buffer

// The number that digits write; more than nine of them give a number that no register has.
std::uint64_t number_of(std::string_view digits) {
  if (digits.size() > 9) return max_registers;
  std::uint64_t number = 0;
  for (const char digit : digits) number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  return number;
}

}  // namespace

bool DeclarationReader::declare(std::string_view name, Base base, std::uint32_t index) {
  if (names_.bind(names_.intern(name), base, index)) return true;
  return fail_at(cursor_.offset_of(name.data()),
                 fmt::format("'{}' is declared twice in this scope", excerpt(name, 60)));
}

bool DeclarationReader::parse_range_count(std::uint64_t& count) {
  ++cursor_.at;
  if (!read_uint(max_registers, "a count of names", count)) return false;
  return expect('>', "a count of names");
}

// .reg [.v2|.v4] .type name, name<count> ... ;
bool DeclarationReader::parse_registers(std::vector<RegisterRange>& ranges, bool in_body) {
  RegisterRange range;
  cursor_.skip();
  while (cursor_.is_next('.')) {
    const char* dot = cursor_.at;
    const std::string_view word = word_after_dot();
    if (word == "v2" || word == "v4" || word == "v8") {
      range.vector_width = static_cast<std::uint8_t>(word[1] - '0');
    } else if (word == "align") {
      std::uint64_t ignored = 0;
      if (!read_uint(1U << 30U, "an alignment", ignored)) return false;
    } else if (range.type = find_type(word); range.type == Type::none) {
      return fail_at(cursor_.offset_of(dot),
                     fmt::format("'.{}' is not a type of a register", excerpt(word, 40)));
    }
    cursor_.skip();
  }
  if (range.type == Type::none) return fail("'.reg' needs a type, as in '.reg .b32 %r<4>;'");
  do {
    cursor_.skip();
    range.name = cursor_.name();
    range.count = 1;
    range.is_range = false;
    if (range.name.empty()) return fail("a register name was expected, " + found());
    if (const std::string why = why_no_name(range.name); !why.empty()) return fail(why);
    cursor_.skip();
    if (cursor_.is_next('<')) {
      std::uint64_t count = 0;
      if (!parse_range_count(count)) return false;
      range.count = static_cast<std::uint32_t>(count);
      range.is_range = true;
    }
    std::uint32_t& total = in_body ? body_.register_count : module_register_count_;
    if (!declare_register(range, ranges, total)) return false;
    bind_registers(ranges, static_cast<std::uint32_t>(ranges.size()) - 1);
  } while (cursor_.take(','));
  return expect(';', "a register declaration");
}

bool DeclarationReader::declare_register(RegisterRange range, std::vector<RegisterRange>& ranges,
                                         std::uint32_t& total) {
  if (total + static_cast<std::uint64_t>(range.count) > max_registers) {
    return fail(fmt::format("a function has at most {} registers", max_registers));
  }
  if (const std::string why = why_no_registers(range); !why.empty()) {
    return fail_at(cursor_.offset_of(range.name.data()),
                   fmt::format("'{}': {}", excerpt(range.name, 60), why));
  }
  range.first = total;
  total += range.count;
  ranges.push_back(range);
  return true;
}

void DeclarationReader::bind_registers(const std::vector<RegisterRange>& ranges,
                                       std::uint32_t index) {
  const RegisterRange& range = ranges[index];
  const std::uint32_t name = names_.intern(range.name);
  bool fresh = true;
  if (range.is_range) {
    fresh = names_.bind_stem(name, index) &&
            !(names_.stem_is_shadowed(name) &&
              names_.has_register_here([&](std::string_view one) {  // a<3> behind a1
                return one.size() > range.name.size() && one.starts_with(range.name) &&
                       one.find_first_not_of("0123456789", range.name.size()) ==
                           std::string_view::npos &&
                       number_of(one.substr(range.name.size())) < range.count;
              }));
  } else {
    fresh = names_.bind(name, Base::reg, range.first);
    const std::size_t digits = range.name.find_last_not_of("0123456789") + 1;
    if (digits < range.name.size()) {
      const std::uint32_t stem = names_.intern(range.name.substr(0, digits));
      names_.shadow_stem(stem);
      const Binding& numbered = names_.stem(stem);  // a1 behind a<3>
      fresh = fresh && (numbered.base == Base::none || numbered.depth != names_.depth() ||
                        number_of(range.name.substr(digits)) >= ranges[numbered.index].count);
    }
  }
  if (fresh) return;
  fail_at(cursor_.offset_of(range.name.data()),
          fmt::format("'{}' is declared twice in this scope", excerpt(range.name, 60)));
}

// .space qualifiers name [dimensions] [= initialiser], ... ;
bool DeclarationReader::parse_variables(StateSpace space, Declarator declarator, bool in_body) {
  Variable prototype;
  prototype.space = space;
  prototype.linkage = declarator.linkage;
  prototype.align = declarator.align;
  prototype.line = cursor_.line;
  if (!parse_variable_type(prototype)) return false;
  do {
    Variable variable = prototype;
    if (!parse_declarator(variable)) return false;
    cursor_.skip();
    if (cursor_.is_next('<')) {  // .param .b32 p<4>;
      std::uint64_t count = 0;
      if (!parse_range_count(count)) return false;
      if (count > max_variable_range) return fail("too many variables in one declaration");
      const std::string_view stem = variable.name;
      for (std::uint64_t i = 0; i < count; ++i) {
        variable.name = module_.keep(fmt::format("{}{}", stem, i));
        variable.text_offset = cursor_.offset();
        if (!add_variable(variable, in_body)) return false;
      }
      continue;
    }
    if (cursor_.take('=') && !parse_initialiser(variable)) return false;
    check_variable(variable, in_body ? DeclaredIn::body : DeclaredIn::module);
    if (!add_variable(variable, in_body)) return false;
  } while (cursor_.take(','));
  return expect(';', "a declaration");
}

// What is refused is declared all the same, so that its uses cause no further errors.
void DeclarationReader::check_variable(const Variable& variable, DeclaredIn place) {
  const std::string why = why_no_variable(variable, place);
  if (why.empty()) return;
  fail_at(variable.text_offset, fmt::format("'{}': {}", excerpt(variable.name, 60), why));
}

bool DeclarationReader::add_variable(const Variable& variable, bool in_body) {
  std::vector<Variable>& variables = in_body ? body_.variables : module_.variables;
  const auto index = static_cast<std::uint32_t>(variables.size());
  variables.push_back(variable);
  const std::uint32_t name = names_.intern(variable.name);
  const Base base = in_body ? Base::variable : Base::global;
  // At module scope a name may be declared several times; the definition or, without one, the
  // declaration with a size stands for the memory.
  const Binding& old = names_.binding(name);
  const bool again = !in_body && old.base == Base::global;
  bool stands = true;
  if (again) {
    Variable& before = variables[old.index];
    const std::string why = why_not_again(before, variable);
    if (!why.empty()) {
      return fail_at(variable.text_offset,
                     fmt::format("'{}': {}", excerpt(variable.name, 60), why));
    }
    stands = variable.linkage != Linkage::external ||
             (before.linkage == Linkage::external && before.byte_size() == 0);
    (stands ? before : variables[index]).is_repeated = true;
  }
  if (in_body) {
    body_.statements.push_back({StatementKind::variable, index});
  } else {
    module_.items.push_back({ItemKind::variable, index});
  }
  if (!stands || names_.bind(name, base, index) || again) return true;
  fail_at(variable.text_offset,
          fmt::format("'{}' is declared twice in this scope", excerpt(variable.name, 60)));
  return true;
}

bool DeclarationReader::parse_variable_type(Variable& variable) {
  cursor_.skip();
  while (cursor_.is_next('.')) {
    const char* dot = cursor_.at;
    const std::string_view word = word_after_dot();
    const Type type = find_type(word);
    if (type != Type::none) {
      variable.type = type;
    } else if (word == "v2" || word == "v4" || word == "v8") {
      variable.vector_width = static_cast<std::uint8_t>(word[1] - '0');
    } else if (word == "align") {
      if (!read_alignment(variable.is_pointer ? variable.pointee_align : variable.align))
        return false;
    } else if (word == "ptr") {
      variable.is_pointer = true;
    } else if (word == "attribute") {
      if (!expect('(', "'.attribute'")) return false;
      for (int depth = 1; depth > 0 && !cursor_.done() && !cursor_.is_next(';'); ++cursor_.at) {
        depth += cursor_.is_next('(') ? 1 : (cursor_.is_next(')') ? -1 : 0);
      }
      variable.attributes =
          variable.attributes.empty()
              ? text_since(dot)
              : module_.keep(fmt::format("{} {}", variable.attributes, text_since(dot)));
    } else if (variable.is_pointer && find_state_space(word) != StateSpace::none) {
      variable.pointee = find_state_space(word);
    } else {
      return fail_at(
          cursor_.offset_of(dot),
          fmt::format("'.{}' is not a type or a qualifier of a variable", excerpt(word, 40)));
    }
    cursor_.skip();
  }
  if (variable.type == Type::none) return fail("a type was expected, " + found());
  return true;
}

bool DeclarationReader::read_alignment(std::uint32_t& align) {
  const std::uint32_t offset = cursor_.offset();
  std::uint64_t value = 0;
  if (!read_uint(1U << 30U, "an alignment", value)) return false;
  if ((value & (value - 1)) != 0 || value == 0)
    return fail_at(offset, "an alignment must be a power of two");
  align = static_cast<std::uint32_t>(value);
  return true;
}

// .align 8 .global .b32 x; where `word` becomes that of the state space.
bool DeclarationReader::parse_leading_alignment(Declarator& declarator, std::string_view& word) {
  if (!read_alignment(declarator.align)) return false;
  cursor_.skip();
  word = word_after_dot();
  const StateSpace space = find_state_space(word);
  return (space != StateSpace::none && space != StateSpace::reg) ||
         fail("a state space with addresses was expected behind the alignment, " + found());
}

bool DeclarationReader::parse_declarator(Variable& variable) {
  cursor_.skip();
  variable.text_offset = cursor_.offset();
  variable.name = cursor_.name();
  if (variable.name.empty()) return fail("a variable name was expected, " + found());
  while (cursor_.take('[')) {
    variable.is_array = true;
    std::uint64_t size = 0;
    cursor_.skip();
    if (!cursor_.is_next(']') &&
        !read_uint(std::numeric_limits<std::int64_t>::max(), "the size of an array", size)) {
      return false;
    }
    variable.dimensions.push_back(size);
    if (!expect(']', "the size of an array")) return false;
  }
  return check_size(variable);
}

bool DeclarationReader::check_size(const Variable& variable) {
  if (variable.byte_size() <= max_variable_bytes) return true;
  return fail_at(variable.text_offset,
                 fmt::format("'{}' has more than {} bytes, the limit of a variable",
                             excerpt(variable.name, 60), max_variable_bytes));
}

// What an initialiser names stands in front of it.
ConstantError DeclarationReader::check_symbol(const InitialAddress& address) {
  const Binding& binding = names_.binding(names_.intern(address.symbol));
  if (binding.base == Base::function) {
    return address.is_generic || address.addend != 0 ? "a function's address stands alone"
                                                     : nullptr;
  }
  if (binding.base != Base::global) return "it names nothing that is declared in front of it";
  const StateSpace space = module_.variables[binding.index].space;
  return space == StateSpace::global || space == StateSpace::constant
             ? nullptr
             : "only variables in .global and .const memory have addresses that are known";
}

bool DeclarationReader::parse_initialiser(Variable& variable) {
  cursor_.skip();
  const char* first = cursor_.at;
  if (variable.space != StateSpace::global && variable.space != StateSpace::constant) {
    return fail(fmt::format("'{}' lies in .{} memory, which has no initial values",
                            excerpt(variable.name, 60), ptx::name(variable.space)));
  }
  if (variable.linkage == Linkage::external) {
    return fail(fmt::format("'{}' is external: its module gives it its values",
                            excerpt(variable.name, 60)));
  }
  InitialiserCheck check(variable,
                         [this](const InitialAddress& address) { return check_symbol(address); });
  InitialiserReader reader(cursor_, check);
  if (const char* error = reader.read()) {
    return fail(
        fmt::format("initialiser of '{}': {}, {}", excerpt(variable.name, 60), error, found()));
  }
  variable.initialiser = text_since(first);
  if (!variable.dimensions.empty() && variable.dimensions[0] == 0)
    variable.dimensions[0] = check.outermost();
  return check_size(variable);
}

}  // namespace demarc::ptx
