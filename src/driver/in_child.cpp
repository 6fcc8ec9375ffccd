// Forks, and brings what the child answers through a pipe.
#include "demarc/driver/in_child.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace demarc::cuda {
namespace {

void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

// True when the child closed its end, false when time ran out.
bool read_all(int file, std::string& text, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{file, POLLIN, {}};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> answer_of_child(const std::function<ChildAnswer()>& work,
                                    std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe(ends) != 0) return missing_capability("cannot make a pipe: {}", std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return missing_capability("cannot start a process: {}", std::strerror(errno));
  }
  if (child == 0) {
    ::close(ends[0]);
    // The answer of a process that outlives this one would be lost.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    const ChildAnswer answer = work();
    std::string text(1, answer.good ? 'v' : static_cast<char>('0' + answer.error_kind));
    write_all(ends[1], text + answer.bytes);
    // Without running destructors: they could wait for work that hangs.
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  const bool closed = read_all(ends[0], text, limit);
  ::close(ends[0]);
  if (!closed) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!closed) return check_failed("the GPU did not answer within {} ms", limit.count());
  if (text.empty()) {
    return check_failed("a process that used the GPU ended without an answer ({} {})",
                        WIFSIGNALED(status) ? "signal" : "exit code",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  std::string rest = text.substr(1);
  if (text[0] == 'v') return rest;
  return tl::unexpected(Error{static_cast<ErrorKind>(text[0] - '0'), rest});
}

}  // namespace demarc::cuda
