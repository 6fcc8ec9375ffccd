// Parses and prints JSON, and reads objects with errors that name the file and the key.
#include "demarc/base/json.hpp"

#include <algorithm>

#include "demarc/base/files.hpp"

namespace demarc {

Result<Json> parse_json(std::string_view text, std::string_view source) {
  try {
    return Json::parse(text);
  } catch (const Json::out_of_range& error) {
    return invalid_input("{}: a number is beyond 1.8e308: {}", source, error.what());
  } catch (const Json::exception& error) {
    return invalid_input("{}: not valid JSON: {}", source, error.what());
  }
}

Result<Json> read_json(const std::filesystem::path& path) {
  DEMARC_TRY(const std::string text, read_file(path));
  return parse_json(text, path.string());
}

Json own_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<JsonObject> JsonObject::of(const Json& value, std::string where) {
  if (!value.is_object())
    return invalid_input("{}: an object was expected, found {}", where, value.type_name());
  return JsonObject(value, std::move(where));
}

bool JsonObject::has(std::string_view key) const {
  return value_->contains(key);
}

const Json* JsonObject::find(std::string_view key) {
  const auto it = value_->find(key);
  if (it == value_->end()) return nullptr;
  seen_.emplace_back(key);
  return &*it;
}

Result<const Json*> JsonObject::any(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return invalid_input("{}: the key '{}' is missing", where_, key);
  return value;
}

Result<JsonObject> JsonObject::object(std::string_view key) {
  DEMARC_TRY(const Json* value, any(key));
  return of(*value, fmt::format("{}.{}", where_, key));
}

Result<const Json*> JsonObject::array(std::string_view key) {
  DEMARC_TRY(const Json* value, any(key));
  if (!value->is_array()) {
    return invalid_input("{}.{}: an array was expected, found {}", where_, key, value->type_name());
  }
  return value;
}

Result<std::string> JsonObject::string(std::string_view key) {
  DEMARC_TRY(const Json* value, any(key));
  if (!value->is_string()) {
    return invalid_input("{}.{}: a string was expected, found {}", where_, key, value->type_name());
  }
  return value->get<std::string>();
}

Result<std::string> JsonObject::string_or(std::string_view key, std::string_view fallback) {
  if (!has(key)) return std::string(fallback);
  return string(key);
}

Result<bool> JsonObject::boolean_or(std::string_view key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    return invalid_input("{}.{}: true or false was expected, found {}", where_, key,
                         value->type_name());
  }
  return value->get<bool>();
}

Result<double> JsonObject::number(std::string_view key) {
  DEMARC_TRY(const Json* value, any(key));
  if (!value->is_number()) {
    return invalid_input("{}.{}: a number was expected, found {}", where_, key, value->type_name());
  }
  return value->get<double>();
}

Result<double> JsonObject::number_or(std::string_view key, double fallback) {
  if (!has(key)) return fallback;
  return number(key);
}

Result<std::int64_t> JsonObject::integer(std::string_view key, std::int64_t low,
                                         std::int64_t high) {
  DEMARC_TRY(const Json* value, any(key));
  if (!value->is_number_integer()) {
    return invalid_input("{}.{}: a whole number was expected, found {}", where_, key,
                         json_text(*value));
  }
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return invalid_input("{}.{}: {} is above {}", where_, key, json_text(*value), high);
  }
  const auto number = value->get<std::int64_t>();
  if (number < low || number > high) {
    return invalid_input("{}.{}: {} is not within {} .. {}", where_, key, number, low, high);
  }
  return number;
}

Result<std::int64_t> JsonObject::integer_or(std::string_view key, std::int64_t low,
                                            std::int64_t high, std::int64_t fallback) {
  if (!has(key)) return fallback;
  return integer(key, low, high);
}

Result<void> JsonObject::finish() const {
  for (const auto& [key, value] : value_->items()) {
    if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
      return invalid_input("{}: unknown key '{}'", where_, key);
    }
  }
  return {};
}

}  // namespace demarc
