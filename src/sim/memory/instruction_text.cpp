// Reads registers, barriers and cache operators from the text of a traced instruction.
#include "instruction_text.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>

namespace demarc::sim::memory {
namespace {

// The words behind the opcode, in operands alone too.
std::vector<std::string_view> machine_registers(std::string_view operands) {
  constexpr std::string_view between = " ,{}_";
  std::vector<std::string_view> names;
  for (std::size_t at = operands.find_first_not_of(between); at != std::string_view::npos;) {
    const std::size_t end = std::min(operands.find_first_of(between, at), operands.size());
    names.push_back(operands.substr(at, end - at));
    at = operands.find_first_not_of(between, end);
  }
  return names;
}

bool has_modifier(std::string_view opcode, std::string_view name) {
  for (std::size_t at = opcode.find(name); at != std::string_view::npos;
       at = opcode.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == opcode.size() || opcode[end] == '.' || opcode[end] == ':') return true;
  }
  return false;
}

}  // namespace

bool is_machine_code(std::string_view text) {
  return !text.empty() && text.front() >= 'A' && text.front() <= 'Z';
}

std::vector<std::string_view> registers_in(std::string_view text) {
  if (is_machine_code(text))
    return machine_registers(text.substr(std::min(text.find(' '), text.size())));
  std::vector<std::string_view> names;
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at)) {
    std::size_t end = at + 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      ++end;
    }
    names.push_back(text.substr(at, end - at));
    at = end;
  }
  return names;
}

std::string_view without_guard(std::string_view text) {
  if (text.empty() || text.front() != '@') return text;
  const auto space = text.find(' ');
  return space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
}

std::vector<std::string_view> written_by(std::string_view text) {
  text = without_guard(text);
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {};
  const std::string_view operands = text.substr(space + 1);
  const auto brace = operands.find('{');
  const auto comma = operands.find(',');
  const bool vector = brace != std::string_view::npos && brace < comma;
  const std::string_view written = operands.substr(0, vector ? operands.find('}') : comma);
  return is_machine_code(text) ? machine_registers(written) : registers_in(written);
}

bool is_barrier(std::string_view text) {
  if (!is_machine_code(text)) return text.starts_with("bar.") || text.starts_with("barrier.");
  const std::string_view opcode = text.substr(0, text.find(' '));
  return opcode == "BAR" || (opcode.starts_with("BAR.") && !opcode.starts_with("BAR.ARV"));
}

// PTX ISA 8.5, "Cache Operators" and "Cache Eviction Priority Hints"; of machine code the modifiers
// that ptxas makes of them.
CacheUse cache_use(std::string_view text) {
  const std::string_view opcode = text.substr(0, text.find(' '));
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return has_modifier(opcode, name); });
  };
  if (is_machine_code(text)) return {any({".GPU", ".SYS", ".BYPASS", ".NA"}), any({".EF"})};
  return {any({".cg", ".cv", ".volatile", ".relaxed", ".acquire", ".mmio", ".L1::no_allocate"}),
          any({".cs", ".L1::evict_first", ".L2::evict_first"})};
}

bool is_float_arithmetic(std::string_view text) {
  const std::string_view opcode = text.substr(0, text.find(' '));
  const std::string_view name = opcode.substr(0, opcode.find('.'));
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_machine_code(text)) return one_of({"FADD", "FMUL", "FFMA"});
  return one_of({"add", "sub", "mul", "mad", "fma"}) && has_modifier(opcode, ".f32");
}

bool is_reduction(std::string_view text) {
  return text.starts_with("red.") || text.starts_with("RED.") || text.starts_with("REDG.");
}

}  // namespace demarc::sim::memory
