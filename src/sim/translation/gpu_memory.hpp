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

 private:
  struct Bank {
    LruSets tags;
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
