// The executor on a real GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/partition/partition.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

// What a sample is. `gpu`: the time that the kernels of a run take together, by the GPU's own
// clock; Lane::last_runs has the whole run. `events`: the time between two events around the run,
// which includes what launching its first kernel needs. `requests`: the same, for runs that come
// one at a time, each after as much idle time as the run before it took.
enum class Clock { gpu, events, requests };

// "gpu", "events", "requests"; an error lists them.
[[nodiscard]] Result<Clock> parse_clock(std::string_view text);
[[nodiscard]] std::string_view clock_name(Clock clock);

struct GpuExecutorOptions {
  std::uint32_t device = 0;
  // The path of this program. It is started again as "isolate --worker" and "exec", for modes that
  // divide the GPU between processes and for commands.
  std::string program;
  // Seconds from the start of an aggressor command until it is taken to be busy.
  double command_settle_seconds = 8;
  // Seconds until a command that ignores SIGTERM is killed.
  double command_leave_seconds = 10;
  // Which TPCs go to which part under mask and affinity.
  partition::SplitStrategy split = partition::SplitStrategy::gpc_aligned;
  // Pages of 2 MiB per part that are taken to find enough of one kind for coloured memory.
  std::uint32_t arena_pages_a_part = 6144;
  // Pages that coloured parts have together. 0: arena_pages_a_part per part, or half of that if
  // colours are remainders.
  std::uint64_t arena_pages = 0;
  // What is known of the card's memory, for gpu::describe_card().
  std::string description;
  // Offsets within 2 MiB pages whose parities are the colour. None: the colours by which, as the
  // card's description says, its memory is kept apart.
  std::vector<std::uint64_t> masks;
  std::vector<std::uint32_t> colors;  // of each part; none: part p has colour p
  Clock clock = Clock::gpu;
  int victim_priority = 0;  // of the victim's stream; lower numbers come first
  // The memory synchronisation domain of whole(), if the card has several. A worker sets that of
  // its part.
  std::optional<std::uint32_t> sync_domain;
};

// missing_capability without a driver or a GPU.
[[nodiscard]] Result<std::unique_ptr<Executor>> make_gpu_executor(
    const GpuExecutorOptions& options);

// From now on the first SIGINT or SIGTERM, unless ignored, ends nothing; asked_to_end() then is its
// number, and `tell` is called from another thread. The next one ends the process, as
// take_away_on_signals() says. Call it once.
void end_gently_on_signals(std::function<void()> tell);
[[nodiscard]] int asked_to_end();  // 0: no such signal came

// From now on SIGINT, SIGTERM and SIGHUP, unless ignored, first end the processes and daemons and
// remove the folders of this process's studies, and then end the process.
void take_away_on_signals();

}  // namespace demarc::study
