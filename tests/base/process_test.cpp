// Tests that children end with their whole group, and that their output and exit are known.
#include "demarc/base/process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::vector<std::string> shell(const std::string& line) {
  return {"sh", "-c", line};
}

ProcessOptions kept(std::size_t bytes = 4096) {
  ProcessOptions options;
  options.output = options.error = ChildStream::kept;
  options.kept_bytes = bytes;
  return options;
}

// What a shell line writes, once it has ended.
std::string said(const std::string& line, const ProcessOptions& options = kept()) {
  auto process = Process::spawn(shell(line), options);
  if (!process) return process.error().message;
  process->wait(-1);
  return process->kept();
}

// Gone, or waiting to be collected by a parent that is not us.
bool gone(pid_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/stat");
  return !status || status->find(") Z ") != std::string::npos;
}
bool gone_soon(pid_t pid) {
  for (int i = 0; i < 1000 && !gone(pid); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return gone(pid);
}

TEST(Process, exit_codes_and_signals_are_told_apart) {
  EXPECT_EQ(run_process(shell("exit 7"), {})->exit_code, 7);
  EXPECT_EQ(run_process(shell("exit 7"), {})->words(), "exit code 7");
  const auto killed = run_process(shell("kill -9 $$"), {});
  EXPECT_EQ(killed->exit_code, 137);
  EXPECT_EQ(killed->signal, 9);
  EXPECT_EQ(killed->words(), "signal 9 (Killed)");
}

TEST(Process, output_and_error_stand_in_one_text_of_which_the_last_bytes_are_kept) {
  EXPECT_EQ(said("echo one; echo two >&2; echo three"), "one\ntwo\nthree\n");
  EXPECT_EQ(said("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done", kept(10)),
            "line 2999\n");
}

// More at once than is taken at once.
TEST(Process, one_that_writes_much_at_once_is_read_to_its_end) {
  ProcessOptions options = kept(5);
  options.before_exec = [] { ::fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20); };
  EXPECT_EQ(
      said("dd if=/dev/zero bs=1000000 count=1 2>/dev/null; sleep 0.01; echo; echo end", options),
      "\nend\n");
}

TEST(Process, variables_are_set_replaced_and_taken_away_in_the_child_alone) {
  ::setenv("DEMARC_TEST_A", "ours", 1);
  ::setenv("DEMARC_TEST_B", "ours", 1);
  ProcessOptions options = kept();
  options.set = {{"DEMARC_TEST_A", "new one"}, {"DEMARC_TEST_C", "x=y"}};
  options.unset = {"DEMARC_TEST_B"};
  EXPECT_EQ(said("echo $DEMARC_TEST_A,$DEMARC_TEST_B,$DEMARC_TEST_C", options), "new one,,x=y\n");
  EXPECT_STREQ(::getenv("DEMARC_TEST_A"), "ours");
  ::unsetenv("DEMARC_TEST_A");
  ::unsetenv("DEMARC_TEST_B");
}

TEST(Process, pipes_reach_its_input_and_output) {
  ProcessOptions options;
  options.input = options.output = ChildStream::pipe;
  auto process = Process::spawn({"head", "-c", "3"}, options);
  ASSERT_TRUE(process);
  ASSERT_EQ(::write(process->input(), "abc", 3), 3);
  char text[8] = {};
  ASSERT_EQ(::read(process->output(), text, sizeof text), 3);
  EXPECT_STREQ(text, "abc");
  EXPECT_EQ(process->wait(-1)->exit_code, 0);
}

TEST(Process, a_descriptor_is_kept_open_only_where_asked) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string line = "echo here >&" + std::to_string(ends[1]);
  EXPECT_NE(run_process(shell(line + " 2>/dev/null"), {})->exit_code, 0);
  ProcessOptions options;
  options.keep_open = {ends[1]};
  EXPECT_EQ(run_process(shell(line), options)->exit_code, 0);
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, sizeof text), 5);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Process, what_cannot_be_started_is_named_and_leaves_nothing_to_wait_for) {
  for (const std::string program : {"/no/such/program", "no-such-program", "/dev/null"}) {
    const auto process = Process::spawn({program}, {});
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(process.error().message, HasSubstr("cannot start '" + program + "': "));
  }
  EXPECT_THAT(Process::spawn({"/no/such/program"}, {}).error().message,
              EndsWith("No such file or directory"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_FALSE(Process::spawn({}, {}));
}

TEST(Process, waiting_has_a_limit) {
  auto process = Process::spawn({"sleep", "1000"}, {});
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->wait(0.01));
  EXPECT_TRUE(process->running());
  EXPECT_EQ(process->end(0).signal, SIGTERM);
  EXPECT_FALSE(process->running());
  const auto late = run_process({"sleep", "1000"}, {}, 0.01);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::check_failed);
}

TEST(Process, ends_when_its_pipe_is_closed_without_a_signal) {
  ProcessOptions options;
  options.input = ChildStream::pipe;
  auto process = Process::spawn(shell("read x; exit 5"), options);
  EXPECT_EQ(process->end(60).exit_code, 5);
}

TEST(Process, one_that_ignores_the_signal_is_killed) {
  auto process = Process::spawn(shell("trap '' TERM; echo; while :; do sleep 0.01; done"), kept());
  while (process->kept().empty()) std::this_thread::yield();
  EXPECT_EQ(process->end(0, 0.02).signal, SIGKILL);
}

TEST(Process, its_group_ends_with_it_even_if_it_ended_first) {
  auto process = Process::spawn(shell("sleep 1000 & echo $!"), kept());
  ASSERT_EQ(process->wait(-1)->exit_code, 0);
  const pid_t left = std::stoi(process->kept());
  EXPECT_FALSE(gone(left));
  process->end(0);
  EXPECT_TRUE(gone_soon(left));
}

// It left the group and holds the other end of the pipe: a reader that waited for the end of what
// it writes would wait for ever.
TEST(Process, one_that_left_its_group_is_not_waited_for_and_what_it_wrote_is_kept) {
  auto process = Process::spawn(shell("setsid sh -c 'echo $$; exec sleep 1000' & wait"), kept());
  while (!process->kept().ends_with("\n")) std::this_thread::yield();
  const pid_t escaped = std::stoi(process->kept());
  process->end(0);
  EXPECT_FALSE(gone(escaped));
  EXPECT_EQ(process->kept(), std::to_string(escaped) + "\n");
  ::kill(escaped, SIGKILL);
  EXPECT_TRUE(gone_soon(escaped));
}

std::vector<std::string> descriptors() {
  std::vector<std::string> open;
  for (int fd = 0; fd < 64; ++fd) {
    struct stat file {};
    if (::fstat(fd, &file) != 0) continue;
    open.push_back(std::to_string(fd) + ": " + std::to_string(file.st_ino));
  }
  return open;
}

TEST(Process, neither_takes_nor_leaves_a_descriptor_of_ours) {
  const auto before = descriptors();
  ASSERT_THAT(before.at(0), testing::StartsWith("0: "));
  for (const ChildStream stream :
       {ChildStream::inherited, ChildStream::null, ChildStream::pipe, ChildStream::kept}) {
    ProcessOptions options;
    options.input = stream == ChildStream::kept ? ChildStream::null : stream;
    options.output = options.error = stream;
    if (stream == ChildStream::pipe) options.error = ChildStream::null;
    EXPECT_EQ(run_process({"true"}, options)->exit_code, 0);
    EXPECT_EQ(descriptors(), before) << static_cast<int>(stream);
  }
}

TEST(Process, an_object_that_goes_takes_the_child_along) {
  pid_t pid = 0;
  {
    auto process = Process::spawn({"sleep", "1000"}, {});
    auto other = Process::spawn({"sleep", "1000"}, {});
    pid = process->pid();
    *process = std::move(*other);
    EXPECT_TRUE(gone(pid));
    pid = process->pid();
    EXPECT_FALSE(gone(pid));
  }
  EXPECT_TRUE(gone(pid));
}

TEST(Process, begins_with_no_signal_blocked_and_a_broken_pipe_not_ignored) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(run_process(shell("kill -TERM $$; exit 0"), {})->signal, SIGTERM);
  EXPECT_EQ(run_process(shell("kill -PIPE $$; exit 0"), {})->signal, SIGPIPE);
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Process, leads_a_group_of_its_own_unless_asked_not_to) {
  auto own = Process::spawn({"sleep", "1000"}, {});
  EXPECT_EQ(::getpgid(own->pid()), own->pid());
  ProcessOptions options;
  options.own_group = false;
  auto shared = Process::spawn({"sleep", "1000"}, options);
  EXPECT_EQ(::getpgid(shared->pid()), ::getpgrp());
}

TEST(Process, the_hook_runs_in_the_child_before_the_program) {
  ProcessOptions options = kept();
  options.before_exec = [] { ::umask(0123); };
  EXPECT_EQ(said("umask", options), "0123\n");
}

TEST(Process, a_death_signal_ends_it_with_the_thread_that_started_it) {
  std::optional<Process> process;
  std::thread([&] {
    ProcessOptions options;
    options.death_signal = SIGHUP;
    process.emplace(*Process::spawn({"sleep", "1000"}, options));
    EXPECT_FALSE(process->wait(0.01));
  }).join();
  EXPECT_EQ(process->wait(-1)->signal, SIGHUP);
}

TEST(Process, one_that_somebody_else_waited_for_has_failed) {
  auto process = Process::spawn({"true"}, {});
  ASSERT_EQ(::waitpid(process->pid(), nullptr, 0), process->pid());
  EXPECT_EQ(process->wait(-1)->words(), "exit code 1");
}

TEST(Process, a_program_is_found_as_a_shell_finds_it) {
  EXPECT_EQ(find_program("./x/y"), "./x/y");
  EXPECT_EQ(find_program("no-such-program"), "");
  EXPECT_THAT(find_program("sh"), EndsWith("/sh"));
  const auto folder = test::fresh_folder("path");
  ASSERT_TRUE(write_file((folder / "mine").string(), "not executable"));
  const std::string before = ::getenv("PATH");
  ::setenv("PATH", (folder.string() + ":" + before).c_str(), 1);
  EXPECT_EQ(find_program("mine"), "");
  std::filesystem::permissions(folder / "mine", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_program("mine"), (folder / "mine").string());
  std::filesystem::create_directory(folder / "sh");
  EXPECT_THAT(find_program("sh"), EndsWith("bin/sh")) << "a folder is not a program";
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace demarc
