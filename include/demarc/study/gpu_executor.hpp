// The executor on a real GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/partition/partition.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

// What a sample is: by the GPU's own clock, the time that the kernels of a run take together, with
// the whole run beside it (Lane::last_runs); or the time between two events around the run, which
// also holds what launching its first kernel needs.
enum class Clock { gpu, events };

// "gpu", "events"; an error lists them.
[[nodiscard]] Result<Clock> parse_clock(std::string_view text);
[[nodiscard]] std::string_view clock_name(Clock clock);

struct GpuExecutorOptions {
  std::uint32_t device = 0;
  // This program: started again as "isolate --worker" and "exec" for modes that divide the GPU
  // between processes, and for commands.
  std::string program;
  // How long a command that is an aggressor gets from its start until it is taken to be busy.
  double command_settle_seconds = 8;
  // Until a command that does not heed SIGTERM is killed.
  double command_leave_seconds = 10;
  // Which TPCs go to which part under mask and affinity.
  partition::SplitStrategy split = partition::SplitStrategy::gpc_aligned;
  // Pages of 2 MiB taken, times the parts, to find enough of one kind for coloured memory.
  std::uint32_t arena_pages_a_part = 6144;
  // Pages that coloured parts have together; 0: by what a part takes, of which half do where
  // colours are remainders.
  std::uint64_t arena_pages = 0;
  // What is known of the card's memory, for gpu::describe_card().
  std::string description;
  // Offsets within 2 MiB pages whose parities are the colour; none: the colours that the card's
  // description says keep its memory apart.
  std::vector<std::uint64_t> masks;
  std::vector<std::uint32_t> colors;  // of each part; none: part p has colour p
  Clock clock = Clock::gpu;
  int victim_priority = 0;  // of the victim's stream; lower numbers come first
  // Memory synchronisation domain of whole(), where the card has several: of a worker's part.
  std::optional<std::uint32_t> sync_domain;
};

// missing_capability without a driver or a GPU.
[[nodiscard]] Result<std::unique_ptr<Executor>> make_gpu_executor(
    const GpuExecutorOptions& options);

// From now on SIGINT, SIGTERM and SIGHUP, unless ignored, end the processes, daemons and folders of
// this process's studies before they end the process.
void take_away_on_signals();

}  // namespace demarc::study
