// Reads a sweep file.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "plan_axes.hpp"

namespace demarc::sweep {
namespace {

constexpr std::size_t most_values = 1'000'000;  // of one axis

Result<Value> value_of(const Json& json, const std::string& where) {
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number_float()) return Value(json.get<double>());
  return invalid_input("{}: expected a number, a string, true or false", where);
}

Result<std::vector<Value>> list_of(const Json& json, const std::string& where) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < json.size(); ++i) {
    DEMARC_TRY(Value value, value_of(json[i], fmt::format("{}[{}]", where, i)));
    values.push_back(std::move(value));
  }
  if (values.empty()) return invalid_input("{}: an axis needs at least one value", where);
  if (values.size() > most_values) {
    return invalid_input("{}: {} values; an axis has at most {}", where, values.size(),
                         most_values);
  }
  return values;
}

// A whole number where it is one.
Value shortest(double number) {
  if (std::abs(number) < 0x1p53 && number == std::nearbyint(number)) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

Result<std::vector<Value>> range_of(JsonObject object) {
  DEMARC_TRY(const double from, object.number("from"));
  DEMARC_TRY(const double to, object.number("to"));
  std::vector<Value> values;
  if (object.has("step")) {
    DEMARC_TRY(const double step, object.number("step"));
    const double count = std::floor((to - from) / step + 1e-9) + 1;
    if (!(step != 0) || !(count >= 1)) {
      return invalid_input("{}: from {} to {} in steps of {} are no values", object.where(), from,
                           to, step);
    }
    if (count > double{most_values}) {
      return invalid_input("{}: {} values; an axis has at most {}", object.where(), count,
                           most_values);
    }
    for (double i = 0; i < count; ++i) values.push_back(shortest(from + i * step));
  } else {
    DEMARC_TRY(const auto points, object.integer("points", 2, std::int64_t{most_values}));
    DEMARC_TRY(const std::string scale, object.string_or("scale", "linear"));
    const bool logarithmic = scale == "log";
    if (!logarithmic && scale != "linear") {
      return invalid_input("{}.scale: '{}'; use linear or log", object.where(), scale);
    }
    if (logarithmic && !(from > 0 && to > 0)) {
      return invalid_input("{}: a logarithmic range is of numbers above 0", object.where());
    }
    for (std::int64_t i = 0; i < points; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(points - 1);
      const double at =
          logarithmic ? from * std::pow(to / from, share) : from + share * (to - from);
      values.push_back(i + 1 == points
                           ? shortest(to)
                           : shortest(std::abs(at - std::nearbyint(at)) < 1e-9 * std::abs(at)
                                          ? std::nearbyint(at)
                                          : at));
    }
  }
  DEMARC_CHECK(object.finish());
  return values;
}

// Those of `pattern`, where * and ? stand for what they do in a shell, in the last part alone.
Result<std::vector<Value>> files_of(const std::string& pattern, const std::string& where,
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
  return std::vector<Value>(found.begin(), found.end());
}

Result<std::vector<Value>> values_of(const Json& json, const std::string& where,
                                     const std::filesystem::path& folder) {
  if (json.is_array()) return list_of(json, where);
  DEMARC_TRY(JsonObject object, JsonObject::of(json, where));
  if (!object.has("files")) return range_of(std::move(object));
  DEMARC_TRY(const std::string pattern, object.string("files"));
  DEMARC_CHECK(object.finish());
  return files_of(pattern, where + ".files", folder);
}

Result<Axis> zip_of(const Json& json, const std::string& where,
                    const std::filesystem::path& folder) {
  Axis axis;
  if (!json.is_object() || json.empty()) {
    return invalid_input("{}: expected axes that change together, by name", where);
  }
  for (const auto& [name, values] : json.items()) {
    const std::string at = where + "." + name;
    DEMARC_TRY(const auto column, values_of(values, at, folder));
    if (!axis.names.empty() && column.size() != axis.values.size()) {
      return invalid_input("{}: {} values beside {} of {}; axes that change together have as many",
                           at, column.size(), axis.values.size(), axis.names.front());
    }
    axis.names.push_back(name);
    axis.values.resize(column.size());
    for (std::size_t i = 0; i < column.size(); ++i) axis.values[i].push_back(column[i]);
  }
  return axis;
}

}  // namespace

Result<std::vector<Axis>> read_axes(const Json& json, const std::string& where,
                                    const std::filesystem::path& folder) {
  if (!json.is_object() || json.empty()) {
    return invalid_input("{}: expected at least one axis, by name", where);
  }
  std::vector<Axis> axes;
  for (const auto& [name, value] : json.items()) {
    const std::string at = where + "." + name;
    if (value.is_object() && value.contains("zip")) {
      if (value.size() != 1) return invalid_input("{}: zip stands alone", at);
      DEMARC_TRY(Axis zip, zip_of(value["zip"], at + ".zip", folder));
      axes.push_back(std::move(zip));
      continue;
    }
    DEMARC_TRY(auto values, values_of(value, at, folder));
    Axis axis{{name}, {}};
    for (Value& one : values) axis.values.push_back({std::move(one)});
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace demarc::sweep
