// Writes device descriptions as JSON, with one line for each TPC.
#include "address_map_json.hpp"
#include "address_translation_json.hpp"
#include "demarc/base/files.hpp"
#include "demarc/device/device.hpp"
#include "memory_system_json.hpp"

namespace demarc::gpu {
namespace {

Json cache_to_json(const Cache& cache) {
  return Json{{"size_bytes", cache.size_bytes},
              {"line_bytes", cache.line_bytes},
              {"sector_bytes", cache.sector_bytes},
              {"ways", cache.ways},
              {"slices", cache.slices},
              {"latency_cycles", cache.latency_cycles}};
}

Json sm_to_json(const SmLimits& sm) {
  return Json{{"threads", sm.threads},
              {"blocks", sm.blocks},
              {"threads_per_block", sm.threads_per_block},
              {"registers", sm.registers},
              {"shared_bytes", sm.shared_bytes},
              {"shared_block_bytes", sm.shared_block_bytes},
              {"shared_reserved_bytes", sm.shared_reserved_bytes}};
}

Json dram_to_json(const Dram& dram) {
  return Json{{"size_bytes", dram.size_bytes},
              {"stacks", dram.stacks},
              {"channels", dram.channels},
              {"bandwidth_bytes_per_s", dram.bandwidth_bytes_per_s},
              {"latency_cycles", dram.latency_cycles}};
}

// One line per TPC: a description is read by people too, and nlohmann's pretty printer would spread
// it over hundreds.
std::string topology_to_text(const Topology& topology) {
  std::string text = "{\"tpcs\": [\n";
  for (const TpcIndex t : topology.tpcs.keys()) {
    const Tpc& tpc = topology.tpcs[t];
    Json line{{"gpc", tpc.gpc}, {"sms", tpc.sms}};
    if (tpc.bit) line["bit"] = *tpc.bit;
    if (tpc.side) line["side"] = *tpc.side;
    text += "    " + json_text(line) + (t + 1 < topology.tpcs.next_key() ? ",\n" : "\n");
  }
  return text + "  ]}";
}

}  // namespace

std::string device_to_json(const Device& device) {
  std::string text = "{\n";
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += fmt::format("  \"{}\": {},\n", key, value);
  };
  add("schema", json_text(Json(device_schema)));
  add("name", json_text(Json(device.name)));
  add("source", json_text(Json(device.source)));
  add("compute_capability",
      fmt::format("\"{}.{}\"", device.compute_capability.major, device.compute_capability.minor));
  add("sm_clock_hz", json_text(Json(device.sm_clock_hz)));
  add("memory_clock_hz", json_text(Json(device.memory_clock_hz)));
  add("sm", json_text(sm_to_json(device.sm)));
  add("l1", json_text(cache_to_json(device.l1)));
  add("l2", json_text(cache_to_json(device.l2)));
  add("dram", json_text(dram_to_json(device.dram)));
  if (device.address_map) add("address_map", json_text(address_map_to_json(*device.address_map)));
  if (device.memory_system) {
    add("memory_system", json_text(memory_system_to_json(*device.memory_system)));
  }
  if (device.address_translation) {
    add("address_translation", json_text(address_translation_to_json(*device.address_translation)));
  }
  return text + "  \"topology\": " + topology_to_text(device.topology) + "\n}\n";
}

Result<void> write_device(const std::filesystem::path& path, const Device& device) {
  return write_file(path, device_to_json(device));
}

}  // namespace demarc::gpu
