// Finds the files that a program would load, without running it: its executable, the libraries that
// the dynamic loader would find, and for a Python program those of the packages that it imports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

struct ProgramQuery {
  std::vector<std::string> command;  // a program and its arguments
  std::optional<std::int64_t> pid;   // or a process that runs; then `command` is empty
  double limit_seconds = 60;         // for each process that is asked
};

struct ProgramFile {
  std::string path;     // canonical; of another mount namespace behind /proc/PID/root
  std::string package;  // the Python package that brings it; empty: none
};

// Something that could not be looked at, and that may hold code for the card.
struct Unchecked {
  std::string what;  // "train.py", "libfoo.so.1"
  std::string why;   // a part of a sentence: "the dynamic loader does not find it"
};

struct ProgramFiles {
  std::vector<std::string> command;   // starts the program
  std::vector<ProgramFile> files;     // each once, the executable first
  std::vector<std::string> packages;  // Python packages that it imports, and those that they need
  std::vector<std::string> missing;   // imports that the interpreter does not find
  std::vector<Unchecked> unchecked;
  std::string loader;  // the dynamic loader that was asked; empty: none was
};

// invalid_input where there is no such program or process, or its kind is not known;
// missing_capability where this user may not look at the process. The program does not run. What
// runs is its dynamic loader, if it lies where systems keep theirs, and the Python interpreter that
// would run a script.
[[nodiscard]] Result<ProgramFiles> find_program_files(const ProgramQuery& query);

// The libraries that `loader` would load with `file`, by their paths. What it does not find is
// added to `unchecked`.
[[nodiscard]] std::vector<std::string> libraries_of(const std::string& loader,
                                                    const std::string& file, double limit_seconds,
                                                    std::vector<Unchecked>& unchecked);

}  // namespace demarc::cuda
