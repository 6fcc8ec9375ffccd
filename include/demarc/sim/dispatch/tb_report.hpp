// Figures of a SimTBS run, and the published program's printed report byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/tb_simulation.hpp"

namespace demarc::sim {

// The turnaround of a kernel, and the time that it takes alone.
struct KernelFigures {
  TbTicks alone;       // stand-alone time: batches that fill the machine one after another
  TbTicks time;        // from its first block's placement to its end
  TbTicks queue_time;  // from its arrival
  [[nodiscard]] double slowdown() const { return double{1.0} * time.raw() / alone.raw(); }
  [[nodiscard]] double queue_slowdown() const {
    return double{1.0} * queue_time.raw() / alone.raw();
  }
};

struct TbMetrics {
  TbTicks ticks;
  std::size_t kernels = 0, finished = 0;
  double antt = 0, antt_queue = 0;  // means over finished kernels; 0 when there are none
  double finished_share = 0;        // share of the kernels that arrived before the end
  double kernels_per_tick = 0;      // the published program's STP
  double stp = 0;                   // stand-alone time of the finished kernels per tick
  double fairness = 0;              // Jain's index of the speed (alone / queue_time) of kernels
  double worst_slowdown = 0;        // with queueing
  double blocks_per_tick = 0;
  double neighbours_together = 0;  // share of neighbouring blocks of a kernel on one SM
  // Per cent. `utilization` is sampled after completions, as the published program does;
  // `utilization_full` before them, so it counts the last tick of each block.
  std::vector<double> utilization, utilization_full;
  std::vector<double> memory, memory_full;  // mean units in use
};

// The figures of the finished kernels; the entries of the rest are empty. Nothing where the
// stand-alone time is undefined: a block larger than an SM; a request of 0 of a scheduling
// resource, except under TbModel::corrected.
using FiguresOfKernels = PerKernel<std::optional<KernelFigures>>;
[[nodiscard]] Result<FiguresOfKernels> kernel_figures(const TbConfig& config, TbModel model,
                                                      const TbRun& run);

[[nodiscard]] Result<TbMetrics> tb_metrics(const TbConfig& config, TbModel model, const TbRun& run);

// What the published program writes, and its exit status.
struct ClassicOutput {
  std::string out, err;
  int exit_status = 0;
};

// Runs `policy` over the configuration text. Exit status 2: the configuration is refused; 4: out of
// memory; 1: where the published program would hang or crash.
[[nodiscard]] ClassicOutput run_classic(std::string_view text, const std::string& source,
                                        const std::string& policy, TbModel model, bool verbose);

// Which policies to run; all if `policies` is empty.
struct TbStudyRequest {
  std::vector<std::string> policies;
  TbModel model = TbModel::simtbs;
  bool kernels = false;  // also one line or object per kernel
  // See TbOptions. With it the report says what share of the sharing stayed on one SM.
  std::map<std::uint32_t, BlockSharing> sharing;
};
struct TbStudyReport {
  std::string table;  // for people
  std::string json;   // schema demarc.schedule/1
};
[[nodiscard]] Result<TbStudyReport> report_schedule(const TbConfig& config,
                                                    const TbStudyRequest& request);

}  // namespace demarc::sim
