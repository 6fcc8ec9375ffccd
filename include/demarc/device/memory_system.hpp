// What a simulator needs to know of a memory system besides sizes and the address map: link widths,
// miss registers, row timing. In a description it is the section "memory_system". Its own "source"
// says where each number comes from, and which numbers are assumed.
#pragma once

#include <cstdint>
#include <string>

#include "demarc/device/address_map.hpp"

namespace demarc::gpu {

// Bytes per cycle of a link count SM cycles; 0: the link is never the limit. Row timing is in
// nanoseconds, as memory data sheets have it.
struct MemorySystem {
  std::string source;

  // One SM: warp instructions issued per cycle by all of its schedulers, and cycles between two
  // dependent instructions of one warp.
  double issue_per_cycle = 4;
  double instruction_latency_cycles = 4;
  // Additions, multiplications and multiply-adds of 32-bit floating-point numbers among them, in
  // warp instructions per cycle: the lanes of an SM by 32. 0: never the limit.
  double float_per_cycle = 0;
  std::uint32_t l1_miss_registers = 256;  // per SM: lines asked of the L2 that have not arrived yet
  std::uint32_t store_registers = 256;    // per SM: lines written that are not yet acknowledged
  double shared_bytes = 0;                // of shared memory per cycle and SM; 0: never the limit
  double block_start_cycles = 0;          // from the place of a block to its first instruction
  std::uint32_t launch_misses = 0;        // reads that miss all caches, before the first block of a
                                          // kernel
  double launch_gap_ns = 1000;            // from the end of a kernel to the next of its stream

  // The crossbar: SM, GPC, L2 side. Slices that agree in the parities `port` takes of the module
  // index share a port; empty: each slice has one of its own.
  double sm_link_bytes = 32;
  double sm_store_bytes = 0;  // for what carries data out, stores and atomics; 0: sm_link_bytes
  double gpc_link_bytes = 0;
  double gpc_store_bytes = 0;   // bytes of stores; 0: gpc_link_bytes
  double gpc_atomic_bytes = 0;  // bytes of atomics and reductions; 0: gpc_store_bytes
  double port_bytes = 32;
  double port_write_bytes = 0;   // bytes of stores, on the way in; 0: port_bytes
  double port_atomic_bytes = 0;  // bytes of atomics and reductions; 0: port_write_bytes
  LinearHash port;
  double latency_spread_cycles = 0;  // nearest to farthest slice, of an L2 hit

  // One L2 slice. The address map has the registers that a probe finds, which reads past the cache:
  // they limit such reads alone.
  std::uint32_t miss_registers = 64;

  // One channel of DRAM. `bank` tells apart the banks of a channel where the address map does not;
  // addresses of one bank that differ from bit `row_shift` on lie in different rows.
  LinearHash bank;
  std::uint32_t row_shift = 18;
  std::uint32_t burst_bytes = 32;
  std::uint32_t write_queue = 32;  // writes a channel holds before it must drain
  // The largest number of reads or writes that a channel still serves once one of the other kind
  // waits for it; 0: three quarters of write_queue. In this time each bank opens one row.
  std::uint32_t turn_accesses = 0;
  double precharge_ns = 15;
  double activate_ns = 15;  // until the first column access
  double column_ns = 15;    // from column access to data
  double row_cycle_ns = 46;
  double activate_gap_ns = 0;      // between activations of two banks of a channel (tRRD)
  double activate_window_ns = 0;   // window in which four may begin (tFAW)
  double refresh_interval_ns = 0;  // between refreshes of a channel (tREFI); 0: none
  double refresh_ns = 0;           // time in which the channel does nothing else (tRFC)
  double turnaround_ns = 8;        // turnaround of the bus between reads and writes
  double row_idle_ns = 200;        // a row that is open and unused for so long is closed

  friend bool operator==(const MemorySystem&, const MemorySystem&) = default;
};

}  // namespace demarc::gpu
