// Answers questions about a parsed module: sizes, names, registers, source lines.
#include "demarc/ptx/ir.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "demarc/base/numbers.hpp"

namespace demarc::ptx {

namespace {

// The largest number where the product does not fit.
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b
             ? std::numeric_limits<std::uint64_t>::max()
             : a * b;
}

}  // namespace

std::uint64_t Variable::element_count() const {
  std::uint64_t count = 1;
  for (const std::uint64_t size : dimensions) count = saturating_product(count, size);
  return count;
}

std::uint64_t Variable::byte_size() const {
  return saturating_product(element_count(), std::uint64_t{ptx::byte_size(type)} * vector_width);
}

std::uint32_t Variable::alignment() const {
  if (align != 0) return align;
  return std::max<std::uint32_t>(1, ptx::byte_size(type) * vector_width);
}

const RegisterRange& Body::range_of(std::uint32_t reg) const {
  const auto next = std::upper_bound(
      registers.begin(), registers.end(), reg,
      [](std::uint32_t value, const RegisterRange& range) { return value < range.first; });
  // Ranges without registers (`%r<0>`) share their `first` with the one that follows.
  return *std::prev(next);
}

std::string Body::register_name(std::uint32_t reg) const {
  const RegisterRange& range = range_of(reg);
  if (!range.is_range) return std::string(range.name);
  return fmt::format("{}{}", range.name, reg - range.first);
}

const PerformanceDirective* Function::directive(std::string_view wanted) const {
  for (const PerformanceDirective& directive : directives) {
    if (directive.name == wanted) return &directive;
  }
  return nullptr;
}

const Function* Module::find_function(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.has_body && function.name == name) return &function;
  }
  return nullptr;
}

std::vector<const Function*> Module::kernels() const {
  std::vector<const Function*> found;
  for (const Function& function : functions) {
    if (function.is_entry && function.has_body) found.push_back(&function);
  }
  return found;
}

const Variable* Module::find_memory(std::string_view name) const {
  for (const Variable& variable : variables) {
    const bool memory =
        variable.space == StateSpace::global || variable.space == StateSpace::constant;
    if (memory && !variable.is_repeated && variable.name == name) return &variable;
  }
  return nullptr;
}

std::string_view Module::text_of(const Instruction& instruction) const {
  const std::string_view rest = std::string_view(*text).substr(instruction.text_offset);
  std::size_t at = 0;
  while (at < rest.size() && rest[at] != ';') {
    // A semicolon in a comment ends nothing.
    const bool line = rest.substr(at, 2) == "//";
    const bool block = rest.substr(at, 2) == "/*";
    if (line || block) {
      const std::size_t end = rest.find(line ? "\n" : "*/", at + 2);
      at = end == std::string_view::npos ? rest.size() : end + (line ? 1 : 2);
    } else {
      ++at;
    }
  }
  return rest.substr(0, at + 1);
}

std::string Module::source_position(const Body& body, const Instruction& instruction) const {
  if (instruction.location == no_index) return {};
  const Location& location = body.locations[instruction.location];
  for (const SourceFile& file : files)
    if (file.number == location.file) return fmt::format("{}:{}", file.path, location.line);
  return {};
}

std::optional<std::uint64_t> target_number(std::string_view target) {
  if (!target.starts_with("sm_")) return std::nullopt;
  const auto number =
      parse_u64(target.substr(3, target.find_first_not_of("0123456789", 3) - 3), "target");
  return number ? std::optional(*number) : std::nullopt;
}

bool Module::has_target_below(std::uint64_t number) const {
  return std::any_of(targets.begin(), targets.end(), [&](std::string_view target) {
    return target_number(target).value_or(number) < number;
  });
}

std::string_view Module::keep(std::string made) {
  if (!made_text) made_text = std::make_shared<std::deque<std::string>>();
  return made_text->emplace_back(std::move(made));
}

}  // namespace demarc::ptx
