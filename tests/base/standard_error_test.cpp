// Standard error may be full, closed or without a reader, and the process goes on.
#include "demarc/base/standard_error.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace demarc {
namespace {

// In a process of its own, whose standard error is that file: whether it ends as it should.
bool goes_on_with(int standard_error, bool blocked) {
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t broken_pipe;
    ::sigemptyset(&broken_pipe);
    ::sigaddset(&broken_pipe, SIGPIPE);
    ::signal(SIGPIPE, SIG_DFL);
    if (blocked) ::sigprocmask(SIG_BLOCK, &broken_pipe, nullptr);
    ::dup2(standard_error, STDERR_FILENO);
    if (standard_error < 0) ::close(STDERR_FILENO);
    say_to_standard_error("a line\n");
    sigset_t now;
    ::sigprocmask(SIG_SETMASK, nullptr, &now);
    ::_exit((::sigismember(&now, SIGPIPE) == 1) == blocked ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

TEST(StandardError, that_cannot_be_written_ends_nothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (const bool blocked : {false, true}) {
    EXPECT_TRUE(goes_on_with(ends[1], blocked)) << "no reader";
    EXPECT_TRUE(goes_on_with(full, blocked)) << "no room";
    EXPECT_TRUE(goes_on_with(-1, blocked)) << "closed";
  }
  ::close(ends[1]);
  ::close(full);
}

TEST(StandardError, gets_whole_texts) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string text(200'000, 'x');  // more than a pipe holds
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    say_to_standard_error(text);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::size_t bytes = 0;
  char some[4096];
  for (;;) {
    const ssize_t got = ::read(ends[0], some, sizeof some);
    if (got == 0) break;
    if (got > 0) bytes += static_cast<std::size_t>(got);
    if (got < 0) ::usleep(100);
  }
  EXPECT_EQ(bytes, text.size());
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
}

}  // namespace
}  // namespace demarc
