// Runs a program and keeps its output and exit code.
#include "program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "demarc/base/process.hpp"
#include "paths.hpp"

namespace demarc::test {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

bool program_exists(const std::string& name) {
  return !find_program(name).empty();
}

Outcome run_program(const std::vector<std::string>& argv) {
  static int counter = 0;
  const auto folder = fresh_folder("program" + std::to_string(counter++));
  const auto out = folder / "out";
  const auto err = folder / "err";
  ProcessOptions options;
  options.own_group = false;
  options.before_exec = [&] {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    ::dup2(::open(out.c_str(), flags, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), flags, 0600), STDERR_FILENO);
  };
  const auto ended = run_process(argv, options);
  if (!ended) throw std::runtime_error(ended.error().message);
  Outcome outcome{ended->exit_code, slurp(out), slurp(err)};
  std::filesystem::remove_all(folder);
  return outcome;
}

Outcome run_demarc(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (build_dir() / "demarc").string());
  return run_program(arguments);
}

}  // namespace demarc::test
