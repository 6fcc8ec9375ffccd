// Checked reading of JSON: every error names the file and the path of the key ("devices/x.json:
// caches.l2.ways"). This header is only for implementation files; public headers of other rooms do
// not include it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/base/strong.hpp"

namespace demarc {

using Json = nlohmann::ordered_json;

[[nodiscard]] Result<Json> parse_json(std::string_view text, std::string_view source);
[[nodiscard]] Result<Json> read_json(const std::filesystem::path& path);

// Parses text that this program made. The result is discarded (Json::is_discarded) if the text is
// not JSON after all.
[[nodiscard]] Json own_json(std::string_view text);

// nlohmann's text of `value`. With `indent` >= 0 there is one line per item, indented by so many
// spaces per level; else there is one line. Bytes that are not UTF-8 become U+FFFD. Rooms parse and
// print through these functions, so that nlohmann's parser and printer are instantiated in base
// alone.
[[nodiscard]] std::string json_text(const Json& value, int indent = -1);

// Lets a Json hold numbers that do not mix: the bare number.
template <class Tag, class Raw, Arithmetic arithmetic>
void to_json(Json& to, Strong<Tag, Raw, arithmetic> number) {
  to = number.raw();
}

// A view of one object that remembers where it stands. Unknown keys are refused by finish().
class JsonObject {
 public:
  static Result<JsonObject> of(const Json& value, std::string where);

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool has(std::string_view key) const;

  [[nodiscard]] Result<JsonObject> object(std::string_view key);
  [[nodiscard]] Result<const Json*> array(std::string_view key);
  [[nodiscard]] Result<const Json*> any(std::string_view key);
  [[nodiscard]] Result<std::string> string(std::string_view key);
  [[nodiscard]] Result<std::string> string_or(std::string_view key, std::string_view fallback);
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback);
  [[nodiscard]] Result<double> number(std::string_view key);
  [[nodiscard]] Result<double> number_or(std::string_view key, double fallback);
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key, std::int64_t low,
                                             std::int64_t high);
  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view key, std::int64_t low,
                                                std::int64_t high, std::int64_t fallback);

  // An error if the object has a key for which none of the calls above asked.
  [[nodiscard]] Result<void> finish() const;

 private:
  JsonObject(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}
  const Json* find(std::string_view key);

  const Json* value_;
  std::string where_;
  std::vector<std::string> seen_;
};

}  // namespace demarc
