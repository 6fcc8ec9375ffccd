// Runs a program and captures what it says: for tests of the command line.
#pragma once

#include <string>
#include <vector>

namespace demarc::test {

struct Outcome {
  int exit_code = -1;  // 128 + signal when killed by one
  std::string out;
  std::string err;
};

// Whether a program of that name is in PATH.
[[nodiscard]] bool program_exists(const std::string& name);

// argv[0] is looked up in PATH unless it has a slash. Standard input is empty.
[[nodiscard]] Outcome run_program(const std::vector<std::string>& argv);

// The program under test with these arguments.
[[nodiscard]] Outcome run_demarc(std::vector<std::string> arguments);

}  // namespace demarc::test
