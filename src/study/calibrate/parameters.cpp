// The table of parameters.
#include "calibrate/parameters.hpp"

#include <cmath>

namespace demarc::study {
namespace {

using gpu::Device;
using gpu::MemorySystem;

template <auto member>
double number(const Device& device) {
  return static_cast<double>(*device.memory_system.*member);
}
template <double MemorySystem::*member>
void set_number(Device& device, double value) {
  (*device.memory_system).*member = value;
}
template <std::uint32_t MemorySystem::*member>
void set_number(Device& device, double value) {
  (*device.memory_system).*member = static_cast<std::uint32_t>(std::lround(value));
}

double l1_cycles(const Device& device) {
  return device.l1.latency_cycles;
}
void set_l1_cycles(Device& device, double cycles) {
  device.l1.latency_cycles = cycles;
}
double l2_cycles(const Device& device) {
  return device.l2.latency_cycles;
}
// What DRAM takes beyond a hit stays.
void set_l2_cycles(Device& device, double cycles) {
  device.dram.latency_cycles += cycles - device.l2.latency_cycles;
  device.l2.latency_cycles = cycles;
}
double dram_cycles(const Device& device) {
  return device.dram.latency_cycles;
}
void set_dram_cycles(Device& device, double cycles) {
  device.dram.latency_cycles = cycles;
}

// Widths that the description leaves out are those of another kind of access.
double store_width(const Device& device) {
  const MemorySystem& system = *device.memory_system;
  return system.port_write_bytes > 0 ? system.port_write_bytes : system.port_bytes;
}
double atomic_width(const Device& device) {
  const MemorySystem& system = *device.memory_system;
  return system.port_atomic_bytes > 0 ? system.port_atomic_bytes : store_width(device);
}

std::string_view always_at_work(const Device& /*device*/) {
  return {};
}
std::string_view without_refresh(const Device& device) {
  return device.memory_system->refresh_interval_ns > 0
             ? ""
             : "the description has no refresh (refresh_interval_ns is 0)";
}

// clang-format off
constexpr std::array<ParameterRow, 14> parameter_table{{
    {"memory_system.issue_per_cycle", number<&MemorySystem::issue_per_cycle>, set_number<&MemorySystem::issue_per_cycle>, 0.25, 64, true, false, {"compute"}, always_at_work},
    {"l1.latency_cycles", l1_cycles, set_l1_cycles, 4, 1000, true, false, {"l1_latency"}, always_at_work},
    {"l2.latency_cycles", l2_cycles, set_l2_cycles, 20, 5000, true, false, {"l2_latency"}, always_at_work},
    {"memory_system.refresh_ns", number<&MemorySystem::refresh_ns>, set_number<&MemorySystem::refresh_ns>, 0, 2000, false, false, {"dram_read"}, without_refresh},
    {"dram.latency_cycles", dram_cycles, set_dram_cycles, 40, 20000, true, false, {"dram_latency", "dram_latency_loaded"}, always_at_work},
    {"memory_system.block_start_cycles", number<&MemorySystem::block_start_cycles>, set_number<&MemorySystem::block_start_cycles>, 0, 5000, false, false, {"short_blocks", "add_half"}, always_at_work},
    {"memory_system.launch_misses", number<&MemorySystem::launch_misses>, set_number<&MemorySystem::launch_misses>, 0, 16, false, true, {"short_kernel"}, always_at_work},
    {"memory_system.l1_miss_registers", number<&MemorySystem::l1_miss_registers>, set_number<&MemorySystem::l1_miss_registers>, 1, 4096, true, true, {"dram_read_one_sm", "dram_read_half"}, always_at_work},
    {"memory_system.sm_link_bytes", number<&MemorySystem::sm_link_bytes>, set_number<&MemorySystem::sm_link_bytes>, 1, 1024, true, false, {"l2_read_one_sm"}, always_at_work},
    {"memory_system.store_registers", number<&MemorySystem::store_registers>, set_number<&MemorySystem::store_registers>, 1, 4096, true, true, {"l2_write_one_sm", "l2_write_half"}, always_at_work},
    {"memory_system.port_bytes", number<&MemorySystem::port_bytes>, set_number<&MemorySystem::port_bytes>, 0.5, 1024, true, false, {"l2_read"}, always_at_work},
    {"memory_system.port_write_bytes", store_width, set_number<&MemorySystem::port_write_bytes>, 0.5, 1024, true, false, {"l2_write"}, always_at_work},
    {"memory_system.port_atomic_bytes", atomic_width, set_number<&MemorySystem::port_atomic_bytes>, 0.25, 1024, true, false, {"atomics"}, always_at_work},
    {"memory_system.write_queue", number<&MemorySystem::write_queue>, set_number<&MemorySystem::write_queue>, 4, 1024, true, true, {"dram_write", "add"}, always_at_work},
}};
// clang-format on

}  // namespace

std::span<const ParameterRow> parameter_rows() {
  return parameter_table;
}

}  // namespace demarc::study
