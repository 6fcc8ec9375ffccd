// Lanes in other processes: a worker process that serves a lane, because MPS and time slicing
// divide a GPU between processes and not streams, and a command line that runs as an aggressor.
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
// here. The child ends with this object, or with the thread that calls this. Calls return
// check_failed, with the child's last output, if it ends, if an answer cannot be understood, or if
// an answer takes longer than `patience_seconds` beyond what was asked for. finish() returns it if
// the exit code is not 0.
[[nodiscard]] Result<std::unique_ptr<Lane>> spawn_lane(const std::vector<std::string>& argv,
                                                       const Environment& environment,
                                                       double patience_seconds = 120);

// Returns how many kernels one run of a command has launched so far. It may be called after the
// run.
using LaunchCount = std::function<std::uint64_t()>;

struct CommandLaneOptions {
  // What stands in front of "/bin/sh -c COMMAND" ("demarc exec --observe --announce 5 --"). It
  // writes one line to the descriptor `announce` once the command runs, and hands SIGTERM on.
  std::function<std::vector<std::string>(int announce)> prefix;
  // Opens what that line gives access to.
  std::function<Result<LaunchCount>(const std::string& announced)> open_count;
  // The exit code of the prefix says whether the command stayed where it belongs. So the prefix
  // must be able to end by itself: a command that has to be killed is an error.
  bool proves = false;
  // Called before a running command is ended, with the first of its processes.
  std::function<void(pid_t leader)> before_end;
  Environment environment;
  double settle_seconds = 8;         // from the start until a command is taken to be at its work
  double patience_seconds = 60;      // until its first launch, and its next one after a visit
  double leave_seconds = 10;         // until it is killed if it ignores SIGTERM
  double longest_run_seconds = 600;  // until a run that is timed has to end
};

// Runs workloads whose spec is "cmd:COMMAND LINE". After start() the command is started again
// whenever it ends with exit code 0, until stop() ends its whole process group. start() returns
// once the command has launched a kernel and has settled. Calls return check_failed, with the
// command's last output, if it ends in another way, if it is started again too often within a
// visit, if it was not seen launching kernels during a visit, or if its prefix ends with 3, because
// it was not where it had to be.
//
// sample() starts the command for each run. A run lasts from its first kernel launch to the end of
// the command, by the host's clock. check_failed if it launches no kernel, does not end by itself,
// or ends with an exit code other than 0. outputs() runs nothing, because only the exit code tells
// whether the results are right.
[[nodiscard]] std::unique_ptr<Lane> make_command_lane(CommandLaneOptions options);

}  // namespace demarc::study
