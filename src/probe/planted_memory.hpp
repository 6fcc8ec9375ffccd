// Memories whose structure is known, with the timing of a real one: what the probe must recover
// before it may be believed on a card. Reachable as --device planted:NAME.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "demarc/base/random.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/color/remainder_coloring.hpp"
#include "demarc/device/device.hpp"
#include "demarc/probe/timed_memory.hpp"

namespace demarc::probe {

struct PlantedNoise {
  double jitter_cycles = 4;   // standard deviation of a time
  double spikes = 0.01;       // share of single measurements delayed by much
  double false_pairs = 0.05;  // share of reported conflicts that are none, on every repetition
  double hit_jitter = 0.4;    // standard deviation of an L2 hit latency, cycles
};

struct PlantedTruth {
  MemoryFacts facts;
  gpu::LinearHash module;
  gpu::LinearHash bank;
  gpu::LinearHash set;
  std::uint32_t ways = 16;
  std::uint32_t miss_registers = 16;
  gpu::ModuloStage stack;        // slices of one module; modulus 1: a module is one slice
  gpu::LinearHash cache_module;  // what L2 hits and writes share; bank conflicts use `module`
  // Slices and paths to memory follow remainders instead of `stack`: so many paths, each of
  // remainders that follow each other.
  std::optional<color::RemainderHash> remainders;
  std::uint32_t paths = 0;
  PlantedNoise noise;
};

class PlantedMemory final : public TimedMemory {
 public:
  PlantedMemory(PlantedTruth truth, std::uint64_t seed);

  [[nodiscard]] const PlantedTruth& truth() const { return truth_; }
  [[nodiscard]] const MemoryFacts& facts() const override { return truth_.facts; }
  // The constant that page `page` adds to the module index.
  [[nodiscard]] std::uint32_t page_constant(std::uint64_t page) const;

  Result<std::vector<float>> uncached_pairs(std::uint64_t primary,
                                            std::span<const std::uint64_t> secondaries) override;
  Result<std::vector<float>> reread(std::uint64_t first, std::span<const std::uint64_t> then,
                                    std::span<const std::uint64_t> candidates) override;
  Result<float> crowded_read(std::uint64_t primary,
                             std::span<const std::uint64_t> secondaries) override;
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t> addresses,
                                           std::span<const gpu::SmIndex> sms,
                                           std::uint32_t together, std::uint32_t repeats) override;
  Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) override;

 private:
  [[nodiscard]] double jitter();
  [[nodiscard]] bool always_false(std::uint64_t a, std::uint64_t b, double probability) const;
  [[nodiscard]] std::uint32_t module_of(std::uint64_t address, const gpu::LinearHash& hash) const;
  [[nodiscard]] std::uint32_t remainder_of(std::uint64_t address) const;
  [[nodiscard]] std::uint32_t slice_of(std::uint64_t address) const;

  PlantedTruth truth_;
  std::uint64_t seed_;
  Random random_;
  std::vector<float> distances_;  // [slice * sms + sm], cycles
};

// "gtx1080" and "v100" with the published functions, "h100" with 80 slices, 16 modules, pages of
// unknown place and the masks that were measured on such a card, "h200" with the 94 slices of one.
[[nodiscard]] Result<std::unique_ptr<PlantedMemory>> planted_memory(std::string_view name,
                                                                    std::uint64_t seed);
[[nodiscard]] Result<PlantedTruth> planted_truth(std::string_view name);
// For a description that holds bank and set functions of physical addresses.
[[nodiscard]] Result<PlantedTruth> planted_truth(const gpu::Device& device);

}  // namespace demarc::probe
