// L2 banks and DRAM of one GPU. Requests reach a bank in the order of the calls; a bank takes one a
// cycle and waits for at most so many misses. All results are known at once, so no events are
// needed.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/sim/translation/places.hpp"
#include "demarc/sim/translation/settings.hpp"
#include "lru_sets.hpp"

namespace demarc::sim::translation {

// For one GPU's memory. Its frames hold pages.
using FrameNumber = Index<struct FrameNumberTag>;
using FrameLine = Index<struct FrameLineTag>;

// Where a line of the application lies while its page is in that frame.
[[nodiscard, gnu::always_inline]] inline FrameLine line_in(FrameNumber frame, LineNumber line,
                                                           PageSize pages) {
  return FrameLine((frame.raw() * pages.lines()) | pages.within(line));
}

class GpuMemory {
 public:
  explicit GpuMemory(const Settings& settings);
  // When a read of `line` arriving at `at` has its data, or a write has been taken.
  Cycles read(FrameLine line, Cycles at);
  Cycles write(FrameLine line, Cycles at);
  // Past the L2: when a controller of migrations has read or written a piece of a page.
  [[nodiscard]] Cycles bypass_l2(Cycles at) const { return at + dram_latency_; }
  // Forgets what the L2 holds.
  void flush();
  // Requests that the banks have booked beyond `now`, for a look at a simulation that is stuck.
  [[nodiscard]] std::uint32_t misses_under_way(Cycles now) const;

 private:
  using BankLine = Index<struct BankLineTag>;
  enum class Direction : std::uint8_t { read, write };
  struct Bank {
    LruSets<BankLine> tags;
    PerIndex<LruSlot, Cycles> ready;          // when the data is there
    PerIndex<LruSlot, std::uint8_t> written;  // it differs from what the DRAM has
    Cycles free;                              // next cycle it takes a request
    Cycles dram_free;                         // its DRAM channel
    Direction last = Direction::read;         // of what the channel moved
    std::vector<Cycles> misses;               // ring: when each of the last so many misses was over
    std::size_t oldest = 0;
  };
  Bank& bank_of(FrameLine line, BankLine& local);
  Cycles use_dram(Bank& bank, Direction direction, Cycles at);
  static void fetched(Bank& bank, BankLine line, Cycles done);
  void fetch_neighbours(Bank& bank, BankLine missed, Cycles done);

  Cycles latency_;
  Cycles dram_latency_;
  Cycles dram_line_;
  Cycles dram_turn_;
  Cycles write_queue_;  // 0: writes never wait for the channel
  std::uint32_t bank_bits_;
  bool hashed_;
  std::uint32_t fetch_lines_;
  std::vector<Bank> banks_;
};

}  // namespace demarc::sim::translation
