// What a GPU is, as data. It is read from and written to devices/*.json. `demarc topo` and `demarc
// probe` fill it in on a real card. The simulators use it as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/address_map.hpp"
#include "demarc/device/address_translation.hpp"
#include "demarc/device/memory_system.hpp"
#include "demarc/device/topology.hpp"

namespace demarc::gpu {

// Written as the value of "schema"; a file of another version is refused.
inline constexpr std::string_view device_schema = "demarc.device/1";

struct ComputeCapability {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  // As targets of code are named: 90 for 9.0.
  [[nodiscard]] std::uint32_t number() const { return major * 10 + minor; }
  friend bool operator==(const ComputeCapability&, const ComputeCapability&) = default;
};

// What one SM can hold at a time.
struct SmLimits {
  std::uint32_t threads = 2048;
  std::uint32_t blocks = 32;
  std::uint32_t threads_per_block = 1024;
  std::uint32_t registers = 65536;          // 32-bit registers
  std::uint32_t shared_bytes = 0;           // shared memory of the SM
  std::uint32_t shared_block_bytes = 0;     // the most a block can opt in to
  std::uint32_t shared_reserved_bytes = 0;  // taken by the driver for each block
  friend bool operator==(const SmLimits&, const SmLimits&) = default;
};

// One level of cache. For L1 all numbers are per SM and slices is 1; for L2 they are of the GPU.
// ways = 0 or latency_cycles = 0: not known.
struct Cache {
  std::uint64_t size_bytes = 0;
  std::uint32_t line_bytes = 128;
  std::uint32_t sector_bytes = 32;
  std::uint32_t ways = 0;
  std::uint32_t slices = 1;
  double latency_cycles = 0;
  friend bool operator==(const Cache&, const Cache&) = default;
};

// channels counts the channels of all stacks (or of all chips, with stacks = 1).
struct Dram {
  std::uint64_t size_bytes = 0;
  std::uint32_t stacks = 1;
  std::uint32_t channels = 0;
  double bandwidth_bytes_per_s = 0;
  double latency_cycles = 0;  // latency of a load that misses the L2, in SM cycles; 0: not known
  friend bool operator==(const Dram&, const Dram&) = default;
};

struct Device {
  std::string name;
  std::string source;  // where the numbers come from
  ComputeCapability compute_capability;
  double sm_clock_hz = 0;
  double memory_clock_hz = 0;
  SmLimits sm;
  Topology topology;
  Cache l1;
  Cache l2;
  Dram dram;
  std::optional<AddressMap> address_map;
  std::optional<MemorySystem> memory_system;
  std::optional<AddressTranslation> address_translation;

  friend bool operator==(const Device&, const Device&) = default;
};

// `source` names the text in errors, which give the path of the key: "x.json:
// topology.tpcs[3].gpc".
[[nodiscard]] Result<Device> parse_device(std::string_view text, std::string_view source);
[[nodiscard]] Result<Device> read_device(const std::filesystem::path& path);
[[nodiscard]] std::string device_to_json(const Device& device);
[[nodiscard]] Result<void> write_device(const std::filesystem::path& path, const Device& device);

// The descriptions of devices/ are part of the library: "h100-sxm" and so on.
[[nodiscard]] std::vector<std::string> builtin_device_names();
// A built-in name or, when `name` holds a '/' or ends in ".json", a file.
[[nodiscard]] Result<Device> find_device(std::string_view name);
// What is known of the card that the driver calls `card`. That is `description`, as find_device()
// takes it, or, if that is empty, the built-in description of that name. missing_capability if
// there is none.
[[nodiscard]] Result<Device> describe_card(std::string_view card,
                                           std::string_view description = {});

}  // namespace demarc::gpu
