// The hardware path of a kernel launch on NVIDIA GPUs, from stream to SM (Bakita and Anderson, RTAS
// 2023, section 4): hardware queues, task management unit (TMU), work distribution unit (WDU) with
// its task slots, priorities, TPC masks. Event-driven.
//
//   stream -> hardware queue -> TMU: a FIFO list a priority -> WDU: task slots, sorted task table
//          -> load balancer -> SM
//
// Where the sources are silent, this is assumed. A TPC serves the first task of the sorted table
// whose mask allows it, and waits for that one if its blocks do not fit yet. Blocks go to the
// allowed TPC with the fewest threads in use, and there to the SM with the fewest; ties go to the
// lowest number. Launching and completing take no time of their own.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/device.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

inline constexpr std::size_t max_tpcs = 512;
// Bit t set: TPC t is enabled.
using TpcMask = std::bitset<max_tpcs>;

struct PipelineSpec {
  gpu::Topology topology;
  gpu::SmLimits sm;
  std::uint32_t task_slots = 32;  // slots of the WDU; 32 on a GTX 1060 3GB
  std::uint32_t hardware_queues =
      32;  // CUDA_DEVICE_MAX_CONNECTIONS; stream s uses queue s mod this
};

// One kernel launch. Launches of a stream run one after another, in the order given.
struct PipelineKernel {
  std::string name;
  std::uint32_t stream = 0;
  Nanoseconds arrival;  // when the host hands it over
  std::uint64_t blocks = 1;
  std::uint32_t threads = 32;  // per block
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_bytes = 0;
  Nanoseconds block_time = 1_ns;  // how long one block runs
  int priority = 0;               // larger goes first
  TpcMask tpcs = TpcMask().set();
};
using PipelineKernels = PerIndex<KernelIndex, PipelineKernel>;

struct PipelineOutcome {
  Nanoseconds queued;           // entered the TMU
  Nanoseconds started;          // first block launched
  Nanoseconds ended;            // last block completed
  std::uint32_t evictions = 0;  // how often it lost its task slot
};

// Blocks of one kernel that ran on one SM over the same time.
struct BlockRun {
  KernelIndex kernel;
  SmIndex sm;
  Nanoseconds start;
  Nanoseconds end;
  std::uint32_t blocks = 0;
};

struct PipelineRun {
  PerIndex<KernelIndex, PipelineOutcome> kernels;
  std::vector<BlockRun> runs;  // by completion; empty unless asked for
  std::uint64_t launched_blocks = 0;
  Nanoseconds end;
  std::uint32_t max_slots_used = 0;
};

// Errors name the kernel: a block larger than an SM, a mask without a TPC of the device, arrivals
// of a stream that go backwards.
[[nodiscard]] Result<PipelineRun> run_pipeline(const PipelineSpec& spec,
                                               const PipelineKernels& kernels, bool record_runs);

// SMs that ran blocks of `kernel`, ascending.
[[nodiscard]] std::vector<SmIndex> sms_of_kernel(const PipelineRun& run, KernelIndex kernel);

}  // namespace demarc::sim
