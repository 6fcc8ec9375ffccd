// Parses everything at module scope: version, target, files, sections, declarations.
#include "parse/module_reader.hpp"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "demarc/base/rounding.hpp"

namespace demarc::ptx {
namespace {

Linkage linkage_of(std::string_view word) {
  if (word == "visible") return Linkage::visible;
  if (word == "extern") return Linkage::external;
  if (word == "weak") return Linkage::weak;
  if (word == "common") return Linkage::common;
  return Linkage::none;
}

constexpr std::uint64_t max_u32 = std::numeric_limits<std::uint32_t>::max();

// Bytes of those that `counts` names, each at the next place that is aligned for it.
template <class Counts>
std::uint64_t bytes_in_order(const std::vector<Variable>& variables, Counts counts) {
  std::uint64_t bytes = 0;
  for (const Variable& variable : variables) {
    if (!counts(variable) || bytes > max_u32) continue;
    const std::uint64_t align = variable.alignment();
    bytes = round_up(bytes, align) + variable.byte_size();
  }
  return bytes;
}

}  // namespace

void ModuleReader::parse_module() {
  debug_.check_characters();
  while (true) {
    cursor_.skip();
    if (cursor_.done()) break;
    parse_item();
  }
  finish_module();
  functions_.seal();
}

void ModuleReader::parse_item() {
  const char* start = cursor_.at;
  if (cursor_.is_next('@') && start[1] == '@') {
    fail("'@@DWARF' is not part of PTX since version 2.0: debug data stand in '.section'");
    const void* newline = std::memchr(start, '\n', static_cast<std::size_t>(cursor_.end - start));
    cursor_.at = newline != nullptr ? static_cast<const char*>(newline) : cursor_.end;
    return;
  }
  const std::string_view word = word_after_dot();
  if (word.empty()) {
    fail("a directive was expected at module scope, " + found());
  } else {
    check_preamble(word, start);
    if (parse_directive(word, start)) return;
  }
  recover();
  if (cursor_.is_next('{')) {  // what belongs to the broken directive
    ++cursor_.at;
    skip_block();
  } else if (cursor_.is_next('}') || (cursor_.at == start && !cursor_.done())) {
    ++cursor_.at;
  }
}

// The first directives of a module are .version and .target.
void ModuleReader::check_preamble(std::string_view word, const char* start) {
  const bool is_early = word == "version" || (word == "target" && saw_version_) ||
                        (word == "address_size" && saw_version_ && saw_target_);
  if (is_early || reported_preamble_ || (saw_version_ && saw_target_)) {
    return;
  }
  reported_preamble_ = true;
  fail_at(cursor_.offset_of(start),
          saw_version_ ? "'.target' is missing: it must stand before this, as in '.target sm_80'"
                       : "'.version' is missing: a module begins with it, as in '.version 8.0'");
}

bool ModuleReader::parse_directive(std::string_view word, const char* start) {
  if (word == "version") return parse_version();
  if (word == "target") return parse_target();
  if (word == "address_size") return parse_address_size();
  if (word == "file") return debug_.parse_file();
  if (word == "section") return debug_.parse_section(start);
  Declarator declarator;
  declarator.start = start;
  while (linkage_of(word) != Linkage::none) {
    if (declarator.linkage != Linkage::none) return fail("more than one linkage directive");
    declarator.linkage = linkage_of(word);
    cursor_.skip();
    word = word_after_dot();
    if (word.empty()) return fail("a declaration was expected after the linkage, " + found());
  }
  return parse_declaration(word, declarator);
}

bool ModuleReader::parse_declaration(std::string_view word, Declarator declarator) {
  if (word == "entry" || word == "func")
    return functions_.parse_function(word == "entry", declarator);
  if (word == "reg") {
    const std::size_t before = module_.registers.size();
    if (!declarations_.parse_registers(module_.registers, false)) return false;
    for (std::size_t i = before; i < module_.registers.size(); ++i) {
      module_.items.push_back({ItemKind::registers, static_cast<std::uint32_t>(i)});
    }
    return true;
  }
  if (word == "align" && !declarations_.parse_leading_alignment(declarator, word)) return false;
  const StateSpace space = find_state_space(word);
  if (space != StateSpace::none) return declarations_.parse_variables(space, declarator, false);
  if (declarator.linkage != Linkage::none) {
    return fail(fmt::format("'.{}' cannot follow a linkage directive", excerpt(word, 40)));
  }
  if (word == "pragma" || word == "alias") return keep_directive(declarator.start);
  if (find_type(word) != Type::none) {
    return fail_at(cursor_.offset_of(declarator.start),
                   "a declaration begins with its state space, as in '.global .b32 x;'");
  }
  if (!keep_directive(declarator.start)) return false;
  unsupported(cursor_.offset_of(declarator.start),
              fmt::format("directive '.{}' is not known; kept as it was", excerpt(word, 40)));
  return true;
}

bool ModuleReader::parse_version() {
  cursor_.skip();
  std::uint32_t numbers[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && cursor_.is_next('.')) ++cursor_.at;
    const char* first = cursor_.at;
    while (Cursor::is(cursor_.peek(), char_digit) && cursor_.at - first < 4) {
      numbers[i] = numbers[i] * 10 + static_cast<std::uint32_t>(*cursor_.at++ - '0');
    }
    if (cursor_.at == first) return fail("'.version' takes major.minor, as in '.version 8.0'");
  }
  if (saw_version_) return fail("a module has one '.version'");
  saw_version_ = true;
  module_.version = {numbers[0], numbers[1]};
  form_limits_.version = numbers[0] * 10 + numbers[1];
  const std::string why = why_no_version(module_.version);
  return why.empty() || fail(why);
}

bool ModuleReader::parse_target() {
  if (saw_target_ && !module_.items.empty()) return fail("a module has one '.target'");
  saw_target_ = true;
  do {
    cursor_.skip();
    const std::string_view target = cursor_.name();
    if (target.empty()) return fail("'.target' takes names, as in '.target sm_80', " + found());
    module_.targets.push_back(target);
    if (const std::string why = why_no_target(target, form_limits_.version); !why.empty()) {
      return fail(why);
    }
    if (const auto number = target_number(target)) {
      form_limits_.target = static_cast<std::uint32_t>(*number);
    }
  } while (cursor_.take(','));
  return true;
}

bool ModuleReader::parse_address_size() {
  if (module_.states_address_size) return fail("a module has one '.address_size'");
  std::uint64_t size = 0;
  if (!read_uint(64, "'.address_size'", size)) return false;
  if (size != 32 && size != 64) return fail("'.address_size' is 32 or 64");
  module_.address_size = static_cast<std::uint32_t>(size);
  module_.states_address_size = true;
  return true;
}

// A directive that ends in a semicolon, kept as it is.
bool ModuleReader::keep_directive(const char* start) {
  std::string_view text;
  if (!read_verbatim(start, text)) return false;
  module_.items.push_back(
      {ItemKind::verbatim, static_cast<std::uint32_t>(module_.verbatim.size())});
  module_.verbatim.push_back(text);
  return true;
}

void ModuleReader::finish_module() {
  if (!reported_preamble_ && !(saw_version_ && saw_target_)) {
    fail_at(0, saw_version_
                   ? "'.target' is missing, as in '.target sm_80'"
                   : "'.version' is missing: a module begins with it, as in '.version 8.0'");
  }
  std::unordered_map<std::string_view, std::uint32_t> definitions;
  for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
    if (!module_.functions[i].has_body) continue;
    if (!definitions.emplace(module_.functions[i].name, i).second) {
      fail_at(cursor_.offset_of(module_.functions[i].name.data()),
              fmt::format("'{}' is defined twice", excerpt(module_.functions[i].name, 60)));
    }
  }
  for (Function& function : module_.functions) {
    const auto found = definitions.find(function.name);
    if (found != definitions.end()) function.definition = found->second;
    if (function.is_entry) check_parameter_space(function);
  }
  name_what_stands();
  check_constant_memory();
  debug_.check_inlined_names();
}

// Operands that were read before the definition of their variable name that definition, too.
void ModuleReader::name_what_stands() {
  std::unordered_map<std::uint32_t, std::uint32_t> standing;
  for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
    if (module_.variables[i].is_repeated)
      standing[i] = names_.binding(names_.intern(module_.variables[i].name)).index;
  }
  if (standing.empty()) return;
  for (Function& function : module_.functions) {
    for (Operand& operand : function.body.operands) {
      const auto found = standing.find(operand.index);
      if (operand.base == Base::global && found != standing.end()) operand.index = found->second;
    }
  }
}

// From PTX 8.1 and sm_70 on a kernel may have more parameters.
void ModuleReader::check_parameter_space(const Function& kernel) {
  const bool has_large =
      module_.version.major * 10 + module_.version.minor >= 81 && !module_.has_target_below(70);
  const std::uint64_t most = has_large ? 32'764 : 4'352;
  const std::uint64_t bytes =
      bytes_in_order(kernel.parameters, [](const Variable&) { return true; });
  if (bytes <= most) return;
  fail_at(cursor_.offset_of(kernel.name.data()),
          fmt::format("'{}' has {} bytes of parameters, but version {}.{} and its target allow {}",
                      excerpt(kernel.name, 60), bytes, module_.version.major, module_.version.minor,
                      most));
}

void ModuleReader::check_constant_memory() {
  constexpr std::uint64_t most = 65'536;
  const Variable* last = nullptr;
  const std::uint64_t bytes = bytes_in_order(module_.variables, [&](const Variable& variable) {
    const bool counts =
        variable.space == StateSpace::constant && variable.linkage != Linkage::external;
    if (counts) last = &variable;
    return counts;
  });
  if (bytes <= most) return;
  fail_at(last->text_offset, fmt::format("with '{}' the module's constant variables have {} bytes, "
                                         "but constant memory has {}",
                                         excerpt(last->name, 60), bytes, most));
}

}  // namespace demarc::ptx
