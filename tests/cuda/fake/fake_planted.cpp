// The truth that probes find out: which slice of the L2 an address lies in, and how far it is from
// an SM.
#include "fake_planted.hpp"
#include "demarc/base/gf2.hpp"
#include "demarc/color/remainder_coloring.hpp"

namespace demarc::fake {
namespace {

bool upset(const FakeGpu& gpu) {
  return gpu.launches >= gpu.config.upset_from && gpu.launches < gpu.config.upset_until;
}

double noise_of(const FakeGpu& gpu) {
  return upset(gpu) ? gpu.config.upset_noise : gpu.config.latency_noise;
}

std::uint64_t seed_of(const FakeGpu& gpu) {
  return gpu.config.page_seed + (upset(gpu) ? gpu.config.upset_seed : 0);
}

std::uint64_t scrambled(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

// Numbers go on from one physical page to the next. Six runs of remainders, three of each side,
// share a path each.
PlantedChunk planted_remainder(std::uint64_t seed, std::uint64_t physical, std::uint64_t offset) {
  static const color::RemainderHash hash = color::h200_remainders();
  const std::uint64_t added = scrambled(physical * 7919 + seed);
  const auto constant = static_cast<std::uint32_t>(added % 64);
  const std::uint64_t number =
      ((physical + seed) << hash.number_bits()) + hash.number(offset, constant);
  const std::uint64_t remainder = number % hash.modulus;
  const std::uint64_t half = parity(offset, hash.half) ^ (added >> 6U & 1U);
  return {remainder < 24 ? remainder / 8 : 3 + (remainder - 24) / 8,
          half * hash.modulus + remainder, remainder < 24 ? 0U : 1U};
}

}  // namespace

double planted_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t line) {
  const std::uint32_t tpc = sm / gpu.config.sms_per_tpc;
  const std::uint64_t slice = line * 0x9e3779b97f4a7c15ULL >> 58;
  const bool near = gpu.config.side[tpc] == (slice & 1);
  std::normal_distribution<double> noise(0, noise_of(gpu));
  const double own = static_cast<double>((tpc * 7 + slice * 3) % 11);
  return 270 + own + (near ? 0 : 30) + noise(gpu.random);
}

PlantedChunk planted_chunk(FakeGpu& gpu, std::uint64_t address) {
  constexpr std::uint64_t page_bytes = 2 << 20;
  std::uint64_t offset = address % page_bytes;
  const auto page = gpu.mapped.find(address - offset);
  std::uint64_t physical = page == gpu.mapped.end() ? 0 : page->second;
  if (const auto piece = gpu.piece_at(address)) {
    physical = piece->physical;
    offset = piece->offset;
  }
  const std::uint64_t seed = seed_of(gpu);
  if (gpu.config.remainders) return planted_remainder(seed, physical, offset);
  const std::uint64_t added = scrambled(physical * 7919 + seed);
  std::uint64_t module = 0;
  for (std::size_t i = 0; i < std::size(gpu.config.masks); ++i) {
    const std::uint64_t mask = gpu.config.masks[i];
    if (mask != 0) module |= (parity(offset, mask) ^ (added >> i & 1U)) << i;
  }
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    number |= static_cast<std::uint64_t>(__builtin_parityll(offset & planted_digits[i])) << i;
  }
  const std::uint64_t page_digits = scrambled(physical * 31 + seed) % 8;
  const std::uint64_t slices = gpu.config.slices_of_module;
  return {module, module * slices + ((number ^ page_digits) + physical) % slices, 0};
}

// Cycles of one load of a mapped address: what its slice is to the SM.
double slice_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t address) {
  const PlantedChunk chunk = planted_chunk(gpu, address);
  const bool far =
      gpu.config.remainders && gpu.config.side[sm / gpu.config.sms_per_tpc] != chunk.side;
  std::normal_distribution<double> noise(0, noise_of(gpu));
  return 250 + (far ? 100 : 0) + static_cast<double>(scrambled(chunk.slice * 1024 + sm) % 64) +
         noise(gpu.random);
}

}  // namespace demarc::fake

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE std::uint64_t fake_module_of(std::uint64_t address) {
  const auto lock = demarc::fake::locked();
  return demarc::fake::planted_chunk(demarc::fake::FakeGpu::get(), address).module;
}
FAKE std::uint64_t fake_side_of(std::uint64_t address) {
  const auto lock = demarc::fake::locked();
  return demarc::fake::planted_chunk(demarc::fake::FakeGpu::get(), address).side;
}
