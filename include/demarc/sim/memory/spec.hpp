// What a simulated memory system is: sizes, widths and latencies. Times are in SM cycles;
// everything is fixed before the first access. It is built from a device description; tests build
// small ones by hand.
//
// The way of a load that misses the L1, and what each part adds when nothing else is under way:
//   SM link | request_cycles | GPC link | port | L2 lookup: hit: l2_cycles | port | reply_cycles |
//   GPC link | SM link.   A miss adds dram_cycles, the row (precharge, activate), the column and
//   the burst.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/device/device.hpp"
#include "demarc/sim/memory/lines.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim::memory {

// Widths are kept in ticks, so that a link of 23 bytes per cycle is not rounded to 32.
using Ticks = Quantity<struct TicksTag>;
inline constexpr std::uint64_t ticks_per_cycle = 256;
[[nodiscard, gnu::always_inline]] constexpr Ticks ticks_of(Cycles cycles) {
  return Ticks(cycles.raw() * ticks_per_cycle);
}
// The cycles within which so many ticks have passed.
[[nodiscard, gnu::always_inline]] constexpr Cycles cycles_of(Ticks ticks) {
  return Cycles(ceil_div(ticks.raw(), ticks_per_cycle));
}

using SliceIndex = Index<struct SliceIndexTag>;

// sets = 0: there is no such cache.
struct CacheSpec {
  std::uint32_t sets = 0;
  std::uint32_t ways = 0;
  [[nodiscard]] std::size_t lines() const { return std::size_t{sets} * ways; }
};

// Where an address lies. Masks are over byte addresses. What no hash gives is empty.
struct AddressSpec {
  gpu::LinearHash module;        // slice = module * modulus + stack
  gpu::ModuloStage stack;        // modulus 1: a module is one slice
  gpu::LinearHash set;           // inside a slice
  gpu::LinearHash bank;          // inside a channel
  std::uint32_t row_shift = 18;  // addresses of one bank that differ in bits from here on lie in
                                 // different rows
  std::uint64_t page_bytes = 0;  // not 0: each page adds a constant to module and stack
  std::uint64_t seed = 1;        // seed of the page constants
};

// One level of TLBs, from the SM outwards. An entry covers 1 << page_bits pages.
struct TlbSpec {
  std::uint32_t entries = 1;
  std::uint32_t page_bits = 0;
  Cycles hit_cycles{};  // added to an access
  bool per_sm = false;  // one per SM; false: one for all SMs
};

struct Spec {
  std::string name;
  double clock_hz = 1e9;
  AddressSpec address;

  // One SM.
  PerIndex<SmIndex, std::uint32_t> gpc_of_sm;  // its size is the number of SMs
  std::uint32_t gpcs = 1;
  std::uint32_t threads = 2048;
  std::uint32_t blocks = 32;
  std::uint32_t shared_bytes = 0;  // 0: never the limit
  Ticks issue_ticks{64};           // per warp instruction
  Ticks float_ticks;               // the same of 32-bit floating-point ones; 0: never the limit
  Cycles instruction_cycles{4};    // between dependent instructions of a warp
  CacheSpec l1;
  Cycles l1_hit_cycles{30};
  std::uint32_t l1_miss_registers = 256;
  std::uint32_t store_registers = 256;
  std::uint32_t registers = 0;      // registers of its threads; 0: never the limit
  Ticks shared_ticks;               // 128 bytes of shared memory; 0: never the limit
  Cycles block_start_cycles;        // from the place of a block to its first instruction
  std::uint32_t launch_misses = 0;  // reads that miss all caches, one after the other, before a
                                    // kernel

  // The crossbar: ticks per sector of 32 bytes; a load request takes as long as one sector.
  Ticks sm_ticks{256};
  Ticks sm_store_ticks{256};  // for what carries data out
  Ticks gpc_ticks;            // 0: never the limit
  Ticks gpc_store_ticks;      // ticks of stores, on their way out
  Ticks gpc_atomic_ticks;     // ticks of atomics and reductions
  Ticks port_ticks{256};
  Ticks port_write_ticks{256};
  Ticks port_atomic_ticks{256};
  Cycles request_cycles{80};
  Cycles reply_cycles{80};
  std::vector<std::uint8_t> distances;  // [slice * sms + sm], added to the request; may be empty

  // L2. One channel of DRAM behind each slice.
  std::uint32_t slices = 1;
  std::uint32_t ports = 1;
  PerIndex<SliceIndex, std::uint32_t> port_of_slice;
  CacheSpec l2;  // of one slice
  Cycles l2_cycles{20};
  std::uint32_t miss_registers = 16;     // per slice: lines asked of DRAM that have not arrived yet
  std::uint32_t uncached_registers = 0;  // those for reads past the cache; 0: all

  // DRAM.
  std::uint32_t banks = 16;         // per channel
  Ticks burst_ticks{256};           // ticks of the bus, per sector
  std::uint32_t burst_sectors = 1;  // least transfer
  Cycles dram_cycles{100};          // controller, there and back
  Cycles precharge_cycles{20};
  Cycles activate_cycles{20};
  Cycles column_cycles{20};
  Cycles row_cycles{60};           // between two activations of a bank
  Cycles activate_gap_cycles;      // gap of two banks of a channel
  Cycles activate_window_cycles;   // in which four may begin
  Cycles refresh_interval_cycles;  // per channel; 0: it needs none
  Cycles refresh_cycles;           // in which it does nothing else
  Cycles row_idle_cycles{400};
  Cycles turnaround_cycles{10};
  std::uint32_t write_high = 32;  // writes waiting in a channel: start draining
  std::uint32_t write_low = 8;    // and stop
  std::uint32_t turn = 24;        // accesses that go once one of the other direction waits
  std::uint32_t row_streak = 16;  // row hits served in front of an older row miss

  Cycles launch_cycles{1500};  // between two kernels of one stream

  // Translation of the addresses of clients that have a page table. No levels: none.
  std::vector<TlbSpec> tlbs;
  std::uint32_t walkers = 1;            // walks of all SMs at a time
  Cycles walk_cycles;                   // from a walker to its read of the L2
  std::uint32_t table_entry_bytes = 8;  // bytes of a page's entry

  // What a walk reads: the entries of the pages that an entry of the last level covers.
  [[nodiscard]] std::uint32_t walk_sectors() const {
    return ceil_div(table_entry_bytes << tlbs.back().page_bits, sector_bytes);
  }
  [[nodiscard]] Cycles distance(SliceIndex slice, SmIndex sm) const {
    if (distances.empty()) return {};
    return Cycles(distances[std::size_t{slice.raw()} * sms() + sm.raw()]);
  }
  [[nodiscard]] std::uint32_t sms() const { return static_cast<std::uint32_t>(gpc_of_sm.size()); }
  // Cycles of a load of one sector that hits the L2, or misses it and finds its bank closed, with
  // nothing else under way.
  [[nodiscard]] Cycles l2_hit_latency() const;
  [[nodiscard]] Cycles dram_latency() const;
  // What a walk adds to an access, beyond a hit in the last level, if its read hits the L2.
  [[nodiscard]] Cycles walk_latency() const;
};

// An error names what the description lacks for a simulation, or what does not fit together.
[[nodiscard]] Result<Spec> make_spec(const gpu::Device& device, std::uint64_t seed = 1);

// Checks that sizes are powers of two where they must be, and that vectors have the sizes they
// need.
[[nodiscard]] Result<void> check_spec(const Spec& spec);

// Every setting with its value, one per line. A run prints this about itself.
[[nodiscard]] std::string spec_text(const Spec& spec);

}  // namespace demarc::sim::memory
