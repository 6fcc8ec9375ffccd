// Selects a member of a JSON result by its pointer.
#include "select.hpp"

#include <algorithm>
#include <charconv>

namespace demarc::sweep {
namespace {

// "~1" is "/", "~0" is "~" (RFC 6901).
std::string unescaped(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1')) {
      text += part[++i] == '0' ? '~' : '/';
    } else {
      text += part[i];
    }
  }
  return text;
}

// "name=value&name=value".
bool has_members(const Json& item, std::string_view members) {
  while (!members.empty()) {
    const std::string_view member = members.substr(0, members.find('&'));
    members.remove_prefix(std::min(member.size() + 1, members.size()));
    const std::size_t equals = member.find('=');
    if (equals == std::string_view::npos || !item.is_object()) return false;
    const auto at = item.find(member.substr(0, equals));
    if (at == item.end()) return false;
    const auto value = scalar(*at);
    if (!value || to_text(*value) != member.substr(equals + 1)) return false;
  }
  return true;
}

const Json* element(const Json& array, const std::string& part) {
  if (part.find('=') != std::string::npos) {
    const auto at = std::find_if(array.begin(), array.end(),
                                 [&](const Json& item) { return has_members(item, part); });
    return at == array.end() ? nullptr : &*at;
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (error != std::errc{} || end != part.data() + part.size() || number >= array.size()) {
    return nullptr;
  }
  return &array[number];
}

}  // namespace

std::optional<Value> scalar(const Json& json) {
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  return {};
}

Result<std::optional<Value>> select(const Json& json, const std::string& pointer) {
  const Json* at = &json;
  std::size_t begin = 1;
  while (begin <= pointer.size()) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    const std::string part = unescaped(std::string_view(pointer).substr(begin, end - begin));
    const Json* next = nullptr;
    if (at->is_array()) {
      next = element(*at, part);
    } else if (at->is_object() && at->contains(part)) {
      next = &(*at)[part];
    }
    if (next == nullptr) {
      return invalid_input("the result has nothing at {}", pointer.substr(0, end));
    }
    at = next;
    begin = end + 1;
  }
  if (at->is_null()) return std::optional<Value>();
  auto value = scalar(*at);
  if (!value) {
    return invalid_input("the value at {} is an {}, not a number or a string", pointer,
                         at->type_name());
  }
  return value;
}

}  // namespace demarc::sweep
