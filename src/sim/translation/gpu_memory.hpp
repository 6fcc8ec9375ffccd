// L2 banks and DRAM of one GPU. Requests reach a bank in the order of the calls; a bank takes one a
// cycle and waits for at most so many misses. All results are known at once, so no events are
// needed.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/translation/settings.hpp"
#include "lru_sets.hpp"

namespace demarc::sim::translation {

class GpuMemory {
 public:
  explicit GpuMemory(const Settings& settings);
  // When a read of `line` arriving at `at` has its data, or a write has been taken.
  Cycles read(std::uint32_t line, Cycles at);
  Cycles write(std::uint32_t line, Cycles at);
  // Past the L2: when a controller of migrations has read or written a piece of a page.
  [[nodiscard]] Cycles bypass_l2(Cycles at) const { return at + dram_latency_; }
  // Forgets what the L2 holds.
  void flush();
  // Requests that the banks have booked beyond `now`, for a look at a simulation that is stuck.
  [[nodiscard]] std::uint32_t misses_under_way(Cycles now) const;

 private:
  struct Bank {
    LruSets tags;
    std::vector<Cycles> ready;   // per tag: when its data is there
    Cycles free = 0;             // next cycle it takes a request
    Cycles dram_free = 0;        // its DRAM channel
    std::vector<Cycles> misses;  // ring: when each of the last so many misses was over
    std::size_t oldest = 0;
  };
  Bank& bank_of(std::uint32_t line, std::uint32_t& local);

  std::uint32_t latency_;
  std::uint32_t dram_latency_;
  std::uint32_t bank_bits_;
  std::vector<Bank> banks_;
};

}  // namespace demarc::sim::translation
