#include <cstdlib>
#include <filesystem>

#include "demarc/base/json.hpp"
#include "demarc/cuda/card.hpp"

namespace demarc::cuda {
namespace {

constexpr std::string_view facts_schema = "demarc.topo/1";

std::string default_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string own = variable("DEMARC_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/demarc";
  return variable("HOME") + "/.cache/demarc";
}

Result<StreamField> field_from_json(JsonObject object) {
  StreamField field;
  DEMARC_TRY(const std::int64_t offset, object.integer("offset", 0, 65536));
  field.offset = static_cast<std::uint32_t>(offset);
  DEMARC_TRY(field.wide, object.boolean_or("wide", true));
  DEMARC_CHECK(object.finish());
  return field;
}

}  // namespace

std::string facts_path(const Gpu& gpu, const std::string& cache_folder) {
  const std::string folder = cache_folder.empty() ? default_folder() : cache_folder;
  return fmt::format("{}/{}-{}.json", folder, gpu.uuid(), gpu.driver().driver_version());
}

std::string facts_to_json(const CardFacts& facts) {
  Json json{{"schema", facts_schema},
            {"by_descriptor", facts.by_descriptor},
            {"by_cluster", facts.by_cluster},
            {"unconfirmed", facts.unconfirmed},
            {"notes", facts.notes}};
  if (facts.stream_field) {
    json["stream_field"] =
        Json{{"offset", facts.stream_field->offset}, {"wide", facts.stream_field->wide}};
  }
  // The device keeps its own layout: one line a TPC.
  std::string text = json.dump(2);
  text.erase(text.size() - 2);  // "\n}"
  return text + ",\n  \"device\": " + gpu::device_to_json(facts.device) + "}\n";
}

Result<CardFacts> parse_facts(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, std::string(source) + ": topo"));
  DEMARC_TRY(const std::string schema, object.string("schema"));
  if (schema != facts_schema) {
    return invalid_input(
        "{}.schema: '{}' is not understood; this version reads '{}'. Run demarc "
        "topo --refresh",
        object.where(), schema, facts_schema);
  }
  CardFacts facts;
  DEMARC_TRY(facts.by_descriptor, object.boolean_or("by_descriptor", false));
  DEMARC_TRY(facts.by_cluster, object.boolean_or("by_cluster", false));
  DEMARC_TRY(const Json* unconfirmed, object.array("unconfirmed"));
  for (const Json& tpc : *unconfirmed) {
    if (!tpc.is_number_unsigned()) {
      return invalid_input("{}.unconfirmed: {} is not the number of a TPC", object.where(),
                           tpc.dump());
    }
    facts.unconfirmed.push_back(tpc.get<std::uint32_t>());
  }
  DEMARC_TRY(const Json* notes, object.array("notes"));
  for (const Json& note : *notes) {
    if (!note.is_string()) return invalid_input("{}.notes: sentences are expected", object.where());
    facts.notes.push_back(note.get<std::string>());
  }
  if (object.has("stream_field")) {
    DEMARC_TRY(JsonObject field, object.object("stream_field"));
    DEMARC_TRY(facts.stream_field, field_from_json(std::move(field)));
  }
  DEMARC_TRY(const Json* device, object.any("device"));
  DEMARC_TRY(facts.device, gpu::parse_device(device->dump(), source));
  DEMARC_CHECK(object.finish());
  return facts;
}

}  // namespace demarc::cuda
