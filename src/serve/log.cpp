// Says lines where they can be written at once.
#include "log.hpp"

#include <fmt/format.h>
#include <poll.h>

namespace demarc::serve {

void Log::say(const std::string& line, Clock::time_point now) {
  if (now - since_ > std::chrono::seconds(10)) {
    since_ = now;
    said_ = 0;
  }
  pollfd out{file_, POLLOUT, {}};
  ::poll(&out, 1, 0);
  if (said_ >= max_lines || (out.revents & POLLOUT) == 0) {
    ++left_out_;
    return;
  }
  if (left_out_ != 0) tell_(fmt::format("lines that were left out here: {}", left_out_));
  left_out_ = 0;
  ++said_;
  tell_(line);
}

}  // namespace demarc::serve
