// The program of subject.cpp under a supervisor, on the stand-in driver.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/guest/control.hpp"
#include "paths.hpp"
#include "supervisor.hpp"

namespace demarc::test {

class Supervised {
 public:
  explicit Supervised(const std::string& name) : folder_(fresh_folder(name)) {
    cuda::ControlBlock& block = control.block();
    block.capability = {9, 0};
    const cuda::HardwareMask first_tpc{{~1U, ~0U, ~0U, ~0U}};
    block.mask.store(first_tpc, true);
  }

  [[nodiscard]] std::vector<std::string> subject(const std::vector<std::string>& steps) const {
    std::vector<std::string> command{(build_dir() / "demarc_exec_subject").string(),
                                     fake_libcuda().string(), log_path()};
    command.insert(command.end(), steps.begin(), steps.end());
    return command;
  }
  // Returns the program's exit code.
  int run(const std::vector<std::string>& steps) { return run_command(subject(steps)); }
  int run_command(const std::vector<std::string>& command) {
    auto supervisor = start(command);
    if (!supervisor) {
      told.push_back(supervisor.error().message);
      return -static_cast<int>(supervisor.error().kind);
    }
    const int code = supervisor->wait();
    counts = supervisor->counts();
    return code;
  }
  Result<cuda::Supervisor> start(const std::vector<std::string>& command) {
    return cuda::Supervisor::start({card, control.block().report_token,
                                    [this](const std::string& line) { told.push_back(line); },
                                    [this](const cuda::ProcessCounts& seen) { live = seen; }},
                                   {command, environment()});
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"DEMARC_LIBCUDA", fake_libcuda()},
            {"CUDA_INJECTION64_PATH", (build_dir() / "libdemarc_preload.so").string()},
            {cuda::control_variable, control.value()}};
  }
  // In a process of its own: what the kernel does to it stays there. Returns its exit code; one
  // that would wait for ever is ended.
  static int apart(const std::function<int()>& work) {
    constexpr unsigned patience_s = 25;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(patience_s);
      std::_Exit(work());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  [[nodiscard]] std::string log_path() const { return (folder_ / "log").string(); }
  [[nodiscard]] std::string log() const { return read_file(log_path()).value_or(""); }
  [[nodiscard]] std::uint64_t launches() const { return control.block().counters.seen(); }

  cuda::Control control = cuda::Control::create().value();
  std::string card = "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa";
  std::vector<std::string> told;
  cuda::ProcessCounts counts;
  cuda::ProcessCounts live;

 private:
  std::filesystem::path folder_;
};

}  // namespace demarc::test
