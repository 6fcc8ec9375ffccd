// Takes launches out of a running program, as launch files with their PTX and their buffers.
// `demarc emulate`, `locality`, `run` and `isolate` read these.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

struct LaunchCapturePlan {
  std::vector<std::string> command;  // the program, looked up in PATH
  std::filesystem::path folder;      // made; must be new or empty
  // As in the PTX or as C++ writes them; empty: all.
  std::vector<std::string> kernels;
  std::uint64_t skip = 0;                             // number of launches of each kernel to skip
                                                      // first
  std::uint64_t launches = 1;                         // number of launches of each kernel that are
                                                      // then taken
  std::uint64_t max_bytes = std::uint64_t{1} << 30U;  // the buffers of one launch together
  std::string library;  // the library that is loaded into the program; empty: the one beside this
                        // program
};

struct LaunchCaptureOutcome {
  int exit_code = 0;                            // code of the program, as shells have it
  std::vector<std::filesystem::path> captured;  // launch files, in the order of the launches
  std::vector<std::string> left;                // a line about each launch that was not taken
  std::vector<std::string> launched;            // names of all kernels that were seen
};

// Runs the program to its end. These are errors: nothing to start, a folder that is not empty, no
// library, and a driver that does not show its calls (missing_capability).
[[nodiscard]] Result<LaunchCaptureOutcome> run_launch_capture(const LaunchCapturePlan& plan);

}  // namespace demarc::cuda
