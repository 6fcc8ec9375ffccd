// Which signals a file takes, and that a process is as it was when the file is gone.
#include "demarc/guest/signal_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;

constexpr int taken_signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCHLD, SIGPIPE};

bool is_readable(const SignalFile& signals) {
  pollfd item{signals.file(), POLLIN, 0};
  return ::poll(&item, 1, 0) == 1;
}

TEST(SignalFiles, give_each_signal_once_and_tell_that_a_process_sent_it) {
  for (const int number : taken_signals) {
    EXPECT_EQ(Supervised::apart([number] {
                const auto signals = SignalFile::open();
                if (!signals || is_readable(*signals) || signals->take()) return 1;
                ::kill(::getpid(), number);
                if (!is_readable(*signals)) return 2;
                const auto taken = signals->take();
                if (!taken || taken->number != number || taken->from_kernel) return 3;
                return signals->take() ? 4 : 0;
              }),
              0)
        << number;
  }
}

TEST(SignalFiles, leave_other_signals_to_the_process) {
  EXPECT_EQ(Supervised::apart([] {
              const auto signals = SignalFile::open();
              ::raise(SIGUSR1);
              return 0;
            }),
            128 + SIGUSR1);
}

TEST(SignalFiles, are_no_files_of_programs_that_are_started) {
  EXPECT_EQ(Supervised::apart([] {
              const auto signals = SignalFile::open();
              return (::fcntl(signals->file(), F_GETFD) & FD_CLOEXEC) != 0 ? 0 : 1;
            }),
            0);
}

TEST(SignalFiles, leave_the_mask_and_what_becomes_of_children_as_they_were) {
  EXPECT_EQ(Supervised::apart([] {
              sigset_t some;
              ::sigemptyset(&some);
              ::sigaddset(&some, SIGUSR1);
              ::sigaddset(&some, SIGHUP);
              ::sigprocmask(SIG_SETMASK, &some, nullptr);
              ::signal(SIGCHLD, SIG_IGN);
              struct sigaction children {};
              {
                auto opened = SignalFile::open();
                const SignalFile signals = *std::move(opened);  // one that is moved gives back once
                sigset_t now;
                ::sigprocmask(SIG_SETMASK, nullptr, &now);
                for (const int number : taken_signals) {
                  if (::sigismember(&now, number) != 1) return 1;
                }
                if (::sigismember(&now, SIGUSR1) != 1) return 2;
                for (const int number : {SIGTERM, SIGHUP, SIGUSR1}) {
                  const int was = number == SIGTERM ? 0 : 1;
                  if (::sigismember(&signals.mask_before(), number) != was) return 3;
                }
                ::sigaction(SIGCHLD, nullptr, &children);
                if (children.sa_handler != SIG_DFL) return 4;
                ::raise(SIGTERM);  // comes too late for anything
              }
              sigset_t after;
              ::sigprocmask(SIG_SETMASK, nullptr, &after);
              for (const int number : taken_signals) {
                if (::sigismember(&after, number) != (number == SIGHUP ? 1 : 0)) return 5;
              }
              if (::sigismember(&after, SIGUSR1) != 1) return 6;
              ::sigaction(SIGCHLD, nullptr, &children);
              return children.sa_handler == SIG_IGN ? 0 : 7;
            }),
            0);
}

// A child whose end nothing waits for is kept until it is waited for.
TEST(SignalFiles, tell_of_children_that_have_ended_where_that_was_ignored) {
  EXPECT_EQ(Supervised::apart([] {
              ::signal(SIGCHLD, SIG_IGN);
              const auto signals = SignalFile::open();
              const pid_t child = ::fork();
              if (child == 0) ::_exit(5);
              pollfd item{signals->file(), POLLIN, 0};
              if (::poll(&item, 1, -1) != 1 || signals->take()->number != SIGCHLD) return 1;
              int status = 0;
              if (::waitpid(child, &status, 0) != child) return 2;
              return WEXITSTATUS(status) == 5 ? 0 : 3;
            }),
            0);
}

}  // namespace
}  // namespace demarc::cuda
