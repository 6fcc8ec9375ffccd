// Work in a process of its own: what becomes of it where the machine has none to give.
#include "demarc/driver/in_child.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>

#include "supervised.hpp"

namespace demarc::cuda {
namespace {

std::ptrdiff_t files_open_here() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// Its answer is a value, or an error of each kind, and may be longer than a pipe holds.
TEST(WorkInAChild,
     brings_answers_of_any_length_and_errors_of_any_kind_back_and_leaves_no_file_open) {
  EXPECT_EQ(test::Supervised::apart([] {
              const std::ptrdiff_t before = files_open_here();
              std::string text;
              for (int i = 0; i < 300000; ++i) text += static_cast<char>('a' + i % 23);
              for (const std::string& bytes : {std::string(), std::string("one"), text}) {
                const auto answer = answer_of_child(
                    [&bytes] {
                      return ChildAnswer{true, 0, bytes};
                    },
                    child_limit);
                if (!answer || *answer != bytes) return 1;
              }
              for (const ErrorKind kind : {ErrorKind::invalid_input, ErrorKind::missing_capability,
                                           ErrorKind::check_failed}) {
                const auto answer = answer_of_child(
                    [kind] {
                      return ChildAnswer{false, static_cast<int>(kind), "so it is"};
                    },
                    child_limit);
                if (answer || answer.error().kind != kind) return 2;
                if (answer.error().message != "so it is") return 3;
              }
              return files_open_here() == before ? 0 : 4;
            }),
            0);
}

TEST(WorkInAChild, that_ends_without_an_answer_or_gives_none_in_time_is_said_so) {
  EXPECT_EQ(test::Supervised::apart([] {
              const std::ptrdiff_t before = files_open_here();
              const auto says = [](const std::function<void()>& work, int limit_ms) {
                const auto answer = answer_of_child(
                    [&work] {
                      work();
                      return ChildAnswer{true, 0, "done"};
                    },
                    std::chrono::milliseconds(limit_ms));
                return answer || answer.error().kind != ErrorKind::check_failed
                           ? std::string()
                           : answer.error().message;
              };
              const std::string prefix = "a process that used the GPU ended without an answer (";
              if (says([] { ::_exit(7); }, 60000) != prefix + "exit code 7)") return 1;
              if (says([] { ::raise(SIGKILL); }, 60000) != prefix + "signal 9)") return 2;
              if (says([] { ::pause(); }, 20) != "the GPU did not answer within 20 ms") return 3;
              if (::waitpid(-1, nullptr, WNOHANG) != -1) return 4;  // a child is left
              return files_open_here() == before ? 0 : 5;
            }),
            0);
}

// The end of the pipe that only the child's child holds closes when it is gone.
TEST(WorkInAChild, goes_with_the_process_that_asked) {
  int held[2];
  ASSERT_EQ(::pipe(held), 0);
  const pid_t asking = ::fork();
  ASSERT_GE(asking, 0);
  if (asking == 0) {
    static_cast<void>(answer_of_child(
        [&held] {
          static_cast<void>(::write(held[1], "x", 1));
          ::pause();
          return ChildAnswer{};
        },
        child_limit));
    ::_exit(0);
  }
  ::close(held[1]);
  char begun = 0;
  EXPECT_EQ(::read(held[0], &begun, 1), 1);
  ::kill(asking, SIGKILL);
  ::waitpid(asking, nullptr, 0);
  pollfd waiting{held[0], POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 10000), 1) << "it lives on";
  EXPECT_EQ(::read(held[0], &begun, 1), 0);
  ::close(held[0]);
}

TEST(WorkInAChild, that_cannot_be_started_is_said_so) {
  EXPECT_EQ(test::Supervised::apart([] {
              const rlimit none{0, 0};
              // Root may have as many as it likes.
              if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 1;
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
              const std::ptrdiff_t before = files_open_here();
              const auto answer = in_child<int>([]() -> Result<int> { return 5; });
              if (answer) return 3;
              if (files_open_here() != before) return 5;
              const std::string& said = answer.error().message;
              return said.find("cannot start a process: ") == 0 ? 0 : 4;
            }),
            0);
}

TEST(WorkInAChild, brings_its_answer_or_its_error_back) {
  EXPECT_EQ(test::Supervised::apart([] {
              const auto good = in_child<int>([]() -> Result<int> { return 5; });
              const auto bad =
                  in_child<int>([]() -> Result<int> { return check_failed("no {}", 7); });
              return good && *good == 5 && !bad && bad.error().message == "no 7" &&
                             bad.error().kind == ErrorKind::check_failed
                         ? 0
                         : 1;
            }),
            0);
}

}  // namespace
}  // namespace demarc::cuda
