// What keeps files where this process has none open, so that they get the number 0; and errors that
// earlier calls left.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>

#include "demarc/lease/card_claim.hpp"
#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;

bool is_open(int file) {
  return ::fcntl(file, F_GETFD) >= 0;
}

TEST(FilesOfNumberZero, are_files_like_others_and_are_closed) {
  const auto apart = [](bool (*holds)()) {
    return Supervised::apart([holds] {
      ::close(STDIN_FILENO);
      if (!holds()) return 1;
      return is_open(STDIN_FILENO) ? 2 : 0;
    });
  };
  EXPECT_EQ(apart([] {
              const auto made = Control::create();
              return made && is_open(STDIN_FILENO);
            }),
            0);
  EXPECT_EQ(apart([] {
              ::open("/dev/null", O_RDONLY);
              const Control made = Control::create().value();
              ::close(STDIN_FILENO);
              return Control::open(made.value()).has_value() && made.store_mask({}, true);
            }),
            0);
  EXPECT_EQ(apart([] {
              auto claim = lease::CardClaim::open({"/proc/self/exe"});
              return claim && claim->keep("GPU-of-nobody", lease::ClaimRole::program) &&
                     is_open(STDIN_FILENO);
            }),
            0);
  EXPECT_EQ(apart([] {
              const auto signals = SignalFile::open();
              return signals && is_open(STDIN_FILENO);
            }),
            0);
  EXPECT_EQ(apart([] {
              const int file = install_filter();
              const FilterListener listener(file);
              return file == STDIN_FILENO && is_open(STDIN_FILENO);
            }),
            0);
}

TEST(FilesOfNumberZero, are_left_alone_by_what_has_none) {
  EXPECT_EQ(Supervised::apart([] {
              if (!is_open(STDIN_FILENO)) ::open("/dev/null", O_RDONLY);
              {
                Control control = Control::create().value();
                const Control moved(std::move(control));
                const auto opened = Control::open(moved.value());
                FilterListener listener(::open("/dev/null", O_RDONLY));
                const FilterListener later(std::move(listener));
                auto claim = lease::CardClaim::open({"/proc/self/exe"}).value();
                const lease::CardClaim kept(std::move(claim));
                auto signals = SignalFile::open().value();
                const SignalFile taken(std::move(signals));
              }
              return is_open(STDIN_FILENO) ? 0 : 1;
            }),
            0);
}

TEST(FilterListeners, of_no_filter_hear_and_answer_nothing) {
  FilterListener listener(-1);
  EXPECT_FALSE(listener.receive());
  EXPECT_FALSE(listener.let_pass({}));
  EXPECT_FALSE(listener.answer({}, 0));
}

TEST(Supervision, an_error_of_an_earlier_call_is_none_of_its_own) {
  Supervised program("earlier");
  EXPECT_EQ(Supervised::apart([&] {
              for (const int earlier : {EINTR, EINVAL, EACCES}) {
                errno = earlier;
                if (program.run_command({"true"}) != 0) return 1;
                errno = earlier;
                if (program.run_command({"/no/such/program"}) != -1) return 2;
                if (::waitpid(-1, nullptr, WNOHANG) != -1) return 3;  // nobody is left behind
              }
              return 0;
            }),
            0);
}

TEST(Supervision, a_program_whose_end_another_took_has_failed) {
  Supervised program("taken");
  EXPECT_EQ(Supervised::apart([&] {
              ::alarm(30);  // a program that asks once more would wait for ever
              auto supervisor =
                  Supervisor::start({program.card,
                                     program.control.block().report_token,
                                     {},
                                     [](const ProcessCounts&) { ::waitpid(-1, nullptr, 0); }},
                                    {program.subject({"init", "exit=0"}), program.environment()});
              return supervisor ? supervisor->wait() : 64;
            }),
            1);
}

TEST(Supervision, a_process_that_kept_orphans_before_keeps_them_after) {
  Supervised program("keeper");
  EXPECT_EQ(Supervised::apart([&] {
              ::prctl(PR_SET_CHILD_SUBREAPER, 1);
              if (program.run_command({"true"}) != 0) return 1;
              int keeps = 0;
              ::prctl(PR_GET_CHILD_SUBREAPER, &keeps);
              return keeps == 1 ? 0 : 2;
            }),
            0);
}

TEST(Supervision, whoever_says_that_it_is_hooked_must_know_the_token) {
  Supervised program("claims");
  auto command = program.subject({"present=0x44656d01", "context"});
  command.insert(command.begin(), {"env", "-i"});
  EXPECT_EQ(program.run_command(command), 0);
  EXPECT_EQ(program.log(), "present " + std::to_string(EACCES) + "\ncontext 800\n");
  EXPECT_EQ(program.counts.kept_off, 1U);
}

TEST(Supervision, whoever_says_that_it_is_stopped_is_heard) {
  Supervised program("stops");
  EXPECT_EQ(program.run({"present=0x44656d02"}), 0);
  EXPECT_EQ(program.log(), "present 0\n");
  EXPECT_EQ(program.counts.stopped, 1U);
}

TEST(Supervision, without_room_for_a_process_nothing_is_started) {
  EXPECT_EQ(Supervised::apart([] {
              const rlimit none{0, 0};
              if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 1;
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;  // root may have any number
              const int next = ::dup(STDERR_FILENO);
              ::close(next);
              sigset_t signals;
              ::sigemptyset(&signals);
              const auto started = start_program({{"true"}, {}}, signals);
              if (started) return 3;
              const int later = ::dup(STDERR_FILENO);
              if (later != next) return 4;  // a file was left open
              return started.error().message ==
                             "cannot start a process: Resource temporarily unavailable"
                         ? 0
                         : 5;
            }),
            0);
}

}  // namespace
}  // namespace demarc::cuda
