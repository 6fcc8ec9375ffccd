// Compares what was counted with what a memory system can do.
#include "demarc/sim/memory/simulation.hpp"

namespace demarc::sim::memory {

Result<void> check_counts(const Spec& spec, Cycles cycles,
                          std::span<const ClientStatistics> clients, const DramStatistics& dram) {
  for (const ClientStatistics& client : clients) {
    // Caches do not answer stores.
    const std::uint64_t asked = client.load_sectors + client.atomic_sectors;
    const std::uint64_t answered =
        client.l1_hit_sectors + client.l2_hit_sectors + client.l2_miss_sectors;
    if (answered > asked) {
      return check_failed(
          "{}: the simulation is wrong: it counted {} sectors that hit or missed, and {} that were "
          "asked for",
          spec.name, answered, asked);
    }
  }
  // A bank may have its next access on the bus ahead of time.
  constexpr std::uint64_t sectors_of_line = line_bytes / sector_bytes;
  const Ticks ahead =
      ticks_of(spec.column_cycles) + spec.banks * sectors_of_line * spec.burst_ticks;
  const std::uint64_t moved = dram.read_sectors + dram.write_sectors;
  if (moved * spec.burst_ticks > spec.slices * (ticks_of(cycles) + ahead)) {
    return check_failed(
        "{}: the simulation is wrong: DRAM moved {} sectors in {} cycles, more than its buses "
        "carry",
        spec.name, moved, cycles);
  }
  return {};
}

}  // namespace demarc::sim::memory
