// Answers the probe from a planted memory, whose hashes decide every time, with noise.
#include "planted_memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "demarc/base/hash.hpp"

namespace demarc::probe {
namespace {

// Timing in the style of the paper's Figures 3, 4 and 8.
constexpr double pair_cycles = 505;
constexpr double row_conflict_cycles = 75;
constexpr double cache_hit_cycles = 260;
constexpr double cache_miss_cycles = 560;
constexpr double bank_turn_cycles = 110;  // one row conflict in the same bank
constexpr double bus_turn_cycles = 6;     // one transfer of the same module
constexpr double full_turn_cycles = 48;   // one wait for a miss-status register
constexpr double spike_cycles = 900;
constexpr int row_shift = 18;  // addresses of one bank that differ above: other rows

}  // namespace

PlantedMemory::PlantedMemory(PlantedTruth truth, std::uint64_t seed)
    : truth_(std::move(truth)), seed_(seed), random_(seed) {
  const std::uint32_t slices =
      truth_.module.count() *
      (truth_.remainders ? truth_.remainders->modulus : truth_.stack.modulus);
  // Slices and SMs lie on a plane; latency grows with the distance between them.
  struct Place {
    double x, y;
  };
  std::vector<Place> sms(truth_.facts.sms);
  for (auto& place : sms) place = {random_.uniform(), random_.uniform()};
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const Place here{random_.uniform(), random_.uniform()};
    for (const auto& sm : sms) {
      const double far = std::hypot(here.x - sm.x, here.y - sm.y);
      distances_.push_back(static_cast<float>(205 + 70 * far + 6 * random_.uniform()));
    }
  }
}

double PlantedMemory::jitter() {
  double extra = truth_.noise.jitter_cycles * random_.normal();
  if (random_.uniform() < truth_.noise.spikes) extra += spike_cycles * random_.uniform();
  return extra;
}

bool PlantedMemory::always_false(std::uint64_t a, std::uint64_t b, double probability) const {
  const std::uint64_t roll = stirred(seed_ ^ stirred(a) ^ (stirred(b) * 3));
  return static_cast<double>(roll >> 11U) * 0x1.0p-53 < probability;
}

std::uint32_t PlantedMemory::page_constant(std::uint64_t page) const {
  if (truth_.facts.physical_addresses) return 0;
  return static_cast<std::uint32_t>(stirred(seed_ + page)) & (truth_.module.count() - 1);
}

std::uint32_t PlantedMemory::module_of(std::uint64_t address, const gpu::LinearHash& hash) const {
  if (truth_.facts.physical_addresses) return hash(address);
  const std::uint64_t page = address / truth_.facts.page_bytes;
  std::uint32_t constant = page_constant(page);
  if (!(hash == truth_.module)) {
    // The masks of `hash` are sums of those of `module`.
    const auto coloring = color::Coloring::make(hash.rows, truth_.facts.page_bytes);
    constant = coloring->constant_from_rows(truth_.module.rows, constant).value();
    return coloring->color(color::ArenaByte(address % truth_.facts.page_bytes), constant);
  }
  return hash(address % truth_.facts.page_bytes) ^ constant;
}

// A page complements some digits and adds to the number, in the order of pages in the card.
std::uint32_t PlantedMemory::remainder_of(std::uint64_t address) const {
  const color::RemainderHash& hash = *truth_.remainders;
  const std::uint64_t page = address / truth_.facts.page_bytes;
  const auto constant = static_cast<std::uint32_t>(stirred(seed_ ^ (page * 5 + 3))) &
                        ((1U << hash.digits.size()) - 1);
  const std::uint64_t place = stirred(seed_ ^ (page * 7 + 1)) % 65536;
  return static_cast<std::uint32_t>((place * (hash.page_bytes / hash.unit_bytes()) +
                                     hash.number(address % truth_.facts.page_bytes, constant)) %
                                    hash.modulus);
}

std::uint32_t PlantedMemory::slice_of(std::uint64_t address) const {
  if (truth_.remainders) {
    return module_of(address, truth_.module) * truth_.remainders->modulus + remainder_of(address);
  }
  const std::uint64_t page =
      truth_.facts.physical_addresses ? 0 : address / truth_.facts.page_bytes;
  const std::uint64_t offset =
      truth_.facts.physical_addresses ? address : address % truth_.facts.page_bytes;
  const auto shift = static_cast<std::uint32_t>(stirred(seed_ ^ (page * 7 + 1)) % 1021);
  return module_of(address, truth_.module) * truth_.stack.modulus + truth_.stack(offset, shift);
}

Result<std::vector<float>> PlantedMemory::uncached_pairs(
    std::uint64_t primary, std::span<const std::uint64_t> secondaries) {
  if (!truth_.facts.physical_addresses) {
    return missing_capability("{}: physical addresses are not known", truth_.facts.name);
  }
  const std::uint32_t bank = truth_.bank(primary);
  const double wrong = truth_.noise.false_pairs / (1 - truth_.noise.false_pairs) /
                       static_cast<double>(truth_.bank.count());
  std::vector<float> cycles;
  cycles.reserve(secondaries.size());
  for (const auto secondary : secondaries) {
    const bool conflict =
        (truth_.bank(secondary) == bank && primary >> row_shift != secondary >> row_shift) ||
        always_false(primary, secondary, wrong);
    cycles.push_back(
        static_cast<float>(pair_cycles + (conflict ? row_conflict_cycles : 0) + jitter()));
  }
  return cycles;
}

Result<std::vector<float>> PlantedMemory::reread(std::uint64_t first,
                                                 std::span<const std::uint64_t> then,
                                                 std::span<const std::uint64_t> candidates) {
  if (!truth_.facts.physical_addresses) {
    return missing_capability("{}: physical addresses are not known", truth_.facts.name);
  }
  const std::uint32_t set = truth_.set(first);
  const std::uint64_t line = truth_.facts.line_bytes;
  // Least recently used goes first: `first` is gone when as many other lines of its set as there
  // are ways came after it.
  std::vector<std::uint64_t> same;
  for (const auto address : then) {
    if (truth_.set(address) == set && address / line != first / line) {
      same.push_back(address / line);
    }
  }
  std::sort(same.begin(), same.end());
  same.erase(std::unique(same.begin(), same.end()), same.end());
  const double wrong = truth_.noise.false_pairs / (1 - truth_.noise.false_pairs) /
                       static_cast<double>(truth_.set.count());
  std::vector<float> cycles;
  cycles.reserve(candidates.size());
  for (const auto candidate : candidates) {
    const bool adds = truth_.set(candidate) == set && candidate / line != first / line &&
                      !std::binary_search(same.begin(), same.end(), candidate / line);
    const bool gone = same.size() + (adds ? 1 : 0) >= truth_.ways ||
                      (then.size() < 1024 && always_false(first, candidate, wrong));
    cycles.push_back(static_cast<float>((gone ? cache_miss_cycles : cache_hit_cycles) + jitter()));
  }
  return cycles;
}

Result<float> PlantedMemory::crowded_read(std::uint64_t primary,
                                          std::span<const std::uint64_t> secondaries) {
  if (!truth_.facts.physical_addresses) {
    return missing_capability("{}: physical addresses are not known", truth_.facts.name);
  }
  double cycles = pair_cycles;
  std::uint32_t in_module = 1;  // threads, the reader among them
  for (const auto secondary : secondaries) {
    if (truth_.module(secondary) != truth_.module(primary)) continue;
    ++in_module;
    cycles += truth_.bank(secondary) == truth_.bank(primary) ? bank_turn_cycles : bus_turn_cycles;
    if (in_module > truth_.miss_registers) cycles += full_turn_cycles;
  }
  return static_cast<float>(cycles + jitter());
}

Result<gpu::LatencyMatrix> PlantedMemory::hit_latencies(std::span<const std::uint64_t> addresses,
                                                        std::span<const gpu::SmIndex> sms,
                                                        std::uint32_t together,
                                                        std::uint32_t repeats) {
  gpu::LatencyMatrix matrix;
  matrix.dimensions = static_cast<std::uint32_t>(sms.size());
  matrix.values.reserve(addresses.size() * sms.size());
  const double noise = truth_.noise.hit_jitter * (together > 16 ? 4 : 1);
  for (const auto address : addresses) {
    const std::size_t slice = slice_of(address);
    for (const auto sm : sms) {
      double least = 1e9;
      for (std::uint32_t r = 0; r < std::max(repeats, 1U); ++r) {
        least = std::min(least, noise * random_.normal());
      }
      if (random_.uniform() < truth_.noise.spikes / 10) least += 40 * random_.uniform();
      matrix.values.push_back(static_cast<float>(
          static_cast<double>(distances_[slice * truth_.facts.sms + sm.raw()]) + least));
    }
  }
  return matrix;
}

Result<double> PlantedMemory::stream_seconds(const Stream& victim, const Stream& aggressor) {
  // What two streams ask of each part of the memory system decides how they share it: DRAM behind
  // the modules or paths, and the L2 behind the cache modules.
  const auto part_of = [&](std::uint64_t address, const gpu::LinearHash& hash) {
    if (!truth_.remainders) return module_of(address, hash);
    return remainder_of(address) * truth_.paths / truth_.remainders->modulus;
  };
  const auto shares = [&](const Stream& stream, const gpu::LinearHash& hash) {
    std::vector<double> share(truth_.remainders ? truth_.paths : hash.count(), 0);
    const std::size_t step = std::max<std::size_t>(1, stream.chunks.size() / 512);
    double total = 0;
    for (std::size_t i = 0; i < stream.chunks.size(); i += step) {
      const auto start = static_cast<std::uint64_t>(stream.chunks[i]) << stream.chunk_shift;
      for (std::uint64_t at = 0; at < std::uint64_t{1} << stream.chunk_shift; at += 2048) {
        share[part_of(start + at, hash)] += 1;
        total += 1;
      }
    }
    for (auto& value : share) value /= std::max(total, 1.0);
    return share;
  };
  const auto overlap = [&](const gpu::LinearHash& hash) {
    if (aggressor.chunks.empty()) return 0.0;
    const auto a = shares(victim, hash);
    const auto b = shares(aggressor, hash);
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::min(a[i], b[i]);
    return sum;
  };
  const double bytes = static_cast<double>(victim.chunks.size()) *
                       std::exp2(static_cast<double>(victim.chunk_shift));
  const bool in_cache = bytes < static_cast<double>(truth_.facts.l2_bytes) / 2;
  const double alone = bytes / (in_cache ? 4e12 : 1.4e12);
  double factor = 1;
  if (!in_cache) factor += (aggressor.writes ? 1.8 : 1.3) * overlap(truth_.module);
  if (in_cache || aggressor.writes) {
    factor += (aggressor.writes ? 1.5 : 0.4) * overlap(truth_.cache_module);
  }
  return alone * factor * (1 + 0.003 * random_.normal());
}

}  // namespace demarc::probe
