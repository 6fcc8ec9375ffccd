// Starts a command, finds out how to count its launches, and ends it.
#include "command_run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace demarc::study {

Result<CommandRun> CommandRun::start(const CommandLaneOptions& options,
                                     const std::string& command) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return missing_capability("cannot make a pipe: {}", std::strerror(errno));
  }
  std::vector<std::string> argv = options.prefix(ends[1]);
  argv.insert(argv.end(), {"/bin/sh", "-c", command});
  ProcessOptions child;
  child.set = options.environment;
  child.output = child.error = ChildStream::kept;
  child.death_signal = SIGTERM;
  child.keep_open = {ends[1]};
  auto process = Process::spawn(argv, child);
  ::close(ends[1]);
  if (!process) {
    ::close(ends[0]);
    return tl::unexpected(process.error());
  }
  return CommandRun(std::move(*process), ends[0], options);
}

CommandRun::CommandRun(CommandRun&& other) noexcept
    : process_(std::move(other.process_)),
      announced_(std::exchange(other.announced_, -1)),
      options_(other.options_),
      line_(std::move(other.line_)),
      count_(std::move(other.count_)) {}

CommandRun::~CommandRun() {
  if (announced_ >= 0) ::close(announced_);
}

Result<void> CommandRun::look() {
  char c = 0;
  while (announced_ >= 0 && ::read(announced_, &c, 1) == 1) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    ::close(std::exchange(announced_, -1));
    auto count = options_->open_count(line_);
    if (!count) {
      return check_failed("runs, but its launches cannot be counted: {}", count.error().message);
    }
    count_ = std::move(*count);
  }
  return {};
}

ProcessEnd CommandRun::end() {
  if (options_->before_end) options_->before_end(process_.pid());
  return process_.end(0, options_->leave_seconds);
}

std::string CommandRun::words(const ProcessEnd& ended) {
  return fmt::format("ended with {}; the last of its output: {}", ended.words(), output());
}

}  // namespace demarc::study
