// Lists the memories that can be planted, and makes one of a device description.
#include "demarc/device/device.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

PlantedTruth hopper(const std::string& name, std::uint64_t l2_bytes) {
  PlantedTruth truth;
  truth.facts.name = name;
  truth.facts.page_bytes = std::uint64_t{1} << 21U;
  truth.facts.pages = 4096;
  truth.facts.sms = 132;
  truth.facts.l2_bytes = l2_bytes;
  return truth;
}

PlantedTruth h100() {
  PlantedTruth truth = hopper("planted:h100", 50U << 20U);
  truth.module.rows = {0x77000, 0xb3000, 0x11b800, 0x22800};
  truth.cache_module.rows = {0xc4000, 0x11b800, 0x55800};
  truth.stack.modulus = 5;
  truth.stack.number.rows = {0x1a1100, 0x62400, 0x1a4800, 0x20000, 0x40000, 0x80000, 0x100000};
  return truth;
}

PlantedTruth h200() {
  PlantedTruth truth = hopper("planted:h200", 60U << 20U);
  truth.module.rows = {0xab000};
  truth.cache_module = truth.module;
  truth.remainders = color::h200_remainders();
  truth.paths = 6;
  return truth;
}

}  // namespace

// Where the description does not know the number of ways, the size of the cache does.
Result<PlantedTruth> planted_truth(const gpu::Device& device) {
  if (!device.address_map || device.address_map->page_bytes != 0 ||
      device.address_map->bank.empty() || device.address_map->set.empty()) {
    return missing_capability(
        "{}: the description has no bank and set functions of physical "
        "addresses to simulate",
        device.name);
  }
  PlantedTruth truth;
  const auto& map = *device.address_map;
  truth.facts.name = device.name;
  truth.facts.physical_addresses = true;
  truth.facts.address_bits = map.address_bits;
  truth.facts.sms = device.topology.sm_count();
  truth.facts.l2_bytes = device.l2.size_bytes;
  truth.facts.line_bytes = device.l2.line_bytes;
  truth.module = map.module;
  truth.bank = map.bank;
  truth.set = map.set;
  truth.cache_module = map.module;
  truth.ways = map.cache_ways != 0
                   ? map.cache_ways
                   : static_cast<std::uint32_t>(device.l2.size_bytes / device.l2.line_bytes /
                                                map.set.count());
  truth.miss_registers = map.miss_registers != 0 ? map.miss_registers : 16;
  return truth;
}

Result<PlantedTruth> planted_truth(std::string_view name) {
  if (name == "h100") return h100();
  if (name == "h200") return h200();
  if (name == "gtx1080" || name == "v100") {
    DEMARC_TRY(const gpu::Device device, gpu::find_device(name));
    return planted_truth(device);
  }
  return invalid_input("planted memory '{}' is not known; there are gtx1080, v100, h100 and h200",
                       name);
}

Result<std::unique_ptr<PlantedMemory>> planted_memory(std::string_view name, std::uint64_t seed) {
  DEMARC_TRY(PlantedTruth truth, planted_truth(name));
  return std::make_unique<PlantedMemory>(std::move(truth), seed);
}

}  // namespace demarc::probe
