// One run of a command that is an aggressor.
#pragma once

#include <optional>
#include <string>

#include "demarc/study/remote_lane.hpp"
#include "last_lines.hpp"

namespace demarc::study {

class CommandRun {
 public:
  static Result<CommandRun> start(const CommandLaneOptions& options, const std::string& command);
  CommandRun(CommandRun&& other) noexcept;
  CommandRun& operator=(CommandRun&&) = delete;
  ~CommandRun();

  // Reads what was announced, if it has been. check_failed when that leads nowhere.
  Result<void> look();
  [[nodiscard]] std::uint64_t launches() const { return count_ ? count_() : 0; }
  // How it ended by itself, once it has.
  [[nodiscard]] std::optional<ProcessEnd> ended() { return process_.wait(0); }
  // The same for a run that seems to be ending: what it announced is gone before it is.
  [[nodiscard]] std::optional<ProcessEnd> ended_soon() { return process_.wait(0.5); }
  ProcessEnd end();
  // "ended with exit code 3; the last of its output: ..."
  [[nodiscard]] std::string words(const ProcessEnd& ended);
  [[nodiscard]] std::string output() { return last_lines(process_.kept()); }

 private:
  CommandRun(Process process, int announced, const CommandLaneOptions& options)
      : process_(std::move(process)), announced_(announced), options_(&options) {}
  Process process_;
  int announced_;  // -1 once it has been read
  const CommandLaneOptions* options_;
  std::string line_;
  LaunchCount count_;
};

}  // namespace demarc::study
