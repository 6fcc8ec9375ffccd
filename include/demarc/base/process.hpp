// Child processes: how all rooms start, watch and end another program.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Where a standard stream of the child leads. kept: its last bytes can be read with
// Process::kept(). If output and error are both kept, they are in one text.
enum class ChildStream { null, inherited, pipe, kept };

struct ProcessOptions {
  Environment set;                 // variables added to ours, replacing those of the same name
  std::vector<std::string> unset;  // variables of ours that the child does not get
  ChildStream input = ChildStream::null;  // cannot be kept
  ChildStream output = ChildStream::null;
  ChildStream error = ChildStream::inherited;  // cannot be a pipe
  std::size_t kept_bytes = 4096;
  // True: the child leads a process group, which ends with it. False: it stays in ours.
  bool own_group = true;
  // Sent to the child when the *thread* that started it ends, however it ends; 0: none.
  int death_signal = 0;
  std::vector<int> keep_open;  // descriptors that the program has too, under the same numbers
  // Runs in the child, which is a copy of a process with threads. So it may only make
  // async-signal-safe calls.
  std::function<void()> before_exec;
};

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;  // 128 + signal if a signal ended it, as in shells
  int signal = 0;
  [[nodiscard]] std::string words() const;  // "exit code 3", "signal 9 (Killed)"
};

// A running child. It begins with no signal blocked. When this object is gone nothing of it is
// left: neither the child, nor its group, nor a zombie.
class Process {
 public:
  // argv[0] is looked up in PATH unless it has a slash. missing_capability, in words of the system,
  // if it cannot be started.
  [[nodiscard]] static Result<Process> spawn(const std::vector<std::string>& argv,
                                             const ProcessOptions& options);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();  // end(0)

  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] int input() const;  // our ends of the pipes; -1: none
  [[nodiscard]] int output() const;
  // Waits for the end and returns how it ended; nothing if it still runs after so many seconds.
  // Below 0: waits without limit.
  std::optional<ProcessEnd> wait(double seconds);
  [[nodiscard]] bool running() { return !wait(0); }
  void signal(int number);  // sends it to the child's group if it has its own; does nothing once
                            // the child has ended
  // Closes the pipes, waits `grace_seconds` for the child to end, then sends SIGTERM, and SIGKILL
  // after `patience_seconds` more. What is left of its group is killed in any case.
  ProcessEnd end(double grace_seconds, double patience_seconds = 2);
  // The last bytes of what is kept. After the end everything that the child wrote is looked at.
  [[nodiscard]] std::string kept();

 private:
  struct State;
  explicit Process(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Runs a program to its end. check_failed if it takes longer than so many seconds.
[[nodiscard]] Result<ProcessEnd> run_process(const std::vector<std::string>& argv,
                                             const ProcessOptions& options, double seconds = -1);

// The file that a program's name means, as a shell finds it; empty if there is none.
[[nodiscard]] std::string find_program(const std::string& name);

// The folder that this program lies in.
[[nodiscard]] std::filesystem::path program_folder();

// The path of one of our libraries: beside this program, as in a build tree, or where an install
// puts it. Empty if there is none.
[[nodiscard]] std::string find_own_library(const std::string& name);

}  // namespace demarc
