// Times reads and writes in the L2 banks and the DRAM of one GPU.
#include "gpu_memory.hpp"

#include <algorithm>
#include <bit>

#include "demarc/sim/translation/application.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::uint32_t l2_ways = 16;
constexpr std::uint32_t interleave_bits = 6;  // 4 KiB of 64-byte lines lie in one bank

}  // namespace

GpuMemory::GpuMemory(const Settings& settings)
    : latency_(settings.l2_latency),
      dram_latency_(settings.dram_latency),
      bank_bits_(static_cast<std::uint32_t>(std::countr_zero(settings.l2_banks))) {
  const std::uint32_t sets = settings.l2_bank_bytes / line_bytes / l2_ways;
  banks_.assign(settings.l2_banks,
                Bank{.tags = LruSets<BankLine>(sets, l2_ways),
                     .ready = PerIndex<LruSlot, Cycles>(std::size_t{sets} * l2_ways),
                     .free = {},
                     .dram_free = {},
                     .misses = std::vector<Cycles>(settings.l2_mshrs)});
}

GpuMemory::Bank& GpuMemory::bank_of(FrameLine line, BankLine& local) {
  const std::uint32_t stripe = line.raw() >> interleave_bits;
  local = BankLine(((stripe >> bank_bits_) << interleave_bits) |
                   (line.raw() & ((1U << interleave_bits) - 1)));
  return banks_[stripe & ((1U << bank_bits_) - 1)];
}

Cycles GpuMemory::read(FrameLine line, Cycles at) {
  BankLine local;
  Bank& bank = bank_of(line, local);
  Cycles start = std::max(at, bank.free);
  const LruSlot slot = bank.tags.find(local);
  const bool hit = slot != LruSets<BankLine>::absent;
  if (!hit) start = std::max(start, bank.misses[bank.oldest]);
  bank.free = start + 1_cycles;
  if (hit) return std::max(start + latency_, bank.ready[slot]);
  const Cycles dram = std::max(start + latency_, bank.dram_free);
  bank.dram_free = dram + 1_cycles;
  const Cycles done = dram + dram_latency_;
  bank.misses[bank.oldest] = done;
  bank.oldest = (bank.oldest + 1) % bank.misses.size();
  bank.ready[bank.tags.insert(local)] = done;
  return done;
}

Cycles GpuMemory::write(FrameLine line, Cycles at) {
  BankLine local;
  Bank& bank = bank_of(line, local);
  const Cycles start = std::max(at, bank.free);
  bank.free = start + 1_cycles;
  if (!bank.tags.touch(local)) {
    bank.ready[bank.tags.insert(local)] = start + latency_;
    // The line it replaces is written back in time; that costs the channel one slot.
    bank.dram_free = std::max(bank.dram_free, start) + 1_cycles;
  }
  return start + latency_;
}

void GpuMemory::flush() {
  for (Bank& bank : banks_) bank.tags.clear();
}

std::uint32_t GpuMemory::misses_under_way(Cycles now) const {
  std::uint32_t count = 0;
  for (const Bank& bank : banks_) {
    for (const Cycles done : bank.misses) count += done > now ? 1U : 0U;
  }
  return count;
}

}  // namespace demarc::sim::translation
