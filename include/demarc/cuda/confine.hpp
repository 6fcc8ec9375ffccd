// Unmodified programs inside a partition: what `demarc exec` does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/cuda/control.hpp"
#include "demarc/partition/tpc_set.hpp"

namespace demarc::cuda {

// Which TPCs, as written on the command line; exactly one is given.
struct TpcChoice {
  std::string tpcs;  // "0-15,20"
  std::string gpcs;  // "0-2"
  std::uint32_t sms = 0;
  double share_percent = 0;
};

[[nodiscard]] Result<partition::TpcSet> choose_tpcs(const gpu::Topology& topology,
                                                    const TpcChoice& choice);

struct ConfinePlan {
  std::uint32_t device = 0;
  TpcChoice choice;
  std::vector<std::string> command;  // program and arguments
  bool audit = false;                // count launches by path
  std::string preload;  // path of libdemarc_preload.so; empty: beside the program, or in ../lib
};

struct ConfineOutcome {
  int exit_code = 0;  // of the program; 128 + signal when a signal ended it
  partition::TpcSet tpcs;
  std::uint32_t sms = 0;
  // What the hook saw in all processes of the program.
  std::uint64_t masked[launch_paths] = {};
  std::uint64_t unmasked[launch_paths] = {};
  std::uint64_t refused[launch_paths] = {};
  std::uint64_t masked_blocks[launch_paths] = {};
  // Launches of kernels that may launch kernels themselves; those escape the partition unseen.
  std::uint64_t launchers = 0;
  std::uint64_t graphs = 0;        // launches of CUDA graphs
  std::uint64_t stale_graphs = 0;  // of those, under an earlier mask: graphs keep their first one
  std::uint32_t processes_hooked = 0;
  std::uint32_t processes_unhooked = 0;
  std::uint32_t processes_stopped = 0;
};

// Finds the mask in a child process (so that this one holds no GPU memory), proves there with a
// probe kernel that it holds, then runs the program with libdemarc_preload.so and waits for it. An
// existing LD_PRELOAD and injection library are kept. Call before anything in this process has used
// CUDA. check_failed when the proof fails.
[[nodiscard]] Result<ConfineOutcome> run_confined(const ConfinePlan& plan);

struct Moved {
  partition::TpcSet tpcs;
  std::uint64_t graphs_before = 0;  // launches of CUDA graphs so far: those graphs stay behind
};
// Gives a running program, started by run_confined(), other TPCs: launches from now on use
// them, but graphs launched before keep their first mask; their launches are counted as stale.
[[nodiscard]] Result<Moved> confine_again(std::int64_t pid, const TpcChoice& choice);

// What the user has to know though he did not ask for an audit, a line each; empty when all is
// well.
[[nodiscard]] std::string warnings(const ConfineOutcome& outcome);
// The outcome as sentences and as JSON (schema demarc.exec/1).
[[nodiscard]] std::string audit_to_text(const ConfineOutcome& outcome);
[[nodiscard]] std::string audit_to_json(const ConfineOutcome& outcome);

}  // namespace demarc::cuda
