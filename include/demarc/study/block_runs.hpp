// Where and when blocks run on a real GPU. There is one experiment for each of the figures 3, 4 and
// 10 to 13 of [Hardware Compute Partitioning on NVIDIA GPUs]. Its kernels hold their SM for a given
// time; they note where they ran, from when to when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/units.hpp"
#include "demarc/sim/dispatch/timeline.hpp"
#include "demarc/study/plan.hpp"

namespace demarc::study {

struct BlockTime {
  std::uint32_t kernel = 0;  // index into BlockRun::kernels
  std::uint32_t block = 0;
  gpu::SmIndex sm;
  double begin_us = 0;  // since the first block of the run began
  double end_us = 0;
};

// One launch of a run.
struct RunKernel {
  std::string name;
  std::uint32_t stream = 0;
  int priority = 0;               // the stream has it; lower comes first
  std::vector<gpu::SmIndex> sms;  // SMs that it may use, ascending; empty: all
  std::uint32_t blocks = 1;       // each has 1024 threads
  double hold_us = 100;           // one block lasts so long
};

// A point of an experiment whose answer is a curve.
struct RunPoint {
  std::string series;
  double x = 0;
  double y = 0;
};

struct BlockRun {
  std::string name;     // "figure-3-partitioned"
  std::string finding;  // what it shows, in words with its figures
  std::string x_name;   // name of points
  std::string y_name;
  bool holds = true;  // no block outside its kernel's SMs, stream order kept
  std::vector<RunKernel> kernels;
  std::vector<BlockTime> blocks;
  std::vector<RunPoint> points;
};

// "figure-3 figure-4 figure-10 figure-11 figure-12 figure-13"
[[nodiscard]] const std::vector<std::string>& block_experiments();

// invalid_input if a name is not that of an experiment. Sets what the driver reads from
// the environment when it starts; run_block_experiments() does the same, for programs that have not
// used the driver before.
[[nodiscard]] Result<void> prepare_block_experiments(const std::vector<std::string>& names);

// Runs the experiments of those names on card `device`; each has one or more runs.
// missing_capability if masks are refused. `growing`: what figure-13 runs on more and more TPCs.
[[nodiscard]] Result<std::vector<BlockRun>> run_block_experiments(
    std::uint32_t device, const std::vector<std::string>& names,
    const std::vector<Workload>& growing = {{"compute", "compute"}, {"va", "va"}});

// What is wrong with a run: blocks outside their kernel's SMs, and kernels of one stream that
// overlap. Empty if nothing is wrong.
[[nodiscard]] std::vector<std::string> faults_of(const BlockRun& run);

// Schema "demarc.blocks/2".
[[nodiscard]] std::string block_runs_json(const std::vector<BlockRun>& runs,
                                          const std::string& command);

// What a picture shows: a span per block.
[[nodiscard]] sim::DispatchTimeline block_timeline(const BlockRun& run);

}  // namespace demarc::study
