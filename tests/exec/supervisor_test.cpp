// Who reaches the GPU is seen from outside, whatever the program does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/prctl.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Supervision, a_confined_program_keeps_its_exit_code_and_is_counted) {
  Supervised program("confined");
  EXPECT_EQ(program.run({"context", "launch", "exit=7"}), 7);
  EXPECT_EQ(program.log(), "context 0\nlaunch 0\n");
  EXPECT_THAT(program.told, IsEmpty());
  EXPECT_EQ(program.counts.confined, 1U);
  EXPECT_EQ(program.counts.contexts, 1U);
  EXPECT_EQ(program.counts.kept_off + program.counts.stopped, 0U);
  EXPECT_EQ(program.live.confined, 1U) << "is told while the program runs";
  EXPECT_EQ(program.launches(), 1U);
  EXPECT_EQ(program.control.block().counters.masked[3], 1U) << "launches carry the mask";
}

TEST(Supervision, a_program_that_reaches_no_card_is_not_counted) {
  Supervised program("nothing");
  EXPECT_EQ(program.run({"init", "exit=0"}), 0);
  EXPECT_EQ(program.log(), "init 0\n");
  EXPECT_EQ(program.counts.confined + program.counts.contexts + program.counts.kept_off, 0U);
}

TEST(Supervision, heeds_the_end_of_what_it_watches_once_and_serves_the_program_on) {
  Supervised program("watched");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[1]);
  int heeded = 0;
  const ProgramPlan plan{program.subject({"context", "launch", "exit=5"}), program.environment()};
  auto supervisor = Supervisor::start(
      {program.card, program.control.block().report_token, {}, {}, {}, ends[0], [&] { ++heeded; }},
      plan);
  ASSERT_TRUE(supervisor);
  EXPECT_EQ(supervisor->wait(), 5);
  EXPECT_EQ(heeded, 1);
  EXPECT_EQ(supervisor->counts().confined, 1U);
  ::close(ends[0]);
}

TEST(Supervision, a_launcher_that_drops_the_environment_is_kept_off) {
  Supervised program("dropped");
  auto command = program.subject({"context", "context", "exit=0"});
  command.insert(command.begin(), {"env", "-i"});
  EXPECT_EQ(program.run_command(command), 0);
  EXPECT_EQ(program.log(), "context 800\ncontext 800\n");
  EXPECT_EQ(program.counts.kept_off, 1U);
  EXPECT_EQ(program.counts.contexts, 0U);
  ASSERT_EQ(program.told.size(), 1U) << "said once";
  EXPECT_THAT(program.told[0],
              testing::MatchesRegex("process [0-9]+ \\(demarc_exec_sub\\) was KEPT OFF GPU "
                                    "fafafafa-.*: its launches cannot be confined.*"));
}

TEST(Supervision, an_end_without_destructors_or_by_a_signal_loses_nothing) {
  Supervised ended("ended");
  EXPECT_EQ(ended.run({"context", "launch", "_exit=5"}), 5);
  EXPECT_EQ(ended.counts.confined, 1U);
  EXPECT_EQ(ended.launches(), 1U);
  Supervised killed("killed");
  EXPECT_EQ(killed.run({"context", "launch", "die=9"}), 128 + SIGKILL);
  EXPECT_EQ(killed.counts.confined, 1U);
  EXPECT_EQ(killed.launches(), 1U);
}

TEST(Supervision, a_process_that_becomes_another_program_is_confined_anew_or_kept_off) {
  Supervised hooked("becomes");
  EXPECT_EQ(hooked.run({"context", "launch", "exec", "context", "launch"}), 0);
  EXPECT_EQ(hooked.log(), "context 0\nlaunch 0\ncontext 0\nlaunch 0\n");
  EXPECT_EQ(hooked.counts.confined, 2U);
  EXPECT_EQ(hooked.launches(), 2U);
  Supervised dropped("becomes_bare");
  EXPECT_EQ(dropped.run({"context", "launch", "exec-without-environment", "context"}), 0);
  EXPECT_EQ(dropped.log(), "context 0\nlaunch 0\ncontext 800\n");
  EXPECT_EQ(dropped.counts.confined, 1U);
  EXPECT_EQ(dropped.counts.kept_off, 1U) << "the process was hooked, but not this program of it";
}

TEST(Supervision, another_card_is_kept_off) {
  Supervised program("other_card");
  EXPECT_EQ(program.run({"set=DEMARC_FAKE_CARD=fb", "context"}), 0);
  EXPECT_EQ(program.log(), "context 800\n");
  EXPECT_EQ(program.counts.kept_off, 1U);
  ASSERT_EQ(program.told.size(), 1U);
  EXPECT_THAT(program.told[0], HasSubstr("GPU fbfbfbfb-fbfb-fbfb-fbfb-fbfbfbfbfbfb: it chose "
                                         "another card than that of the partition, " +
                                         program.card));
}

// Which card is chosen stands in the process's memory.
TEST(Supervision, a_call_whose_card_cannot_be_read_is_kept_off) {
  Supervised program("unreadable");
  EXPECT_EQ(program.run({"init", "ask=/dev/null"}), 0);
  EXPECT_EQ(program.log(), "init 0\nask /dev/null " + std::to_string(EPERM) + "\n");
  EXPECT_EQ(program.counts.kept_off, 1U);
  EXPECT_EQ(program.counts.contexts, 0U);
  ASSERT_EQ(program.told.size(), 1U);
  EXPECT_THAT(program.told[0],
              HasSubstr("KEPT OFF GPU of unknown name: its memory cannot be read"));
}

TEST(Supervision, the_same_call_on_an_ordinary_file_is_none_of_its_concern) {
  Supervised program("ordinary");
  EXPECT_EQ(program.run({"ask=/proc/self/exe"}), 0);
  EXPECT_EQ(program.log(), "ask /proc/self/exe " + std::to_string(ENOTTY) + "\n");
  EXPECT_EQ(program.counts.kept_off + program.counts.contexts, 0U);
  EXPECT_THAT(program.told, IsEmpty());
}

TEST(Supervision, whoever_asks_is_told_that_there_is_a_supervisor) {
  Supervised program("asked");
  EXPECT_EQ(program.run({"present=0x44656d00", "present=0x44656d03"}), 0);
  EXPECT_EQ(program.log(), "present 0\npresent 0\n");
  EXPECT_EQ(program.counts.stopped + program.counts.confined + program.counts.kept_off, 0U);
}

TEST(Supervision, threads_spawned_processes_closed_files_and_daemons_are_confined_alike) {
  Supervised program("ways");
  EXPECT_EQ(program.run({"close-files", "context-in-thread", "launch", "spawn", "context", "daemon",
                         "context", "release", "context", "launch"}),
            0);
  EXPECT_EQ(program.log(), "context 0\nlaunch 0\ncontext 0\ncontext 0\ncontext 0\nlaunch 0\n");
  EXPECT_EQ(program.counts.kept_off + program.counts.stopped, 0U);
  EXPECT_THAT(program.told, IsEmpty());
}

TEST(Supervision, a_daemon_is_waited_for) {
  Supervised program("daemon");
  // Its parents are gone when it begins; the supervisor's end would end its contexts too.
  EXPECT_EQ(program.run({"daemon", "context", "launch", "exit=9"}), 0) << "the program's own";
  EXPECT_EQ(program.log(), "context 0\nlaunch 0\n");
  EXPECT_EQ(program.counts.confined, 1U);
}

TEST(Supervision, signals_reach_the_program_and_what_it_started) {
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) {
    Supervised program("signals");
    EXPECT_EQ(program.run({"signal=" + std::to_string(signal)}), 0);
    const std::string got = " got " + std::to_string(signal) + "\n";
    EXPECT_THAT(program.log(), HasSubstr("program" + got));
    EXPECT_THAT(program.log(), HasSubstr("grandchild" + got));
  }
}

TEST(Supervision, an_interrupt_of_the_terminal_is_not_doubled) {
  Supervised program("terminal");
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  // The program blocks its signals before the terminal sends one.
  if (child == 0) std::_Exit(program.run({"block", "init", "take", "send=15", "take"}));
  while (program.log().find("init") == std::string::npos) std::this_thread::yield();
  const char interrupt = 3;
  ASSERT_EQ(::write(terminal, &interrupt, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::close(terminal);
  EXPECT_EQ(program.log(), "init 0\nprogram got 2\nprogram got 15\n");
}

TEST(Supervision, children_that_were_there_before_are_left_alone) {
  Supervised program("before");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    char ignored = 0;
    ::close(ends[1]);
    std::_Exit(::read(ends[0], &ignored, 1) == 0 ? 42 : 1);
  }
  ::close(ends[0]);
  // The clock by which processes are told apart goes in steps.
  const auto begun = start_time_of(other);
  while (Supervised::apart([&] { return start_time_of(::getpid()) == begun ? 1 : 0; }) == 1) {
  }
  EXPECT_EQ(program.run({"signal=15"}), 0) << "neither waited for";
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << "nor ended";
}

TEST(Supervision, after_the_supervisor_is_killed_no_context_is_made) {
  Supervised program("orphans");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int code = Supervised::apart([&] {
    ::close(ends[0]);
    return program.run({"context", "release", "kill-parent", "context", "exec", "init"});
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  ::close(ends[1]);
  char ignored = 0;
  EXPECT_EQ(::read(ends[0], &ignored, 1), 0) << "the end of the last process that has it";
  ::close(ends[0]);
  EXPECT_EQ(program.log(), "context 0\ncontext 800\n") << "and hooking again stops the process";
}

// A second driver has a library of its own, which reports as well.
TEST(Supervision, a_process_in_which_two_libraries_report_reaches_no_card) {
  Supervised program("twice");
  const std::string token = std::to_string(program.control.block().report_token);
  EXPECT_EQ(program.run({"init", "claim-hook=" + token, "context", "exit=0"}), 0);
  EXPECT_EQ(program.log(), fmt::format("init 0\nclaim {}\ncontext 800\n", EEXIST));
  EXPECT_EQ(program.counts.kept_off, 1U);
  ASSERT_EQ(program.told.size(), 1U);
  EXPECT_THAT(program.told[0], HasSubstr("it has loaded several drivers of CUDA"));
}

TEST(Supervision, the_block_of_another_exec_is_noticed) {
  Supervised program("mine");
  const Control foreign = Control::create().value();
  EXPECT_EQ(program.run({"set=DEMARC_CONTROL=" + foreign.value(), "init", "exit=0"}), 3);
  EXPECT_EQ(program.log(), "") << "it was stopped";
  EXPECT_EQ(program.counts.stopped, 1U);
  Supervised without("without");
  EXPECT_EQ(without.run({"set=DEMARC_CONTROL=/proc/1/fd/0#00", "init", "exit=0"}), 2);
  EXPECT_EQ(without.counts.stopped, 1U);
}

// What the library says before it ends a process.
TEST(Supervision, a_process_that_is_stopped_is_told_why) {
  const auto said = [](const std::string& name, const std::string& step, int code = 2) {
    Supervised program(name);
    std::vector<std::string> command{"sh", "-c", "exec \"$@\" 2>\"$0\"",
                                     program.log_path() + ".err"};
    for (const std::string& word : program.subject({step, "init"})) command.push_back(word);
    EXPECT_EQ(program.run_command(command), code) << step;
    EXPECT_EQ(program.counts.stopped, 1U) << step;
    return read_file(program.log_path() + ".err").value_or("");
  };
  EXPECT_THAT(said("no_driver", "set=DEMARC_LIBCUDA=/no/such/libcuda.so"),
              HasSubstr("stopped: the driver that called is not libcuda.so.1"));
  for (const char* none : {"set=DEMARC_LIBCUDA=", "set=DEMARC_LIBCUDA"}) {
    EXPECT_THAT(said("unnamed_driver", none), HasSubstr("that called is not libcuda.so.1")) << none;
  }
  const Control foreign = Control::create().value();
  EXPECT_THAT(said("foreign_block", "set=DEMARC_CONTROL=" + foreign.value(), 3),
              HasSubstr("no demarc exec watches it: its control block belongs to another program, "
                        "or cannot be read (Permission denied)"));
  EXPECT_THAT(said("profiled", "subscribe"),
              HasSubstr("another tool is that, such as a profiler (nsys, ncu, CUPTI, "
                        "torch.profiler); run the program without it"));
  EXPECT_THAT(said("no_block", "set=DEMARC_CONTROL=/proc/1/fd/0"),
              HasSubstr("expected /proc/PID/fd/N#TOKEN"));
}

TEST(Supervision, a_process_without_a_control_block_runs_on_and_is_kept_off) {
  Supervised program("unaddressed");
  EXPECT_EQ(program.run({"set=DEMARC_CONTROL", "context", "exit=6"}), 6);
  EXPECT_EQ(program.log(), "context 800\n");
  EXPECT_EQ(program.counts.kept_off, 1U);
  EXPECT_EQ(program.counts.stopped, 0U);
}

TEST(Supervision, another_tool_is_injected_too) {
  Supervised program("chained");
  EXPECT_EQ(program.run({"set=DEMARC_CHAINED_INJECTION=" + test::fake_libcuda().string(), "context",
                         "show=DEMARC_FAKE_INJECTED"}),
            0);
  EXPECT_EQ(program.log(), "context 0\nDEMARC_FAKE_INJECTED yes\n");
  Supervised alone("unchained");
  EXPECT_EQ(alone.run({"set=DEMARC_CHAINED_INJECTION=", "context", "show=DEMARC_FAKE_INJECTED"}),
            0);
  EXPECT_EQ(alone.log(), "context 0\nDEMARC_FAKE_INJECTED none\n");
  EXPECT_EQ(alone.run({"set=DEMARC_CHAINED_INJECTION=/no/such.so", "context"}), 0)
      << "one that is not there stops nobody";
  EXPECT_THAT(alone.log(), testing::Not(HasSubstr("injected"))) << "nor is another one asked";
  const std::string own = (test::build_dir() / "libdemarc_preload.so").string();
  EXPECT_EQ(alone.run({"set=DEMARC_CHAINED_INJECTION=" + own, "context"}), 0) << "it is in already";
}

TEST(Supervision, two_beside_each_other_do_not_mix) {
  Supervised first("first");
  Supervised second("second");
  auto running = first.start(first.subject({"context", "launch"}));
  ASSERT_TRUE(running) << running.error().message;
  EXPECT_EQ(Supervised::apart([&] {
              const bool good =
                  second.run({"context", "launch", "launch", "exec", "context"}) == 0 &&
                  second.counts.confined == 2 && second.launches() == 2;
              return good ? 0 : 1;
            }),
            0);
  EXPECT_EQ(running->wait(), 0);
  EXPECT_EQ(running->counts().confined, 1U);
  EXPECT_EQ(running->counts().contexts, 1U);
  EXPECT_EQ(first.launches(), 1U);
}

TEST(Supervision, without_a_supervisor_there_is_nobody_to_tell) {
  EXPECT_EQ(tell_supervisor(OwnCommand::present, 0), EBADF);
  // A program that a server of another time starts with the environment of a confined one.
  Supervised program("strays");
  const int code = Supervised::apart([&] {
    for (const auto& [name, value] : program.environment())
      ::setenv(name.c_str(), value.c_str(), 1);
    auto command = program.subject({"init", "exit=0"});
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    return 64;
  });
  EXPECT_EQ(code, 3);
  EXPECT_EQ(program.log(), "");
}

TEST(Supervision, what_cannot_be_started_is_refused_by_name) {
  Supervised program("missing");
  EXPECT_EQ(program.run_command({"/no/such/program"}), -1);
  EXPECT_THAT(program.told,
              ElementsAre("/no/such/program: cannot be started: No such file or directory"));
}

TEST(Supervision, a_kernel_that_does_not_show_calls_is_refused) {
  // Below a supervisor the kernel refuses a second one.
  Supervised inner("inner");
  const int code = Supervised::apart([&] {
    sigset_t none;
    ::sigemptyset(&none);
    if (install_filter() < 0) return 64;
    const int input = ::fcntl(STDIN_FILENO, F_GETFD);
    if (inner.run_command({"true"}) != -2) return 1;
    if (::fcntl(STDIN_FILENO, F_GETFD) != input) return 3;  // no file of this process is closed
    return inner.told.at(0).find("watches it already") != std::string::npos ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

// Without the rights of root the kernel wants a promise first.
TEST(Supervision, programs_lose_the_rights_of_setuid_only_where_the_kernel_asks_for_it) {
  Supervised program("promise");
  const auto promises = [&program](const char* wanted) {
    return program.run_command(
        {"grep", "-q", std::string("^NoNewPrivs:.") + wanted, "/proc/self/status"});
  };
  if (::geteuid() == 0) {
    EXPECT_EQ(promises("0"), 0);
    EXPECT_EQ(Supervised::apart([&] {
                constexpr uid_t nobody = 65534;
                return ::setresuid(nobody, nobody, nobody) == 0 ? promises("1") : 64;
              }),
              0);
  } else {
    EXPECT_EQ(promises("1"), 0);
  }
}

TEST(Supervision, signals_that_came_too_late_do_not_end_this_process) {
  EXPECT_EQ(Supervised::apart([] {
              const auto signals = SignalFile::open();
              ::raise(SIGTERM);
              ::raise(SIGPIPE);
              return 0;
            }),
            0);
  EXPECT_EQ(Supervised::apart([] {
              {
                const auto signals = SignalFile::open();
                ::raise(SIGTERM);
                ::raise(SIGPIPE);
              }
              return 0;
            }),
            0);
}

TEST(Supervision, ends_with_this_process_as_it_was) {
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, nullptr, &before);
  Supervised program("restored");
  EXPECT_EQ(program.run_command({"true"}), 0);
  sigset_t after;
  ::sigprocmask(SIG_BLOCK, nullptr, &after);
  EXPECT_EQ(::sigismember(&after, SIGTERM), ::sigismember(&before, SIGTERM));
  int reaper = -1;
  ::prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0);
  EXPECT_EQ(reaper, 0);
}

}  // namespace
}  // namespace demarc::cuda
