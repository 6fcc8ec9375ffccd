// Writes to standard error without a signal and without an exception.
#include "demarc/base/standard_error.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace demarc {

void say_to_standard_error(std::string_view text) {
  sigset_t broken_pipe;
  sigset_t before;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    // A reader that does not block its writers may be behind.
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (written < 0 && errno == EAGAIN && ::poll(&out, 1, 1000) > 0) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  // That of this write waits for this thread.
  const bool was_blocked = ::sigismember(&before, SIGPIPE) == 1;
  const std::timespec at_once{};
  if (!text.empty() && !was_blocked) ::sigtimedwait(&broken_pipe, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace demarc
