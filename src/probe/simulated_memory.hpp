// The memory of a simulated GPU as the probe sees it: every time comes from the simulation, with
// the jitter that a clock on a card has. Reachable as --device sim:NAME.
#pragma once

#include <map>
#include <memory>

#include "demarc/base/random.hpp"
#include "demarc/device/device.hpp"
#include "demarc/probe/timed_memory.hpp"
#include "demarc/sim/memory/simulation.hpp"

namespace demarc::probe {

struct ClockNoise {
  double jitter_cycles = 4;  // standard deviation of a time
  double spikes = 0.01;      // share of single times delayed by up to spike_cycles
  double spike_cycles = 900;
  double hit_jitter = 0.4;  // standard deviation of an L2 hit latency, least of several
};

class SimulatedMemory final : public TimedMemory {
 public:
  // Errors: what the description lacks for a simulation.
  static Result<std::unique_ptr<SimulatedMemory>> open(const gpu::Device& device,
                                                       std::uint64_t seed,
                                                       const ClockNoise& noise = {});

  [[nodiscard]] const MemoryFacts& facts() const override { return facts_; }
  Result<std::vector<float>> uncached_pairs(std::uint64_t primary,
                                            std::span<const std::uint64_t> secondaries) override;
  // Walks whose times are not asked for fill the cache without being timed.
  Result<std::vector<float>> reread(std::uint64_t first, std::span<const std::uint64_t> then,
                                    std::span<const std::uint64_t> candidates) override;
  Result<float> crowded_read(std::uint64_t primary,
                             std::span<const std::uint64_t> secondaries) override;
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t> addresses,
                                           std::span<const gpu::SmIndex> sms,
                                           std::uint32_t together, std::uint32_t repeats) override;
  // A stream is simulated for some thousand cycles in its steady state, and its time scaled to the
  // whole.
  Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) override;

 private:
  SimulatedMemory(const sim::memory::Spec& spec, std::uint64_t seed, const ClockNoise& noise);
  [[nodiscard]] float with_jitter(double cycles);

  sim::memory::Spec spec_;
  sim::memory::Simulation gpu_;
  ClockNoise noise_;
  Random random_;
  MemoryFacts facts_;
  std::vector<sim::SmIndex> victim_sms_, aggressor_sms_;  // every other TPC
  std::map<std::uint64_t, double> known_streams_;  // the simulation answers the same each time
};

}  // namespace demarc::probe
