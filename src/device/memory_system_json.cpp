// Reads, checks and writes the section "memory_system" of a device description.
#include "memory_system_json.hpp"

#include <array>

#include "address_map_json.hpp"

namespace demarc::gpu {
namespace {

// Name, member and least value: parses, checks and prints every number of the section.
struct RealField {
  const char* key;
  double MemorySystem::*member;
  bool positive;
};
struct CountField {
  const char* key;
  std::uint32_t MemorySystem::*member;
  std::int64_t low, high;
};

constexpr std::array<RealField, 25> real_fields{
    {{"issue_per_cycle", &MemorySystem::issue_per_cycle, true},
     {"instruction_latency_cycles", &MemorySystem::instruction_latency_cycles, true},
     {"float_per_cycle", &MemorySystem::float_per_cycle, false},
     {"sm_link_bytes", &MemorySystem::sm_link_bytes, false},
     {"sm_store_bytes", &MemorySystem::sm_store_bytes, false},
     {"gpc_link_bytes", &MemorySystem::gpc_link_bytes, false},
     {"gpc_store_bytes", &MemorySystem::gpc_store_bytes, false},
     {"gpc_atomic_bytes", &MemorySystem::gpc_atomic_bytes, false},
     {"port_bytes", &MemorySystem::port_bytes, false},
     {"port_write_bytes", &MemorySystem::port_write_bytes, false},
     {"port_atomic_bytes", &MemorySystem::port_atomic_bytes, false},
     {"shared_bytes", &MemorySystem::shared_bytes, false},
     {"block_start_cycles", &MemorySystem::block_start_cycles, false},
     {"launch_gap_ns", &MemorySystem::launch_gap_ns, false},
     {"latency_spread_cycles", &MemorySystem::latency_spread_cycles, false},
     {"precharge_ns", &MemorySystem::precharge_ns, false},
     {"activate_ns", &MemorySystem::activate_ns, false},
     {"column_ns", &MemorySystem::column_ns, false},
     {"row_cycle_ns", &MemorySystem::row_cycle_ns, false},
     {"activate_gap_ns", &MemorySystem::activate_gap_ns, false},
     {"activate_window_ns", &MemorySystem::activate_window_ns, false},
     {"refresh_interval_ns", &MemorySystem::refresh_interval_ns, false},
     {"refresh_ns", &MemorySystem::refresh_ns, false},
     {"turnaround_ns", &MemorySystem::turnaround_ns, false},
     {"row_idle_ns", &MemorySystem::row_idle_ns, false}}};

constexpr std::array<CountField, 8> count_fields{
    {{"l1_miss_registers", &MemorySystem::l1_miss_registers, 1, 65535},
     {"store_registers", &MemorySystem::store_registers, 1, 65535},
     {"launch_misses", &MemorySystem::launch_misses, 0, 64},
     {"miss_registers", &MemorySystem::miss_registers, 1, 65535},
     {"row_shift", &MemorySystem::row_shift, 7, 40},
     {"burst_bytes", &MemorySystem::burst_bytes, 1, 4096},
     {"write_queue", &MemorySystem::write_queue, 2, 65535},
     {"turn_accesses", &MemorySystem::turn_accesses, 0, 65535}}};

}  // namespace

Result<MemorySystem> memory_system_from_json(JsonObject object) {
  MemorySystem system;
  DEMARC_TRY(system.source, object.string("source"));
  for (const RealField& field : real_fields) {
    DEMARC_TRY(const double value, object.number_or(field.key, system.*field.member));
    if (value < 0 || (field.positive && value == 0)) {
      return invalid_input("{}.{}: {} must be {}", object.where(), field.key, value,
                           field.positive ? "above 0" : "0 or more");
    }
    system.*field.member = value;
  }
  for (const CountField& field : count_fields) {
    DEMARC_TRY(const std::int64_t value,
               object.integer_or(field.key, field.low, field.high, system.*field.member));
    system.*field.member = static_cast<std::uint32_t>(value);
  }
  DEMARC_TRY(system.port, hash_from_json(object, "port_masks"));
  DEMARC_TRY(system.bank, hash_from_json(object, "bank_masks"));
  DEMARC_CHECK(object.finish());
  return system;
}

Json memory_system_to_json(const MemorySystem& system) {
  Json json{{"source", system.source}};
  for (const RealField& field : real_fields) json[field.key] = system.*field.member;
  for (const CountField& field : count_fields) json[field.key] = system.*field.member;
  json["port_masks"] = hash_to_json(system.port);
  json["bank_masks"] = hash_to_json(system.bank);
  return json;
}

}  // namespace demarc::gpu
