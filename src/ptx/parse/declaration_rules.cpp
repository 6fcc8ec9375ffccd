// Judges declarations as ptxas 13.0 does: variables, registers, directives of headers, versions
// and targets.
#include "parse/declaration_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace demarc::ptx {
namespace {

constexpr std::uint32_t newest_version = 90;

struct HeaderRule {
  std::string_view name;
  bool of_kernels = false;
  bool of_functions = false;
  std::size_t max_values = 0;
  bool is_positive = false;
  std::string_view never_with;  // another directive
};
constexpr HeaderRule header_rules[] = {
    {"maxntid", true, false, 3, true, "reqntid"},
    {"reqntid", true, false, 3, true, "maxntid"},
    {"minnctapersm", true, false, 1, true, ""},
    {"maxnctapersm", true, false, 1, true, ""},
    {"maxnreg", true, false, 1, true, ""},
    {"reqnctapercluster", true, false, 3, false, "maxclusterrank"},
    {"maxclusterrank", true, false, 1, false, "reqnctapercluster"},
    {"explicitcluster", true, false, 0, false, ""},
    {"blocksareclusters", true, false, 0, false, ""},
    {"noreturn", false, true, 0, false, ""},
    {"abi_preserve", false, true, 1, false, ""},
    {"abi_preserve_control", false, true, 1, false, ""},
    {"local_maxnreg", true, true, 1, false, ""},
    {"pragma", true, false, 0, false, ""},
};

const HeaderRule* find_header_rule(std::string_view word) {
  const auto* const found = std::find_if(std::begin(header_rules), std::end(header_rules),
                                         [&](const HeaderRule& rule) { return rule.name == word; });
  return found == std::end(header_rules) ? nullptr : found;
}

// Types that memory and registers have; the others stand in instructions alone.
bool is_declared(Type type) {
  const TypeInfo& row = info(type);
  switch (row.kind) {
    case TypeKind::bits:
    case TypeKind::unsigned_:
    case TypeKind::signed_:
      return row.bits >= 8;
    case TypeKind::predicate:
    case TypeKind::opaque:
      return true;
    default:
      return type == Type::f16 || type == Type::f32 || type == Type::f64 || type == Type::f16x2;
  }
}

std::string why_no_type(Type type, unsigned width, std::string_view name) {
  if (std::string why = why_no_name(name); !why.empty()) return why;
  const TypeInfo& row = info(type);
  if (!is_declared(type))
    return fmt::format("'.{}' is a type of instructions alone; declare .b{} instead", row.text,
                       row.bits < 8 ? 8 : row.bits);
  if (width > 4 || (width > 1 && (row.bits * width > 128 || type == Type::pred))) {
    return fmt::format(
        "a vector has two or four elements of at most 128 bits in all, and no predicates, but this "
        "is .v{} .{}",
        width, row.text);
  }
  return {};
}

// Declarations of one array: the first size may be left out, as in [] or [][4].
bool are_of_one_array(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  if (a.size() != b.size()) return false;
  if (a.empty()) return true;
  return (a[0] == b[0] || a[0] == 0 || b[0] == 0) &&
         std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

constexpr std::uint32_t versions[] = {10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 30, 31, 32, 40, 41,
                                      42, 43, 50, 60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75,
                                      76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90};

struct Target {
  std::uint32_t number;
  std::string_view letter;
  std::uint32_t version;
};
constexpr Target known_targets[] = {
#define DEMARC_PTX_TARGET(sm, letter, version) {sm, letter, version},
#include "demarc/ptx/targets.def"
#undef DEMARC_PTX_TARGET
};

}  // namespace

std::string why_no_name(std::string_view name) {
  const bool is_taken = name == "_" || name == "WARP_SZ";
  return is_taken ? fmt::format("'{}' is not a name that can be declared", name) : "";
}

std::string why_no_registers(const RegisterRange& range) {
  if (info(range.type).kind == TypeKind::opaque)
    return "textures, samplers and surfaces are not registers";
  return why_no_type(range.type, range.vector_width, "");
}

std::string why_no_variable(const Variable& variable, DeclaredIn place) {
  const bool is_function = place == DeclaredIn::function_parameters;
  const bool is_parameter = is_function || place == DeclaredIn::kernel_parameters;
  if (is_parameter && variable.space == StateSpace::reg) {
    return is_function ? "" : "a kernel's parameters lie in .param";
  }
  const std::string_view name =
      is_parameter && !is_function && variable.name == "_" ? "" : variable.name;
  if (std::string why = why_no_type(variable.type, variable.vector_width, name); !why.empty())
    return why;
  if (variable.type == Type::pred) return "a predicate is a register and lies in no memory";
  const bool is_opaque = info(variable.type).kind == TypeKind::opaque;
  if (is_opaque && (is_function || place == DeclaredIn::body ||
                    (!is_parameter && variable.space != StateSpace::global))) {
    return "textures, samplers and surfaces are .global variables of the module or parameters of "
           "kernels";
  }
  if (variable.is_pointer && place != DeclaredIn::kernel_parameters)
    return "'.ptr' stands at parameters of kernels alone";
  if (is_parameter && (variable.vector_width > 1 || variable.type == Type::f16x2))
    return "a parameter is no vector; an array, such as .align 8 .b8 p[8], holds one";
  if (is_function && variable.alignment() > 128)
    return "a parameter of a function is aligned to at most 128 bytes";
  const auto& sizes = variable.dimensions;
  const bool has_inner_hole =
      sizes.size() > 1 && std::find(sizes.begin() + 1, sizes.end(), 0) != sizes.end();
  const bool is_open = !sizes.empty() && sizes[0] == 0 && variable.initialiser.empty() &&
                       variable.linkage != Linkage::external && !is_function;
  if (is_open || has_inner_hole) return "an array without a size is .extern or has initial values";
  if (variable.linkage == Linkage::common && variable.space != StateSpace::global)
    return "'.common' variables lie in .global memory";
  if (place == DeclaredIn::body && variable.linkage != Linkage::none)
    return "a variable of a function's body has no linkage; declare it at the module's level";
  if (place == DeclaredIn::module && variable.space == StateSpace::param)
    return "a parameter belongs to a function";
  return {};
}

std::string why_not_again(const Variable& old, const Variable& variable) {
  const bool is_same = old.type == variable.type && old.space == variable.space &&
                       old.vector_width == variable.vector_width &&
                       are_of_one_array(old.dimensions, variable.dimensions);
  if (!is_same) return "it was declared before with another type, size or state space";
  if (variable.linkage == Linkage::external) return {};
  if (old.linkage != Linkage::external) return "it is defined twice";
  return variable.linkage == Linkage::none
             ? "it was declared .extern before, so it needs a linkage, as in '.visible'"
             : "";
}

bool is_header_directive(std::string_view word) {
  return find_header_rule(word) != nullptr;
}

bool takes_values(std::string_view word) {
  const HeaderRule* rule = find_header_rule(word);
  return rule != nullptr && rule->max_values > 0;
}

std::string why_no_header(const Function& function) {
  for (const PerformanceDirective& directive : function.directives) {
    const HeaderRule* rule = find_header_rule(directive.name);
    if (rule == nullptr) continue;
    if (!(function.is_entry ? rule->of_kernels : rule->of_functions)) {
      return fmt::format("'.{}' is a directive of {}", rule->name,
                         function.is_entry ? "functions" : "kernels");
    }
    if (directive.values.size() > rule->max_values)
      return fmt::format("'.{}' takes at most {} value{}", rule->name, rule->max_values,
                         rule->max_values == 1 ? "" : "s");
    if (rule->is_positive &&
        std::find(directive.values.begin(), directive.values.end(), 0) != directive.values.end())
      return fmt::format("'.{}' takes values from 1 on", rule->name);
    if (function.directive(rule->never_with) != nullptr)
      return fmt::format("'.{}' and '.{}' do not stand together", rule->name, rule->never_with);
    if (rule->name == "noreturn" && !function.results.empty())
      return "'.noreturn' stands at functions without results";
    if (rule->name == "blocksareclusters" && (function.directive("reqntid") == nullptr ||
                                              function.directive("reqnctapercluster") == nullptr))
      return "'.blocksareclusters' needs '.reqntid' and '.reqnctapercluster'";
  }
  const bool has_memory =
      std::any_of(function.results.begin(), function.results.end(),
                  [](const Variable& result) { return result.space == StateSpace::param; });
  return has_memory && function.results.size() > 1
             ? "several results are .reg parameters, of .param there is one"
             : "";
}

std::string why_no_version(Version version) {
  const std::uint32_t number = version.major * 10 + version.minor;
  if (number > newest_version && version.minor < 10) return {};
  if (version.minor < 10 &&
      std::find(std::begin(versions), std::end(versions), number) != std::end(versions))
    return {};
  return fmt::format("there is no PTX {}.{}", version.major, version.minor);
}

std::string why_no_target(std::string_view target, std::uint32_t version) {
  for (const std::string_view option :
       {"debug", "texmode_unified", "texmode_independent", "map_f64_to_f32"}) {
    if (target == option) return {};
  }
  const auto number = target_number(target);
  if (!number)
    return target.starts_with("compute_") ? "" : fmt::format("there is no target '{}'", target);
  const std::string_view letter = target.substr(target.find_last_of("0123456789") + 1);
  for (const Target& known : known_targets) {
    if (known.number != *number || known.letter != letter) continue;
    if (version >= known.version) return {};
    return fmt::format("target '{}' needs PTX {}.{} or later", target, known.version / 10,
                       known.version % 10);
  }
  return version > newest_version ? ""
                                  : fmt::format("there is no target '{}' in PTX {}.{}", target,
                                                version / 10, version % 10);
}

}  // namespace demarc::ptx
