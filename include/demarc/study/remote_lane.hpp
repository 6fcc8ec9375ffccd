// Lanes in other processes: a worker that serves one (MPS and time slicing divide a GPU between
// processes, not streams), and a command line run as an aggressor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demarc/base/process.hpp"
#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

// Serves `lane` to the process at the other ends of the file descriptors until the input ends: one
// request per line, one answer per line.
[[nodiscard]] Result<void> serve_lane(Lane& lane, int input, int output);

// Starts `argv` (a program that calls serve_lane on its standard input and output) and is that lane
// here. The child ends with this object, or with the thread that calls this. check_failed, with its
// last words, when it ends, when an answer cannot be understood or takes longer than
// `patience_seconds` beyond what was asked for, and from finish() when it ends with another exit
// code than 0.
[[nodiscard]] Result<std::unique_ptr<Lane>> spawn_lane(const std::vector<std::string>& argv,
                                                       const Environment& environment,
                                                       double patience_seconds = 120);

// How many kernels one run of a command has launched so far; it outlives the run.
using LaunchCount = std::function<std::uint64_t()>;

struct CommandLaneOptions {
  // What is put before "/bin/sh -c COMMAND" ("demarc exec --observe --announce 5 --"). It writes
  // one line to the descriptor `announce` once the command runs, and hands SIGTERM on.
  std::function<std::vector<std::string>(int announce)> prefix;
  // What that line gives access to.
  std::function<Result<LaunchCount>(const std::string& announced)> open_count;
  // The prefix says by its exit code whether the command stayed where it belongs, so it must be
  // able to: a command that has to be killed is an error.
  bool proves = false;
  // Called before a running command is ended, with the first of its processes.
  std::function<void(pid_t leader)> before_end;
  Environment environment;
  double settle_seconds = 8;     // from the start until a command is taken to be at its work
  double patience_seconds = 60;  // until its first launch, and until its next one after a visit
  double leave_seconds = 10;     // until it is killed if it does not heed SIGTERM
};

// Runs workloads whose spec is "cmd:COMMAND LINE" again whenever they end with exit code 0, until
// stop(), which ends the whole process group. start() returns once the command has launched a
// kernel and has settled. check_failed, with its last output, when it ends in another way, when it
// is started again too often within a visit, when it was not seen launching kernels during one, or
// when its prefix ends with 3: it was not where it had to be. It cannot be a victim: sample() and
// outputs() are errors.
[[nodiscard]] std::unique_ptr<Lane> make_command_lane(CommandLaneOptions options);

}  // namespace demarc::study
