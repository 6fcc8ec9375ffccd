// Lanes in other processes: a worker that serves one (MPS and time slicing divide a GPU between
// processes, not streams), and a command line run as an aggressor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "demarc/base/process.hpp"
#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

// Serves `lane` to the process at the other ends of the file descriptors until the input ends: one
// request a line, one answer a line.
[[nodiscard]] Result<void> serve_lane(Lane& lane, int input, int output);

// Starts `argv` (a program that calls serve_lane on its standard input and output) and is that lane
// here. The child ends with this object; an answer that takes longer than `patience_seconds` beyond
// what was asked for is an error.
[[nodiscard]] Result<std::unique_ptr<Lane>> spawn_lane(const std::vector<std::string>& argv,
                                                       const Environment& environment,
                                                       double patience_seconds = 120);

// Runs workloads whose spec is "cmd:COMMAND LINE" through /bin/sh, prefixed by `prefix`
// ("demarc exec --tpcs 33-65 --"), again whenever they end, until stop(), which ends the whole
// process group. start() waits `settle_seconds`: programs take a while until they use the GPU. It
// cannot be a victim: sample() and outputs() are errors.
[[nodiscard]] std::unique_ptr<Lane> make_command_lane(std::vector<std::string> prefix,
                                                      Environment environment,
                                                      double settle_seconds);

}  // namespace demarc::study
