// Checks the values of all options: numbers must be written as numbers, and no value may be empty.
#include <string_view>

#include "demarc/base/numbers.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

// Options that mean something when they are empty: a kernel without arguments, an empty argument
// of a program.
bool may_be_empty(const CLI::Option& option) {
  return option.check_name("--args") || option.check_name("command");
}

// What is wrong with `text` as the value of an option of that type; empty: nothing.
std::string fault_of(std::string& text, std::string_view type) {
  if (text.empty()) return "the value is empty; give one or leave the option out";
  if (type == percent_type) {
    const auto percent = parse_percent(text, "");
    if (!percent) return fmt::format("'{}' is not a percentage; write it as 5% or 5", text);
    text = text.substr(0, text.find_first_of(" %"));
  }
  const auto whole = [&](auto parsed, std::string_view wanted) {
    if (!parsed) return fmt::format("'{}' is not {}", text, wanted);
    text = std::to_string(*parsed);  // "010" is ten here too
    return std::string();
  };
  if (type == "UINT") return whole(parse_u64(text, ""), "a whole number from 0 to 2^64 - 1");
  if (type == "INT") return whole(parse_i64(text, ""), "a whole number of 64 bits");
  if (type == "FLOAT") {
    const auto value = parse_double(text, "");
    if (!value || *value < 0) return fmt::format("'{}' is not a finite number of 0 or more", text);
  }
  return {};
}

}  // namespace

void check_values(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || may_be_empty(*option)) continue;
    const std::string name = option->get_type_name();
    const std::string type = name.substr(0, name.find(':'));
    // A transformation comes before the checks that the verb has added.
    option->transform(
        CLI::Validator([type](std::string& text) { return fault_of(text, type); }, ""));
  }
  for (CLI::App* const part : app.get_subcommands([](CLI::App*) { return true; }))
    check_values(*part);
}

}  // namespace demarc::cli
