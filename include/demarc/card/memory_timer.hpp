// Measures how long reads take on a card. The memory probe, the page constants of coloured memory
// and its audit use these measurements.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "demarc/device/latency_clusters.hpp"
#include "demarc/device/units.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

// A walk over chunks of 1 << chunk_shift bytes (at least 256) from an address on.
struct TimedStream {
  std::span<const std::uint32_t> chunks;
  std::uint32_t chunk_shift = 12;
  bool writes = false;   // overwrites the chunks with zeros
  bool latency = false;  // dependent loads, one at a time, on every SM
};

// What each SM does: 0 nothing, 1 the victim's work, 2 the aggressor's.
using SmRoles = PerIndex<gpu::SmIndex, std::uint8_t>;
// Every other TPC is the victim's, the others are the aggressor's.
[[nodiscard]] SmRoles alternating_roles(const Gpu& gpu);

class MemoryTimer {
 public:
  static Result<MemoryTimer> create(GpuPointer gpu);
  [[nodiscard]] const GpuPointer& gpu() const { return stream_.gpu(); }

  // Cycles of an L2 hit at base + offsets[i] (row; multiples of 128, below 512 GiB) from each SM
  // (column), whatever the memory holds. At most `together` SMs measure at the same time: eight do
  // not disturb each other, a hundred do.
  [[nodiscard]] Result<gpu::LatencyMatrix> hit_latencies(DevicePointer base,
                                                         std::span<const std::uint64_t> offsets,
                                                         std::span<const gpu::SmIndex> sms,
                                                         std::uint32_t together,
                                                         std::uint32_t repeats) const;

  // Seconds that the SMs of role 1 take for one round of `victim` (for one load, when it is a
  // latency stream), while those of role 2 run `aggressor` without end.
  // One round warms up. An aggressor without chunks is not an aggressor.
  [[nodiscard]] Result<double> stream_seconds(DevicePointer base, const TimedStream& victim,
                                              const TimedStream& aggressor,
                                              const SmRoles& roles) const;

  // Returns what `work` returns, while the SMs of role 1 run `traffic`. If the card has several
  // memory synchronisation domains, the traffic is in domain 1, and `work` must not launch in it.
  // If `work` outlasts the traffic, it runs again beside more traffic; check_failed if it always
  // does.
  [[nodiscard]] Result<double> beside(DevicePointer base, const TimedStream& traffic,
                                      const SmRoles& roles,
                                      const std::function<Result<double>()>& work) const;

 private:
  // Who runs what on which SM, and where the kernel finds it.
  struct Field {
    SmRoles roles;
    PerIndex<gpu::SmIndex, std::uint16_t> ranks;  // among those of its role
    std::array<std::uint32_t, 3> workers{};
    std::optional<DeviceBuffer> state;
    LaunchShape shape;
  };
  // A stream whose chunks lie on the card.
  struct PlacedStream {
    TimedStream stream;
    const DeviceBuffer* list;
    std::uint32_t rounds;  // 0: without end
  };
  [[nodiscard]] Result<Field> make_field(const SmRoles& roles) const;
  [[nodiscard]] Result<void> start(const Stream& stream, const Field& field, DevicePointer base,
                                   const PlacedStream& victim, const PlacedStream& aggressor) const;
  [[nodiscard]] static Result<std::uint64_t> nanoseconds_of(const Field& field);

  MemoryTimer(Module module, Function latency, Function streams, Stream stream)
      : module_(std::move(module)),
        latency_(std::move(latency)),
        streams_(std::move(streams)),
        stream_(std::move(stream)) {}

  Module module_;
  Function latency_;
  Function streams_;
  Stream stream_;
};

}  // namespace demarc::cuda
