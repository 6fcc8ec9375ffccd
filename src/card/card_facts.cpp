// Reads and writes the file in which a card's facts are kept.
#include <cstdlib>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "demarc/card/card.hpp"

namespace demarc::cuda {
namespace {

constexpr std::string_view facts_schema = "demarc.topo/2";

Result<StreamField> field_from_json(JsonObject object) {
  StreamField field;
  DEMARC_TRY(const std::int64_t offset, object.integer("offset", 0, 65536));
  field.offset = static_cast<std::uint32_t>(offset);
  DEMARC_TRY(field.wide, object.boolean_or("wide", true));
  DEMARC_CHECK(object.finish());
  return field;
}

}  // namespace

std::string facts_folder(const std::string& cache_folder) {
  if (!cache_folder.empty()) return cache_folder;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string own = variable("DEMARC_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/demarc";
  return variable("HOME") + "/.cache/demarc";
}

std::string facts_path(const Gpu& gpu, const std::string& cache_folder) {
  return fmt::format("{}/{}-{}.json", facts_folder(cache_folder), gpu.uuid(),
                     gpu.driver().driver_version());
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
  // What follows keeps its own layout: one line per TPC.
  std::string text = json_text(json, 2);
  text.erase(text.size() - 2);  // "\n}"
  return text + ",\n  \"device\": " + gpu::device_to_json(facts.device) + "}\n";
}

Result<CardFacts> parse_facts(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, std::string(source) + ": topo"));
  DEMARC_TRY(const std::string schema, object.string("schema"));
  if (schema != facts_schema) {
    return invalid_input("{}.schema: '{}' is not understood; this version reads '{}'",
                         object.where(), schema, facts_schema);
  }
  CardFacts facts;
  DEMARC_TRY(facts.by_descriptor, object.boolean_or("by_descriptor", false));
  DEMARC_TRY(facts.by_cluster, object.boolean_or("by_cluster", false));
  DEMARC_TRY(const Json* unconfirmed, object.array("unconfirmed"));
  for (const Json& tpc : *unconfirmed) {
    if (!tpc.is_number_unsigned()) {
      return invalid_input("{}.unconfirmed: {} is not the number of a TPC", object.where(),
                           json_text(tpc));
    }
    facts.unconfirmed.emplace_back(tpc.get<std::uint32_t>());
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

Result<std::optional<CardFacts>> remembered_facts(const Gpu& gpu, const std::string& cache_folder) {
  const std::string path = facts_path(gpu, cache_folder);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::optional<CardFacts>();
  DEMARC_TRY(const std::string text, read_file(path));
  auto facts = parse_facts(text, path);
  if (!facts) {
    return tl::unexpected(Error{facts.error().kind,
                                facts.error().message + "; demarc topo --refresh writes it anew"});
  }
  DEMARC_CHECK(check_facts(*facts, gpu, path));
  facts->from_cache = true;
  return std::optional<CardFacts>(std::move(*facts));
}

Result<void> check_facts(const CardFacts& facts, const Gpu& gpu, std::string_view source) {
  const gpu::Device& known = facts.device;
  const auto differs = [&](std::string_view what, const auto& remembered, const auto& now) {
    return check_failed(
        "{}: it belongs to another card: {} is {} there and {} now; run demarc topo --refresh",
        source, what, remembered, now);
  };
  if (known.name != gpu.name()) return differs("the name", known.name, gpu.name());
  if (known.source != source_of(gpu)) {
    return differs("what it was taken of", known.source, source_of(gpu));
  }
  const auto version = [](gpu::ComputeCapability capability) {
    return fmt::format("{}.{}", capability.major, capability.minor);
  };
  if (known.compute_capability != gpu.compute_capability()) {
    return differs("the compute capability", version(known.compute_capability),
                   version(gpu.compute_capability()));
  }
  // A client of MPS may be shown less than there is.
  const bool part = gpu.under_mps();
  const auto other = [part](std::uint64_t remembered, std::uint64_t now) {
    return part ? now > remembered : now != remembered;
  };
  if (other(known.topology.sm_count(), gpu.sm_count())) {
    return differs("the number of SMs", known.topology.sm_count(), gpu.sm_count());
  }
  if (other(known.dram.size_bytes, gpu.total_bytes())) {
    return differs("the memory's size", known.dram.size_bytes, gpu.total_bytes());
  }
  return {};
}

}  // namespace demarc::cuda
