// What the tests of demarc schedule have in common.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {

inline const std::string machine =
    "*sm\n2 1 1 4\n*mem\n100\n*overhead_sm\n1 0.2\n*overhead_mem\n1 0.5\n";
inline const std::string two_kernels = machine + "*kernel\n1 1 6 3 1 5\n2 2 4 2 2 5\n";

inline std::filesystem::path schedule_folder() {
  static const auto folder = fresh_folder("schedule_verb");
  return folder;
}
inline std::string schedule_file(const std::string& name, const std::string& text) {
  const auto path = schedule_folder() / name;
  EXPECT_TRUE(write_file(path, text));
  return path.string();
}
inline std::string config_file() {
  return schedule_file("two.conf", two_kernels);
}
inline std::string example(const std::string& name) {
  return (source_dir() / "examples" / "dispatch" / name).string();
}
inline Outcome schedule(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "schedule");
  return run_demarc(arguments);
}

}  // namespace demarc::test
