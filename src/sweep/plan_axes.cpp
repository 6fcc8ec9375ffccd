// Reads a sweep file.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <regex>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "plan_axes.hpp"

namespace demarc::sweep {
namespace {

constexpr std::size_t max_values = 1'000'000;  // per axis

Result<Value> value_of(const Json& json, const std::string& where) {
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_boolean()) return Value(json.get<bool>());
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > most) {
    return invalid_input("{}: {} is above {}", where, json_text(json), most);
  }
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number_float()) return Value(json.get<double>());
  return invalid_input("{}: expected a number, a string, true or false", where);
}

Result<Axis> list_of(const std::string& name, const Json& json, const std::string& where) {
  std::vector<std::vector<Value>> values;
  for (std::size_t i = 0; i < json.size(); ++i) {
    DEMARC_TRY(Value value, value_of(json[i], fmt::format("{}[{}]", where, i)));
    values.push_back({std::move(value)});
  }
  if (values.empty()) return invalid_input("{}: an axis needs at least one value", where);
  if (values.size() > max_values) {
    return invalid_input("{}: {} values; an axis has at most {}", where, values.size(), max_values);
  }
  return Axis({name}, std::move(values));
}

// From, to and step; nothing where `object` has no step.
Result<std::optional<Axis>> steps_of(const std::string& name, JsonObject& object) {
  if (!object.has("step")) return std::nullopt;
  DEMARC_TRY(const double from, object.number("from"));
  DEMARC_TRY(const double to, object.number("to"));
  DEMARC_TRY(const double step, object.number("step"));
  // What rounding takes from a step must not make one more or less of them.
  constexpr double least_step = 1e-9;  // of the ends
  constexpr double tolerance = 1e-6;   // per step
  const double count = std::floor((to - from) / step + tolerance) + 1;
  if (step != 0 && count > double{max_values}) {
    return invalid_input("{}: {} values; an axis has at most {}", object.where(), count,
                         max_values);
  }
  if (!(std::abs(step) > least_step * std::max(std::abs(from), std::abs(to))) || !(count >= 1)) {
    return invalid_input("{}: a range from {} to {} in steps of {} has no values", object.where(),
                         from, to, step);
  }
  return Axis(name, from, step, static_cast<std::size_t>(count));
}

Result<Axis> spaced(const std::string& name, JsonObject& object) {
  DEMARC_TRY(const double from, object.number("from"));
  DEMARC_TRY(const double to, object.number("to"));
  DEMARC_TRY(const auto points, object.integer("points", 2, std::int64_t{max_values}));
  DEMARC_TRY(const std::string scale, object.string_or("scale", "linear"));
  const bool logarithmic = scale == "log";
  if (!logarithmic && scale != "linear") {
    return invalid_input("{}.scale: '{}' is not a scale; use linear or log", object.where(), scale);
  }
  if (logarithmic && !(from > 0 && to > 0)) {
    return invalid_input("{}: a logarithmic range needs numbers above 0", object.where());
  }
  std::vector<std::vector<Value>> values;
  values.reserve(static_cast<std::size_t>(points));
  for (std::int64_t i = 0; i < points; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(points - 1);
    const double at = logarithmic ? from * std::pow(to / from, share) : from + share * (to - from);
    const double whole = std::nearbyint(at);
    const bool rounded = std::abs(at - whole) < 1e-9 * std::abs(at);
    values.push_back({shortest(i + 1 == points ? to : rounded ? whole : at)});
  }
  return Axis({name}, std::move(values));
}

Result<Axis> range_of(const std::string& name, JsonObject object) {
  DEMARC_TRY(auto steps, steps_of(name, object));
  if (steps) {
    DEMARC_CHECK(object.finish());
    return std::move(*steps);
  }
  DEMARC_TRY(Axis axis, spaced(name, object));
  DEMARC_CHECK(object.finish());
  return axis;
}

// Those of `pattern`, where * and ? stand for what they do in a shell, in the last part alone.
Result<Axis> files_of(const std::string& axis, const std::string& pattern, const std::string& where,
                      const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / pattern;
  std::string expression;
  for (const char c : path.filename().string()) {
    if (c == '*') {
      expression += ".*";
    } else if (c == '?') {
      expression += '.';
    } else {
      if (std::string_view("\\^$.|()[]{}+").find(c) != std::string_view::npos) expression += '\\';
      expression += c;
    }
  }
  const std::regex name(expression);
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error)) {
    if (entry.is_regular_file() && std::regex_match(entry.path().filename().string(), name)) {
      found.insert(entry.path().string());
    }
  }
  if (found.empty()) return invalid_input("{}: no file is named {}", where, path.string());
  std::vector<std::vector<Value>> values;
  values.reserve(found.size());
  for (const std::string& file : found) values.push_back({Value(file)});
  return Axis({axis}, std::move(values));
}

Result<Axis> axis_of(const std::string& name, const Json& json, const std::string& where,
                     const std::filesystem::path& folder) {
  if (json.is_array()) return list_of(name, json, where);
  DEMARC_TRY(JsonObject object, JsonObject::of(json, where));
  if (!object.has("files")) return range_of(name, std::move(object));
  DEMARC_TRY(const std::string pattern, object.string("files"));
  DEMARC_CHECK(object.finish());
  return files_of(name, pattern, where + ".files", folder);
}

Result<Axis> zip_of(const Json& json, const std::string& where,
                    const std::filesystem::path& folder) {
  if (!json.is_object() || json.empty()) {
    return invalid_input("{}: expected axes that change together, by name", where);
  }
  std::vector<std::string> names;
  std::vector<std::vector<Value>> values;
  for (const auto& [name, column] : json.items()) {
    const std::string at = fmt::format("{}.{}", where, name);
    DEMARC_TRY(const Axis one, axis_of(name, column, at, folder));
    if (!names.empty() && one.size() != values.size()) {
      return invalid_input(
          "{}: {} values beside {} of {}; axes that change together need the same number", at,
          one.size(), values.size(), names.front());
    }
    names.push_back(name);
    values.resize(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) values[i].push_back(one.value(i));
  }
  return Axis(std::move(names), std::move(values));
}

}  // namespace

Value shortest(double number) {
  if (std::abs(number) < 0x1p53 && number == std::nearbyint(number)) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

Result<std::vector<Axis>> read_axes(const Json& json, const std::string& where,
                                    const std::filesystem::path& folder) {
  if (!json.is_object() || json.empty()) {
    return invalid_input("{}: expected at least one axis, by name", where);
  }
  std::vector<Axis> axes;
  for (const auto& [name, value] : json.items()) {
    const std::string at = fmt::format("{}.{}", where, name);
    if (value.is_object() && value.contains("zip")) {
      if (value.size() != 1) return invalid_input("{}: nothing may stand beside zip", at);
      DEMARC_TRY(Axis zip, zip_of(value["zip"], at + ".zip", folder));
      axes.push_back(std::move(zip));
      continue;
    }
    DEMARC_TRY(Axis axis, axis_of(name, value, at, folder));
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace demarc::sweep
