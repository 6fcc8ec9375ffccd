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
      dram_line_(settings.dram_line_cycles),
      dram_turn_(settings.dram_turn_cycles),
      write_queue_(settings.dram_line_cycles * settings.dram_write_queue),
      bank_bits_(static_cast<std::uint32_t>(std::countr_zero(settings.l2_banks))),
      hashed_(settings.l2_bank_hash != 0),
      fetch_lines_(settings.dram_fetch_lines) {
  const std::uint32_t sets = settings.l2_bank_bytes / line_bytes / l2_ways;
  banks_.assign(settings.l2_banks,
                Bank{.tags = LruSets<BankLine>(sets, l2_ways),
                     .ready = PerIndex<LruSlot, Cycles>(std::size_t{sets} * l2_ways),
                     .written = PerIndex<LruSlot, std::uint8_t>(std::size_t{sets} * l2_ways),
                     .free = {},
                     .dram_free = {},
                     .last = Direction::read,
                     .misses = std::vector<Cycles>(settings.l2_mshrs)});
}

GpuMemory::Bank& GpuMemory::bank_of(FrameLine line, BankLine& local) {
  const std::uint32_t stripe = line.raw() >> interleave_bits;
  local = BankLine(((stripe >> bank_bits_) << interleave_bits) |
                   (line.raw() & ((1U << interleave_bits) - 1)));
  std::uint32_t bank = stripe;
  // Any upper bits may be added: a stripe is still alone with its number and its bank.
  if (hashed_) bank ^= (stripe >> bank_bits_) ^ (stripe >> (2 * bank_bits_)) * 5;
  return banks_[bank & ((1U << bank_bits_) - 1)];
}

// Books a line on the bank's channel, not before `at`; returns when it begins.
Cycles GpuMemory::use_dram(Bank& bank, Direction direction, Cycles at) {
  Cycles begin = std::max(at, bank.dram_free);
  if (direction != bank.last) begin += dram_turn_;
  bank.last = direction;
  bank.dram_free = begin + dram_line_;
  return begin;
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
  const Cycles dram = use_dram(bank, Direction::read, start + latency_);
  const Cycles done = dram + dram_latency_;
  bank.misses[bank.oldest] = done;
  bank.oldest = (bank.oldest + 1) % bank.misses.size();
  fetched(bank, local, done);
  fetch_neighbours(bank, local, done);
  return done;
}

void GpuMemory::fetched(Bank& bank, BankLine line, Cycles done) {
  const LruSlot slot = bank.tags.insert(line);
  bank.ready[slot] = done;
  bank.written[slot] = 0;
}

// The other lines of the piece that a miss brings.
void GpuMemory::fetch_neighbours(Bank& bank, BankLine missed, Cycles done) {
  const BankLine first(missed.raw() & ~(fetch_lines_ - 1));
  for (std::uint32_t i = 0; i < fetch_lines_; ++i) {
    const BankLine line(first.raw() + i);
    if (line == missed || bank.tags.find(line) != LruSets<BankLine>::absent) continue;
    bank.dram_free += dram_line_;
    fetched(bank, line, done);
  }
}

Cycles GpuMemory::write(FrameLine line, Cycles at) {
  BankLine local;
  Bank& bank = bank_of(line, local);
  Cycles start = std::max(at, bank.free);
  LruSlot slot = bank.tags.find(local);
  const bool hit = slot != LruSets<BankLine>::absent;
  const bool first = !hit || bank.written[slot] == 0;  // write since the line is here
  if (first && write_queue_ > Cycles() && bank.dram_free > start + write_queue_) {
    start = bank.dram_free - write_queue_;
  }
  bank.free = start + 1_cycles;
  if (!hit) {
    slot = bank.tags.insert(local);
    bank.ready[slot] = start + latency_;
  }
  if (first) {
    // The line will be written back once before it is replaced; that costs the channel one slot.
    bank.written[slot] = 1;
    use_dram(bank, Direction::write, start);
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
