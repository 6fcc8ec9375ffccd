// How a supervised program begins and ends, whatever this process is like: errors that earlier
// calls left, signals that it ignores, no room for files or processes.
#include "start_program.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "not_run.hpp"
#include "process_files.hpp"
#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;
using testing::HasSubstr;

TEST(Supervision, an_error_of_an_earlier_call_is_none_of_its_own) {
  Supervised program("earlier");
  EXPECT_EQ(Supervised::apart([&] {
              for (const int earlier : {EINTR, EINVAL, EACCES}) {
                errno = earlier;
                if (program.run_command({"true"}) != 0) return 1;
                errno = earlier;
                if (program.run_command({"/no/such/program"}) != -1) return 2;
                if (::waitpid(-1, nullptr, WNOHANG) != -1) return 3;  // none is left behind
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

TEST(Supervision, a_process_that_says_it_is_hooked_must_know_the_token) {
  Supervised program("claims");
  auto command = program.subject({"present=0x44656d01", "context"});
  command.insert(command.begin(), {"env", "-i"});
  EXPECT_EQ(program.run_command(command), 0);
  EXPECT_EQ(program.log(), "present " + std::to_string(EACCES) + "\ncontext 800\n");
  EXPECT_EQ(program.counts.kept_off, 1U);
}

TEST(Supervision, a_process_that_says_it_is_stopped_is_heard) {
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

// Each in a process of its own, which is ended where it would wait for ever.
TEST(SupervisedApart, a_program_is_waited_for_to_the_end_of_its_last_process) {
  Supervised program("whole");
  EXPECT_EQ(Supervised::apart([&] { return program.run({"context", "launch", "exit=7"}); }), 7);
  EXPECT_EQ(program.log(), "context 0\nlaunch 0\n");
  EXPECT_EQ(Supervised::apart([&] {
              if (program.run({"daemon", "context", "launch"}) != 0) return 1;
              return program.counts.confined == 1 ? 0 : 2;
            }),
            0);
}

TEST(SupervisedApart, signals_for_the_program_reach_it_and_do_not_end_this_process) {
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) {
    Supervised program("signalled");
    ASSERT_EQ(Supervised::apart([&] { return program.run({"signal=" + std::to_string(signal)}); }),
              0);
    EXPECT_THAT(program.log(), HasSubstr("program got " + std::to_string(signal) + "\n"));
  }
}

TEST(SupervisedApart, signals_reach_processes_whose_parents_are_gone) {
  Supervised program("orphans_signalled");
  EXPECT_EQ(Supervised::apart([&] { return program.run({"daemon", "signal=15"}); }), 0);
  EXPECT_THAT(program.log(), HasSubstr("program got 15\n"));
  EXPECT_THAT(program.log(), HasSubstr("grandchild got 15\n"));
}

TEST(SupervisedApart, ended_processes_whose_parents_are_gone_leave_the_table) {
  Supervised program("orphans_ended");
  const std::string orphan = program.log_path() + ".orphan";
  const std::string script = "( (sh -c 'echo $$ > " + orphan + "') & ); i=0; " +
                             "while [ $i -lt 300 ]; do n=$(cat " + orphan +
                             " 2>/dev/null); [ -n \"$n\" ] && [ ! -e /proc/$n ] && exit 0; "
                             "sleep 0.01; i=$((i+1)); done; exit 1";
  EXPECT_EQ(Supervised::apart([&] { return program.run_command({"sh", "-c", script}); }), 0);
}

// Where what demarc exec writes to has gone.
TEST(SupervisedApart, a_broken_pipe_of_this_process_ends_neither_it_nor_the_program) {
  Supervised program("pipe");
  EXPECT_EQ(Supervised::apart([&] { return program.run({"send=13", "signal=15"}); }), 0);
  EXPECT_THAT(program.log(), HasSubstr("program got 15\n"));
}

TEST(SupervisedApart, a_program_is_waited_for_where_ends_of_children_are_ignored) {
  EXPECT_EQ(Supervised::apart([] {
              Supervised program("ignored");
              ::signal(SIGCHLD, SIG_IGN);
              if (program.run({"context", "exit=7"}) != 7) return 1;
              struct sigaction after {};
              ::sigaction(SIGCHLD, nullptr, &after);
              return after.sa_handler == SIG_IGN ? 0 : 2;
            }),
            0);
}

TEST(SupervisedApart, a_program_begins_with_the_signals_that_this_process_had_blocked) {
  EXPECT_EQ(Supervised::apart([] {
              Supervised program("blocked");
              sigset_t some;
              ::sigemptyset(&some);
              ::sigaddset(&some, SIGUSR1);
              ::sigaddset(&some, SIGHUP);
              ::sigprocmask(SIG_SETMASK, &some, nullptr);
              // Bits of 10 and 1.
              return program.run_command({"grep", "-q", "^SigBlk:.0*201$", "/proc/self/status"});
            }),
            0);
}

std::vector<std::string> files_of(Supervised& program, bool supervised) {
  const std::string list = program.log_path() + ".files";
  const std::string words = "readlink /proc/self/fd/* > " + list + "; true";
  if (supervised) {
    EXPECT_EQ(program.run_command({"sh", "-c", words}), 0);
  } else {
    EXPECT_EQ(std::system(("sh -c '" + words + "'").c_str()), 0);
  }
  std::vector<std::string> files;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("/proc/") == std::string::npos) files.push_back(line);
  }
  return files;
}

TEST(Supervision, a_program_has_none_of_the_descriptors_that_it_is_watched_by) {
  Supervised program("descriptors");
  EXPECT_EQ(files_of(program, true), files_of(program, false));
}

TEST(Supervision, without_room_for_the_filters_descriptor_nothing_is_started) {
  EXPECT_EQ(Supervised::apart([] {
              const rlimit few{64, 64};
              if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
              int last = -1;
              for (int file = 0; (file = ::dup(STDERR_FILENO)) >= 0;) last = file;
              ::close(last);
              ::close(last - 1);  // of a pair of sockets, but not of a filter beside it
              sigset_t signals;
              ::sigemptyset(&signals);
              const auto started = start_program({{"true"}, {}}, signals);
              if (started) return 2;
              if (started.error().kind != ErrorKind::missing_capability) return 3;
              if (started.error().message !=
                  "too many files are open to watch the program (Too many open files): raise the "
                  "limit (ulimit -n)") {
                return 4;
              }
              if (::waitpid(-1, nullptr, WNOHANG) != -1) return 5;  // a child was left
              return ::dup(STDERR_FILENO) == last - 1 && ::dup(STDERR_FILENO) == last ? 0 : 6;
            }),
            0);
}

TEST(Supervision, a_process_whose_drivers_cannot_be_read_is_kept_off) {
  Supervised program("maps");
  constexpr int no_namespaces = 77;
  const std::string said = program.log_path() + ".said";
  const int code = Supervised::apart([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return no_namespaces;
    }
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    auto supervisor = Supervisor::start(
        {program.card, program.control.block().report_token,
         [&](const std::string& line) { static_cast<void>(write_file(said, line)); },
         [](const ProcessCounts&) {
           // Once it is hooked what it has loaded is out of sight.
           for (const pid_t process : family_since(0)) {
             const std::string maps = "/proc/" + std::to_string(process) + "/maps";
             ::mount("/dev/null", maps.c_str(), nullptr, MS_BIND, nullptr);
           }
         }},
        {program.subject({"init", "context", "exit=0"}), program.environment()});
    if (!supervisor) return 1;
    if (supervisor->wait() != 0) return 2;
    return supervisor->counts().kept_off == 1 && supervisor->counts().contexts == 0 ? 0 : 3;
  });
  if (code == no_namespaces) DEMARC_NOT_RUN("no mount namespaces");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(program.log(), "init 0\ncontext 800\n");
  EXPECT_THAT(read_file(said).value_or(""),
              HasSubstr(": what it has loaded cannot be read, so its drivers are unknown"));
}

}  // namespace
}  // namespace demarc::cuda
