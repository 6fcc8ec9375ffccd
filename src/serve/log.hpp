// The server's log. Clients can make it say lines, so it says a limited number of them, and none
// that it would have to wait for.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace demarc::serve {

class Log {
 public:
  using Clock = std::chrono::steady_clock;
  using Tell = std::function<void(const std::string& line)>;
  static constexpr std::size_t max_lines = 200;  // in ten seconds

  // `file`: where `tell` writes.
  explicit Log(Tell tell, int file = STDERR_FILENO) : tell_(std::move(tell)), file_(file) {}
  // A line that is left out is counted, and the number is said as soon as that is possible.
  void say(const std::string& line, Clock::time_point now = Clock::now());

 private:
  Tell tell_;
  int file_;
  Clock::time_point since_{};
  std::size_t said_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace demarc::serve
