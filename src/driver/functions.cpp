// Looks up the driver's functions in the tables of what they do and of their numbers.
#include "demarc/driver/functions.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "demarc/driver/call_parameters.hpp"
#include "demarc/driver/driver_call.hpp"

namespace demarc::cuda {
namespace {

constexpr std::string_view names_by_number =
#include "function_names.def"
    ;

template <class Take>
void for_each_name(std::string_view names, Take take) {
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    take(names.substr(at, end - at));
    at = end + 1;
  }
}

struct Tables {
  std::vector<FunctionRow> rows;            // by name
  std::vector<std::string_view> names{""};  // by number
  std::vector<std::string_view> versions;   // the same without the stream, by name
  std::vector<CallFacts> facts;             // by number

  Tables();
  [[nodiscard]] const FunctionRow* find(std::string_view name) const;
  [[nodiscard]] CallFacts facts_of(std::string_view name) const;
};

Tables::Tables() {
  const auto list = [&](Rule rule, std::string_view listed) {
    for_each_name(listed, [&](std::string_view name) {
      rows.push_back({name, {DriverFunction::listed, rule}});
    });
  };
#define DEMARC_CALL(name, rule, effect, Parameters)                                             \
  rows.push_back({#name,                                                                        \
                  {DriverFunction::name, Rule::rule, !std::is_same_v<Parameters, NoParameters>, \
                   does::effect},                                                               \
                  std::is_same_v<Parameters, Unread>});
#define DEMARC_CALLS(rule, names) list(Rule::rule, names);
#include "demarc/driver/functions.def"
  std::ranges::sort(rows, {}, &FunctionRow::name);
  for_each_name(names_by_number, [&](std::string_view name) { names.push_back(name); });
  for (const std::string_view name : names) versions.push_back(without_stream(name));
  std::ranges::sort(versions);
  for (const std::string_view name : names) facts.push_back(facts_of(name));
}

const FunctionRow* Tables::find(std::string_view name) const {
  const auto row = std::ranges::lower_bound(rows, name, {}, &FunctionRow::name);
  return row == rows.end() || row->name != name ? nullptr : &*row;
}

// A version that CUDA 13.0 has not got may take other parameters: what it does is what the others
// do, and it neither passes nor is answered.
CallFacts Tables::facts_of(std::string_view name) const {
  const std::string_view version = without_stream(name);
  const FunctionRow* row = find(version);
  if (row != nullptr) return row->facts;
  row = find(without_version(version));
  if (row == nullptr) return {};
  CallFacts found{row->facts.function, row->facts.rule, true, row->facts.does};
  const bool known = row->all_versions && std::ranges::binary_search(versions, version);
  if (!known && found.rule <= Rule::told) found.rule = Rule::unknown;
  return found;
}

// For ever: destructors of others call the driver, and each call is looked up.
const Tables& tables() {
  static const Tables& all = *new Tables;
  return all;
}

}  // namespace

const char* why_refused(Rule rule) {
  switch (rule) {
#define DEMARC_REFUSAL(name, windows, why) \
  case Rule::name:                         \
    return why;
#include "demarc/driver/functions.def"
    default:
      return "this function, or its version, is not known";
  }
}

WindowRule window_rule(Rule rule) {
  static constexpr std::pair<Rule, WindowRule> rows[] = {
#define DEMARC_REFUSAL(name, windows, why) {Rule::name, WindowRule::windows},
#include "demarc/driver/functions.def"
  };
  const auto found = std::ranges::find(rows, rule, &std::pair<Rule, WindowRule>::first);
  return found == std::end(rows) ? WindowRule::never : found->second;
}

std::span<const FunctionRow> function_rows() {
  return tables().rows;
}

CallFacts facts_of(std::string_view name) {
  return tables().facts_of(name);
}

CallFacts facts_of(std::string_view name, std::uint32_t number) {
  const Tables& all = tables();
  const bool same = number < all.names.size() && all.names[number] == name;
  return same ? all.facts[number] : all.facts_of(name);
}

CallFacts facts_of(std::uint32_t number) {
  const Tables& all = tables();
  return number < all.facts.size() ? all.facts[number] : CallFacts{};
}

std::span<const std::string_view> function_names() {
  return tables().names;
}

std::vector<int> numbers_of_functions(std::uint32_t does) {
  std::vector<int> numbers;
  const auto& facts = tables().facts;
  for (std::size_t number = 0; number < facts.size(); ++number) {
    if ((facts[number].does & does) != 0) numbers.push_back(static_cast<int>(number));
  }
  return numbers;
}

}  // namespace demarc::cuda
