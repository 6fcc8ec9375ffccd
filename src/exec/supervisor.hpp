// Starts a program and sees from outside, by the kernel, which processes below it reach a GPU:
// those that do without being confined are kept off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/exec/confine.hpp"
#include "demarc/guest/signal_file.hpp"
#include "process_files.hpp"
#include "start_program.hpp"

namespace demarc::cuda {

// What may be done, and who is told.
struct SupervisorRules {
  std::string card;         // UUID of the only card that may be used, as Gpu::uuid() gives it
  std::uint64_t token = 0;  // that the library inside has to know, from the control block
  // A line about a process that was kept off, as it happens.
  std::function<void(const std::string& line)> tell;
  // What has been seen has changed.
  std::function<void(const ProcessCounts& counts)> changed;
  // Called five times a second, if it is there.
  std::function<void()> look = {};
  // A descriptor, or -1, and what is called once when it is readable or has lost its other end.
  int watched = -1;
  std::function<void()> heed = {};
};

// While it lives, orphans of the processes below this one become its children.
class OrphanKeeper {
 public:
  OrphanKeeper();
  ~OrphanKeeper();
  OrphanKeeper(OrphanKeeper&& other) noexcept;
  OrphanKeeper& operator=(OrphanKeeper&&) = delete;

 private:
  bool ends_it_;
};

// For processes of one thread. While it lives, this process's own signals go to the program, and
// wait() takes the exit codes of all children of this process.
class Supervisor {
 public:
  static Result<Supervisor> start(SupervisorRules rules, const ProgramPlan& plan);

  // Serves until the last process of the program has ended, daemons included. Returns the exit code
  // of the program itself; 128 + signal when a signal ended it.
  int wait();
  [[nodiscard]] ProcessCounts counts() const;

 private:
  // One program that a process ran, from its exec to the next one.
  struct Image {
    pid_t process = 0;
    std::optional<ImageMark> mark;
    bool hooked = false;
    bool second_driver = false;  // reported a hook again
    bool stopped = false;
    bool kept_off = false;
    std::uint32_t contexts = 0;
  };
  Supervisor(SupervisorRules rules, OrphanKeeper keeper, SignalFile signals,
             StartedProgram program);
  void serve_call();
  void judge_context(const FilteredCall& call, Image& image);
  void keep_off(const FilteredCall& call, Image& image, const std::string& objected);
  [[nodiscard]] std::string objection(const FilteredCall& call, const Image& image) const;
  Image& image_of(const FilteredCall& call);
  void take_signals();
  void pass_on(int signal) const;
  void reap();

  SupervisorRules rules_;
  OrphanKeeper keeper_;
  SignalFile signals_;
  StartedProgram program_;
  std::uint64_t start_time_;
  std::optional<int> status_;  // status of the program, as waitpid() gives it
  std::vector<Image> images_;  // that reached the driver
};

}  // namespace demarc::cuda
