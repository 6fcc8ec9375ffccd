// Reads and writes a machine as a file with the settings by name.
#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/near_names.hpp"
#include "demarc/sim/translation/settings.hpp"
#include "translation/builtin_machines.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::string_view machine_schema = "demarc.translate.machine/1";

// A value as --set takes it: numbers and words.
Result<std::string> setting_text(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  return invalid_input("{}: a whole number or a word was expected", where);
}

}  // namespace

Result<Settings> parse_machine(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject root, JsonObject::of(json, std::string(source)));
  DEMARC_TRY(const std::string schema, root.string("schema"));
  if (schema != machine_schema)
    return invalid_input("{}: schema: '{}' where {} was expected", source, schema, machine_schema);
  DEMARC_CHECK(root.string_or("name", ""));
  DEMARC_CHECK(root.string_or("source", ""));
  DEMARC_TRY(const Json* settings_json, root.any("settings"));
  DEMARC_CHECK(root.finish());
  if (!settings_json->is_object())
    return invalid_input("{}: settings: an object was expected", source);
  Settings settings;
  for (const auto& [name, value] : settings_json->items()) {
    const std::string where = fmt::format("{}: settings.{}", source, name);
    DEMARC_TRY(const std::string as_text, setting_text(value, where));
    if (auto applied = apply_setting(settings, fmt::format("{}={}", name, as_text)); !applied)
      return invalid_input("{}: {}", where, applied.error().message);
  }
  if (auto valid = validate(settings); !valid)
    return invalid_input("{}: {}", source, valid.error().message);
  return settings;
}

Result<Settings> read_machine(const std::filesystem::path& path) {
  DEMARC_TRY(const std::string text, read_file(path));
  return parse_machine(text, path.string());
}

std::vector<std::string> builtin_machine_names() {
  std::vector<std::string> names;
  for (const NamedText& machine : builtin_machines()) names.emplace_back(machine.name);
  return names;
}

Result<Settings> find_machine(std::string_view name) {
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) {
    return read_machine(std::filesystem::path(name));
  }
  for (const NamedText& machine : builtin_machines()) {
    if (machine.name == name) return parse_machine(machine.text, fmt::format("{}.json", name));
  }
  return invalid_input("there is no machine '{}'{}; a file's name ends in .json", name,
                       did_you_mean(name, builtin_machine_names(), "demarc list machines"));
}

std::string machine_json(const Settings& settings, std::string_view name) {
  Json values = Json::object();
  for (const SettingInfo& info : setting_table()) {
    const std::string text = info.get(settings);
    const bool number = text.find_first_not_of("0123456789") == std::string::npos;
    values[std::string(info.name)] = number ? Json(std::stoull(text)) : Json(text);
  }
  const Json json{{"schema", machine_schema}, {"name", name}, {"settings", std::move(values)}};
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::sim::translation
