// Keeps the last bytes of a child's output.
#include "output_tail.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace demarc {

OutputTail::OutputTail(int fd, std::size_t bytes)
    : fd_(fd), wake_(::eventfd(0, EFD_CLOEXEC)), bytes_(bytes) {
  ::fcntl(fd_, F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { read_all(); });
}

void OutputTail::finish() {
  if (!thread_.joinable()) return;
  ::eventfd_write(wake_, 1);
  thread_.join();
  ::close(wake_);
  ::close(fd_);
}

std::string OutputTail::text() {
  const std::lock_guard lock(mutex_);
  return text_;
}

void OutputTail::read_all() {
  while (true) {
    pollfd waiting[] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (::poll(waiting, 2, -1) < 0 && errno != EINTR) return;
    const bool last = (waiting[1].revents & POLLIN) != 0;
    if (!take() || last) return;
  }
}

// False at the end of the pipe. So many at a time: a process that escaped may write for ever.
bool OutputTail::take() {
  constexpr int max_chunks = 64;
  char chunk[4096];
  for (int chunks = 0; chunks < max_chunks; ++chunks) {
    const ssize_t n = ::read(fd_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    const std::lock_guard lock(mutex_);
    text_.append(chunk, static_cast<std::size_t>(n));
    if (text_.size() > bytes_) text_.erase(0, text_.size() - bytes_);
  }
  return true;
}

}  // namespace demarc
