// Reads device descriptions from JSON and names what is wrong with them.
#include <cstdint>
#include <limits>

#include "address_map_json.hpp"
#include "address_translation_json.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/device/device.hpp"
#include "memory_system_json.hpp"

namespace demarc::gpu {
namespace {

constexpr std::int64_t u32_max = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t size_max = std::int64_t{1} << 50;

Result<std::uint32_t> read_u32(JsonObject& object, std::string_view key, std::uint32_t fallback) {
  DEMARC_TRY(const std::int64_t value, object.integer_or(key, 0, u32_max, fallback));
  return static_cast<std::uint32_t>(value);
}

Result<double> read_positive(JsonObject& object, std::string_view key, double fallback) {
  DEMARC_TRY(const double value, object.number_or(key, fallback));
  if (value < 0) return invalid_input("{}.{}: {} is negative", object.where(), key, value);
  return value;
}

Result<ComputeCapability> read_capability(JsonObject& object) {
  DEMARC_TRY(const std::string text, object.string("compute_capability"));
  const std::string place = object.where() + ".compute_capability";
  const auto dot = text.find('.');
  if (dot == std::string::npos) {
    return invalid_input("{}: '{}' is not MAJOR.MINOR, such as \"9.0\"", place, text);
  }
  DEMARC_TRY(const std::uint64_t major, parse_u64(text.substr(0, dot), place));
  DEMARC_TRY(const std::uint64_t minor, parse_u64(text.substr(dot + 1), place));
  if (major > 99 || minor > 9) {
    return invalid_input("{}: '{}' is not a compute capability", place, text);
  }
  return ComputeCapability{static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)};
}

Result<SmLimits> read_sm(JsonObject object) {
  SmLimits sm;
  DEMARC_TRY(sm.threads, read_u32(object, "threads", sm.threads));
  DEMARC_TRY(sm.blocks, read_u32(object, "blocks", sm.blocks));
  DEMARC_TRY(sm.threads_per_block, read_u32(object, "threads_per_block", sm.threads_per_block));
  DEMARC_TRY(sm.registers, read_u32(object, "registers", sm.registers));
  DEMARC_TRY(sm.shared_bytes, read_u32(object, "shared_bytes", sm.shared_bytes));
  DEMARC_TRY(sm.shared_block_bytes, read_u32(object, "shared_block_bytes", sm.shared_block_bytes));
  DEMARC_TRY(sm.shared_reserved_bytes,
             read_u32(object, "shared_reserved_bytes", sm.shared_reserved_bytes));
  DEMARC_CHECK(object.finish());
  return sm;
}

Result<Cache> read_cache(JsonObject object) {
  Cache cache;
  DEMARC_TRY(const std::int64_t size, object.integer("size_bytes", 0, size_max));
  cache.size_bytes = static_cast<std::uint64_t>(size);
  DEMARC_TRY(cache.line_bytes, read_u32(object, "line_bytes", cache.line_bytes));
  DEMARC_TRY(cache.sector_bytes, read_u32(object, "sector_bytes", cache.sector_bytes));
  DEMARC_TRY(cache.ways, read_u32(object, "ways", cache.ways));
  DEMARC_TRY(cache.slices, read_u32(object, "slices", cache.slices));
  DEMARC_TRY(cache.latency_cycles, read_positive(object, "latency_cycles", 0));
  DEMARC_CHECK(object.finish());
  if (cache.sector_bytes == 0 || cache.line_bytes % cache.sector_bytes != 0) {
    return invalid_input("{}.sector_bytes: a line of {} bytes cannot have sectors of {} bytes",
                         object.where(), cache.line_bytes, cache.sector_bytes);
  }
  if (cache.slices == 0)
    return invalid_input("{}.slices: at least one slice is needed", object.where());
  return cache;
}

Result<Dram> read_dram(JsonObject object) {
  Dram dram;
  DEMARC_TRY(const std::int64_t size, object.integer("size_bytes", 0, size_max));
  dram.size_bytes = static_cast<std::uint64_t>(size);
  DEMARC_TRY(dram.stacks, read_u32(object, "stacks", dram.stacks));
  DEMARC_TRY(dram.channels, read_u32(object, "channels", dram.channels));
  DEMARC_TRY(dram.bandwidth_bytes_per_s, read_positive(object, "bandwidth_bytes_per_s", 0));
  DEMARC_TRY(dram.latency_cycles, read_positive(object, "latency_cycles", 0));
  DEMARC_CHECK(object.finish());
  return dram;
}

Result<Tpc> read_tpc(const Json& value, const std::string& where) {
  DEMARC_TRY(JsonObject object, JsonObject::of(value, where));
  Tpc tpc;
  DEMARC_TRY(const std::int64_t gpc, object.integer("gpc", 0, 1023));
  tpc.gpc = GpcIndex(gpc);
  DEMARC_TRY(const Json* sms, object.array("sms"));
  for (const Json& sm : *sms) {
    if (!sm.is_number_unsigned() || sm.get<std::uint64_t>() > 65535) {
      return invalid_input("{}.sms: {} is not the number of an SM", where, json_text(sm));
    }
    tpc.sms.emplace_back(sm.get<std::uint32_t>());
  }
  if (object.has("bit")) {
    DEMARC_TRY(const std::int64_t bit, object.integer("bit", 0, 1023));
    tpc.bit = static_cast<std::uint32_t>(bit);
  }
  if (object.has("side")) {
    DEMARC_TRY(const std::int64_t side, object.integer("side", 0, 1));
    tpc.side = static_cast<std::uint32_t>(side);
  }
  DEMARC_CHECK(object.finish());
  return tpc;
}

Result<Topology> read_topology(JsonObject object) {
  Topology topology;
  DEMARC_TRY(const Json* tpcs, object.array("tpcs"));
  for (std::size_t t = 0; t < tpcs->size(); ++t) {
    DEMARC_TRY(Tpc tpc, read_tpc((*tpcs)[t], fmt::format("{}.tpcs[{}]", object.where(), t)));
    topology.tpcs.push_back(std::move(tpc));
  }
  DEMARC_CHECK(object.finish());
  if (const auto sound = topology.check(); !sound) {
    return invalid_input("{}.{}", object.where(), sound.error().message);
  }
  return topology;
}

}  // namespace

Result<Device> parse_device(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, std::string(source) + ": device"));
  DEMARC_TRY(const std::string schema, object.string("schema"));
  if (schema != device_schema) {
    return invalid_input("{}.schema: '{}' is not understood; this version reads '{}'",
                         object.where(), schema, device_schema);
  }
  Device device;
  DEMARC_TRY(device.name, object.string("name"));
  DEMARC_TRY(device.source, object.string("source"));
  DEMARC_TRY(device.compute_capability, read_capability(object));
  DEMARC_TRY(device.sm_clock_hz, read_positive(object, "sm_clock_hz", 0));
  DEMARC_TRY(device.memory_clock_hz, read_positive(object, "memory_clock_hz", 0));
  DEMARC_TRY(JsonObject sm, object.object("sm"));
  DEMARC_TRY(device.sm, read_sm(std::move(sm)));
  DEMARC_TRY(JsonObject l1, object.object("l1"));
  DEMARC_TRY(device.l1, read_cache(std::move(l1)));
  DEMARC_TRY(JsonObject l2, object.object("l2"));
  DEMARC_TRY(device.l2, read_cache(std::move(l2)));
  DEMARC_TRY(JsonObject dram, object.object("dram"));
  DEMARC_TRY(device.dram, read_dram(std::move(dram)));
  DEMARC_TRY(JsonObject topology, object.object("topology"));
  DEMARC_TRY(device.topology, read_topology(std::move(topology)));
  if (object.has("address_map")) {
    DEMARC_TRY(JsonObject map, object.object("address_map"));
    DEMARC_TRY(device.address_map, address_map_from_json(std::move(map)));
  }
  if (object.has("memory_system")) {
    DEMARC_TRY(JsonObject system, object.object("memory_system"));
    DEMARC_TRY(device.memory_system, memory_system_from_json(std::move(system)));
  }
  if (object.has("address_translation")) {
    DEMARC_TRY(JsonObject translation, object.object("address_translation"));
    DEMARC_TRY(device.address_translation, address_translation_from_json(std::move(translation)));
  }
  DEMARC_CHECK(object.finish());
  return device;
}

Result<Device> read_device(const std::filesystem::path& path) {
  DEMARC_TRY(const std::string text, read_file(path));
  return parse_device(text, path.string());
}

}  // namespace demarc::gpu
