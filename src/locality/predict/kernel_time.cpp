// Computes how long a kernel takes on a part of a card.
#include "predict/kernel_time.hpp"

#include <algorithm>
#include <vector>

namespace demarc::locality {
namespace {

constexpr double l1_bytes_per_cycle = 128;
constexpr double shortest_kernel_s = 2e-6;

// Where the description has no memory system.
gpu::MemorySystem typical_system() {
  gpu::MemorySystem system;
  system.sm_link_bytes = 64;
  system.port_bytes = 64;
  return system;
}

double bytes_of(std::uint64_t sectors, const gpu::Device& device) {
  return static_cast<double>(sectors) * device.l2.sector_bytes;
}

// As probing found them, or as the description says; 1 where neither is known, which no GPU has.
std::uint32_t l2_slices_of(const gpu::Device& device) {
  return std::max(device.l2.slices, device.address_map ? device.address_map->slices : 1U);
}

// Ways out of the L2, all slices together.
double ports_of(const gpu::Device& device, const gpu::MemorySystem& system) {
  const std::uint32_t slices = l2_slices_of(device);
  if (system.port.empty()) return slices;
  return std::min(slices, system.port.count() * std::max(device.dram.stacks, 1U));
}

double l2_cycles(const CachePrediction& p, const gpu::Device& device,
                 const gpu::MemorySystem& system) {
  if (l2_slices_of(device) <= 1) return 0;
  const double writes = system.port_write_bytes > 0 ? system.port_write_bytes : system.port_bytes;
  const double atomics = system.port_atomic_bytes > 0 ? system.port_atomic_bytes : writes;
  const std::uint64_t stored = p.l2_sectors - p.l2_read_sectors - p.l2_atomic_sectors;
  // Reads come out of the L2, all else goes into it.
  const double out = bytes_of(p.l2_read_sectors, device) / system.port_bytes;
  const double in =
      bytes_of(stored, device) / writes + bytes_of(p.l2_atomic_sectors, device) / atomics;
  return std::max(out, in) / ports_of(device, system);
}

// Bytes per cycle that `used` SMs, spread over all GPCs, move over links of these widths.
double link_bytes(const gpu::Device& device, double sm_bytes, double gpc_bytes, double used) {
  PerIndex<gpu::GpcIndex, double> sms(device.topology.gpc_count());
  for (const gpu::Tpc& tpc : device.topology.tpcs) {
    sms[tpc.gpc] += static_cast<double>(tpc.sms.size());
  }
  double sum = 0;
  for (const double of_gpc : sms) {
    const double bytes = of_gpc * sm_bytes;
    sum += gpc_bytes > 0 ? std::min(bytes, gpc_bytes) : bytes;
  }
  return std::max(sm_bytes, sum * used / device.topology.sm_count());
}

double link_cycles(const CachePrediction& p, const gpu::Device& device,
                   const gpu::MemorySystem& system, double used) {
  const double sm_store = system.sm_store_bytes > 0 ? system.sm_store_bytes : system.sm_link_bytes;
  const double gpc_store =
      system.gpc_store_bytes > 0 ? system.gpc_store_bytes : system.gpc_link_bytes;
  const double gpc_atomic = system.gpc_atomic_bytes > 0 ? system.gpc_atomic_bytes : gpc_store;
  const std::uint64_t stored = p.l2_sectors - p.l2_read_sectors - p.l2_atomic_sectors;
  return std::max(
      bytes_of(p.l2_read_sectors, device) /
          link_bytes(device, system.sm_link_bytes, system.gpc_link_bytes, used),
      bytes_of(stored, device) / link_bytes(device, sm_store, gpc_store, used) +
          bytes_of(p.l2_atomic_sectors, device) / link_bytes(device, sm_store, gpc_atomic, used));
}

double sm_cycles(const CachePrediction& p, const gpu::Device& device,
                 const gpu::MemorySystem& system, double share) {
  const double sms = std::max(1.0, share * device.topology.sm_count());
  const double resident = std::max(p.blocks_per_sm, 1U);
  const double rounds = std::max(1.0, p.blocks / (sms * resident));
  const double used = std::clamp(p.blocks, 1.0, sms);
  return std::max({rounds * (system.block_start_cycles + p.block_wait_cycles),
                   bytes_of(p.l1_sectors, device) / l1_bytes_per_cycle / used,
                   link_cycles(p, device, system, used),
                   p.load_line_cycles / system.l1_miss_registers / used,
                   p.store_line_cycles / system.store_registers / used});
}

}  // namespace

KernelTime kernel_time(const CachePrediction& prediction, const gpu::Device& device,
                       const CardShare& share) {
  const gpu::MemorySystem system = device.memory_system.value_or(typical_system());
  const double clock = device.sm_clock_hz > 0 ? device.sm_clock_hz : 1e9;
  KernelTime time;
  time.sms_s = sm_cycles(prediction, device, system, share.sms) / clock;
  time.l2_s = l2_cycles(prediction, device, system) / clock / share.memory;
  if (device.dram.bandwidth_bytes_per_s > 0) {
    double used = device.dram.bandwidth_bytes_per_s;
    if (system.refresh_interval_ns > 0) used *= 1 - system.refresh_ns / system.refresh_interval_ns;
    time.dram_s = static_cast<double>(prediction.dram_bytes) / used / share.memory;
  }
  time.all_s = shortest_kernel_s + std::max({time.sms_s, time.l2_s, time.dram_s});
  return time;
}

}  // namespace demarc::locality
