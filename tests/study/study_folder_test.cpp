// Tests that what a killed study leaves behind is taken away, and nothing else.
#include "gpu/study_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "gpu/process_stage.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder for temporary files of its own, and a control program of MPS that says what it is told.
class Remains : public testing::Test {
 protected:
  void SetUp() override {
    folder = test::fresh_folder("remains");
    fs::create_directories(folder / "bin");
    fs::create_directories(folder / "tmp");
    write_control("");
    path_before = ::getenv("PATH");
    ::setenv("PATH", ((folder / "bin").string() + ":" + path_before).c_str(), 1);
    ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_before.c_str(), 1);
    ::unsetenv("TMPDIR");
  }
  void write_control(const std::string& more) {
    const fs::path program = folder / "bin" / "nvidia-cuda-mps-control";
    ASSERT_TRUE(write_file(
        program.string(),
        fmt::format(
            "#!/bin/sh\n{}\nif [ \"$1\" = -d ]; then echo \"start $CUDA_VISIBLE_DEVICES\"; "
            "else read what; echo \"$what\"; fi | sed \"s|$| in $CUDA_MPS_PIPE_DIRECTORY|\" "
            ">> {}\n",
            more, (folder / "told").string())));
    fs::permissions(program, fs::perms::owner_all);
  }
  std::string told() { return read_file((folder / "told").string()).value_or(""); }

  // What a study leaves that was killed: its folder, an MPS daemon, and a marked process.
  fs::path leave(const std::string& name) {
    const fs::path left = folder / "tmp" / name;
    fs::create_directories(left / "mps");
    age(left);
    return left;
  }
  static void age(const fs::path& left) {
    const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    ::utimensat(AT_FDCWD, left.c_str(), long_ago, 0);
  }
  static Process marked(const std::string& mark, const std::string& line = "exec sleep 1000") {
    ProcessOptions options;
    options.set = {{"DEMARC_STUDY", mark}};
    return std::move(*Process::spawn({"/bin/sh", "-c", line}, options));
  }

  fs::path folder;
  std::string path_before;
};

TEST_F(Remains, of_a_study_that_was_killed_are_taken_away_by_the_next) {
  const fs::path left = leave("demarc-study-gone00");
  auto client = marked(left.string());
  auto server = marked((left / "mps").string());
  auto other = marked(left.string() + "x");
  const auto next = StudyFolder::make();
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(client.wait(-1)->signal, SIGTERM);
  EXPECT_EQ(server.wait(-1)->signal, SIGTERM);
  EXPECT_TRUE(other.running());
  EXPECT_EQ(told(), fmt::format("quit in {}\n", (left / "mps").string()));
}

// A server has time to end the programs in its parts.
TEST_F(Remains, include_a_server_of_leases_and_what_runs_in_its_parts) {
  const fs::path left = leave("demarc-study-gone03");
  fs::create_directories(left / "leases");
  age(left);
  const fs::path ready = folder / "serves";
  auto program = marked((left / "leases").string());
  auto server =
      marked((left / "leases").string(), "trap 'sleep 0.3; exit 0' TERM; : > " + ready.string() +
                                             "; while :; do sleep 0.01; done");
  while (!fs::exists(ready)) std::this_thread::yield();
  take_away_remains(0.03);
  EXPECT_EQ(program.wait(-1)->signal, SIGTERM);
  EXPECT_EQ(server.wait(-1)->exit_code, 0) << "it was not killed";
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(Remains, leases_end_before_the_rest_of_a_study) {
  const auto study = StudyFolder::make().value();
  fs::create_directories(study->lease_folder());
  ProcessOptions options;
  options.set = study->lease_environment();
  auto server = Process::spawn({"/bin/sleep", "1000"}, options).value();
  auto other = marked(study->path().string());
  study->end_leases();
  EXPECT_EQ(server.wait(-1)->signal, SIGTERM);
  EXPECT_FALSE(fs::exists(study->lease_folder()));
  EXPECT_TRUE(other.running());
}

TEST_F(Remains, are_processes_with_the_whole_mark_under_its_own_name_wherever_it_stands) {
  const fs::path left = leave("demarc-study-gone02");
  const auto with = [](const std::vector<std::string>& entries) {
    std::vector<std::string> argv{"/usr/bin/env", "-i"};
    argv.insert(argv.end(), entries.begin(), entries.end());
    argv.insert(argv.end(), {"/bin/sleep", "1000"});
    auto process = std::move(*Process::spawn(argv, {}));
    const std::string environment = fmt::format("/proc/{}/environ", process.pid());
    while (!read_file(environment)->starts_with(entries.front())) std::this_thread::yield();
    return process;
  };
  const std::string mark = "DEMARC_STUDY=" + left.string();
  auto first = with({mark, "A=1"});
  auto last = with({"A=1", mark});
  auto both = with({"MY_" + mark, mark + "x", mark});
  auto other = with({"MY_" + mark, "A=" + mark});
  take_away_remains(60);
  for (Process* one : {&first, &last, &both}) EXPECT_EQ(one->wait(-1)->signal, SIGTERM);
  EXPECT_TRUE(other.running());
}

TEST_F(Remains, that_heed_no_signal_are_killed) {
  const fs::path left = leave("demarc-study-gone01");
  const fs::path ready = folder / "ready";
  auto stubborn = marked(left.string(),
                         "trap '' TERM; : > " + ready.string() + "; while :; do sleep 0.01; done");
  while (!fs::exists(ready)) std::this_thread::yield();
  take_away_remains(0.03);
  EXPECT_EQ(stubborn.wait(-1)->signal, SIGKILL);
}

TEST_F(Remains, of_a_study_that_lives_or_begins_are_left_alone) {
  const auto living = StudyFolder::make();
  ASSERT_TRUE(living);
  age((*living)->path());
  const fs::path young = folder / "tmp" / "demarc-study-young0";
  fs::create_directory(young);
  take_away_remains(60);
  EXPECT_TRUE(fs::exists((*living)->path()));
  EXPECT_TRUE(fs::exists(young));
}

TEST_F(Remains, are_no_other_folders_files_or_links) {
  const fs::path other = leave("demarc-other");
  const fs::path target = leave("target");
  fs::create_symlink(target, folder / "tmp" / "demarc-study-link00");
  ASSERT_TRUE(write_file((folder / "tmp" / "demarc-study-file00").string(), ""));
  take_away_remains(60);
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(target / "mps"));
  EXPECT_TRUE(fs::exists(folder / "tmp" / "demarc-study-file00"));
}

TEST_F(Remains, of_a_study_that_ends_are_gone_with_it) {
  fs::path path;
  auto process = std::optional<Process>();
  {
    const auto own = StudyFolder::make();
    ASSERT_TRUE(own);
    path = (*own)->path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    ASSERT_EQ((*own)->mark().size(), 1U);
    process.emplace(marked((*own)->mark().front().second));
    EXPECT_TRUE(process->running());
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(process->wait(-1)->signal, SIGTERM);
  EXPECT_EQ(told(), "");  // there was no daemon
}

// While a program is being started, the kernel shows no environment of it.
TEST_F(Remains, of_a_study_that_ends_are_also_what_it_was_just_starting) {
  auto process = std::optional<Process>();
  {
    const auto own = StudyFolder::make();
    ASSERT_TRUE(own);
    const std::string mark = (*own)->mark().front().second;
    process.emplace(std::move(*Process::spawn(
        {"/usr/bin/env", "-i", "/bin/sh", "-c",
         fmt::format("/bin/sleep 0.05; DEMARC_STUDY={} exec /bin/sleep 1000", mark)},
        {})));
    const std::string environment = fmt::format("/proc/{}/environ", process->pid());
    while (!read_file(environment)->empty()) std::this_thread::yield();
  }
  EXPECT_EQ(process->wait(-1)->signal, SIGTERM);
}

TEST_F(Remains, the_daemon_sees_one_card_and_quits_with_its_stage) {
  const auto own = StudyFolder::make();
  ASSERT_TRUE(own);
  const std::string mps = (*own)->mps_folder().string();
  {
    const auto daemon = MpsDaemon::start(*own, "GPU-7");
    ASSERT_TRUE(daemon) << daemon.error().message;
    EXPECT_EQ(told(), "start GPU-7 in " + mps + "\n");
    EXPECT_EQ((*daemon)->environment().front(),
              (std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", mps)));
  }
  EXPECT_EQ(told(), "start GPU-7 in " + mps + "\nquit in " + mps + "\n");
  EXPECT_FALSE(fs::exists(mps));
}

// The daemon belongs to the study, and stays in its group; who tells it to quit is not to be ended
// with it, and has nothing to say.
TEST_F(Remains, the_daemon_carries_a_mark_of_its_own_and_its_control_program_none) {
  write_control(
      fmt::format("echo \"$1:$DEMARC_STUDY:$CUDA_MPS_LOG_DIRECTORY:$(cut -d' ' -f5 "
                  "/proc/$$/stat)\" >> {}/seen; echo noise >&2",
                  folder.string()));
  const auto own = StudyFolder::make();
  ASSERT_TRUE(own);
  const std::string mps = (*own)->mps_folder().string();
  testing::internal::CaptureStderr();
  {
    const auto daemon = MpsDaemon::start(*own, "GPU-7");
    ASSERT_TRUE(daemon) << daemon.error().message;
    EXPECT_EQ((*daemon)->environment().back(),
              (std::pair<std::string, std::string>("CUDA_MPS_LOG_DIRECTORY", mps)));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "noise\n");
    testing::internal::CaptureStderr();
    (*daemon)->end_clients_below(1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const std::string seen = read_file((folder / "seen").string()).value();
  EXPECT_THAT(seen,
              testing::StartsWith(fmt::format("-d:{0}:{0}:{1}\n:{0}:{0}:", mps, ::getpgrp())));
  EXPECT_THAT(seen, HasSubstr(fmt::format("\n::{}:", mps)));
}

TEST_F(Remains, clients_below_a_command_are_ended_by_the_daemon_and_no_others) {
  write_control(fmt::format(
      "if [ \"$1\" != -d ]; then read what; echo \"$what\" >> {0}/asked; case $what in "
      "get_server_list) echo 77;; 'get_client_list 77') cat {0}/clients;; esac; exit; fi",
      folder.string()));
  const auto own = StudyFolder::make();
  ASSERT_TRUE(own);
  const auto daemon = MpsDaemon::start(*own, "GPU-7");
  ASSERT_TRUE(daemon) << daemon.error().message;
  const fs::path ready = folder / "ready";
  const auto command = marked(
      "x", fmt::format("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", ready.string()));
  const auto other = marked("x");
  while (!fs::exists(ready)) std::this_thread::yield();
  const std::string client = read_file(ready.string()).value();
  ASSERT_TRUE(
      write_file((folder / "clients").string(), fmt::format("{}\n{}", other.pid(), client)));
  (*daemon)->end_clients_below(command.pid());
  EXPECT_EQ(read_file((folder / "asked").string()).value(),
            "get_server_list\nget_client_list 77\nterminate_client 77 " + client);
}

TEST_F(Remains, a_daemon_that_does_not_start_is_a_missing_capability_in_words) {
  const auto own = StudyFolder::make();
  ASSERT_TRUE(own);
  write_control("exit 1");
  const auto failed = MpsDaemon::start(*own, "GPU-7");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(),
            (Error{ErrorKind::missing_capability,
                   "mps: 'nvidia-cuda-mps-control -d' does not start: exit code 1"}));
  fs::remove(folder / "bin" / "nvidia-cuda-mps-control");
  EXPECT_THAT(MpsDaemon::start(*own, "GPU-7").error().message,
              HasSubstr("the NVIDIA driver brings it"));
}

TEST_F(Remains, need_a_folder_that_can_be_written) {
  const auto own = StudyFolder::make();
  ASSERT_TRUE(own);
  ASSERT_TRUE(write_file((*own)->mps_folder().string(), "a file"));
  EXPECT_THAT(MpsDaemon::start(*own, "GPU-7").error().message, HasSubstr("mps: cannot make "));
  for (const auto& [place, words] :
       {std::pair("/no/such/folder", "TMPDIR: there is no folder for temporary files: "),
        std::pair("/proc", "cannot make a folder like /proc/demarc-study-")}) {
    ::setenv("TMPDIR", place, 1);
    const auto made = StudyFolder::make();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(made.error().message, HasSubstr(words));
    take_away_remains(60);
  }
}

// As `nohup` starts it.
TEST_F(Remains, of_a_study_that_ignores_a_signal_stay_until_one_that_it_heeds) {
  const fs::path name = folder / "name";
  const pid_t study = ::fork();
  if (study == 0) {
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGINT, SIG_DFL);  // who starts the tests in the background ignores it
    const auto own = StudyFolder::make();
    if (!own) ::_exit(1);
    take_away_on_signals();
    ::raise(SIGHUP);
    if (!write_file(name.string(), (*own)->path().string())) ::_exit(1);
    while (true) ::pause();
  }
  int status = 0;
  while (!fs::exists(name)) {
    ASSERT_EQ(::waitpid(study, &status, WNOHANG), 0) << "it has ended";
    std::this_thread::yield();
  }
  const std::string path = read_file(name.string()).value();
  EXPECT_TRUE(fs::exists(path));
  ::kill(study, SIGINT);
  ::waitpid(study, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  EXPECT_FALSE(fs::exists(path));
}

TEST(Signals, the_first_only_asks_a_study_to_end_and_the_second_ends_it) {
  for (const int number : {SIGINT, SIGTERM}) {
    const pid_t study = ::fork();
    if (study == 0) {
      ::signal(number, SIG_DFL);
      std::atomic<int> told = 0;
      end_gently_on_signals([&] { ++told; });
      if (asked_to_end() != 0) ::_exit(1);
      ::raise(number);
      while (asked_to_end() == 0) std::this_thread::yield();
      if (asked_to_end() != number) ::_exit(2);
      while (told == 0) std::this_thread::yield();
      ::raise(number);
      while (true) ::pause();
    }
    int status = 0;
    ::waitpid(study, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
  }
}

TEST(Signals, of_a_terminal_that_goes_away_end_a_study_at_once) {
  const pid_t study = ::fork();
  if (study == 0) {
    ::signal(SIGHUP, SIG_DFL);
    end_gently_on_signals({});
    ::raise(SIGHUP);
    while (true) ::pause();
  }
  int status = 0;
  ::waitpid(study, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP) << status;
}

TEST_F(Remains, are_taken_away_before_a_signal_ends_the_study) {
  const fs::path name = folder / "name";
  const pid_t study = ::fork();
  if (study == 0) {
    const auto own = StudyFolder::make();
    if (!own) ::_exit(1);
    take_away_on_signals();
    std::vector<Process> processes;
    processes.push_back(marked((*own)->mark().front().second));
    const auto daemon = MpsDaemon::start(*own, "GPU-7");
    const auto written = write_file(
        name.string(), fmt::format("{} {}", (*own)->path().string(), processes.front().pid()));
    if (!daemon || !written) ::_exit(1);
    while (true) ::pause();
  }
  while (!fs::exists(name)) std::this_thread::yield();
  const std::string said = read_file(name.string()).value();
  ::kill(study, SIGTERM);
  int status = 0;
  ::waitpid(study, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  const std::string path = said.substr(0, said.find(' '));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THAT(told(), HasSubstr("quit in " + path + "/mps"));
  const auto left = read_file(fmt::format("/proc/{}/stat", said.substr(said.find(' ') + 1)));
  EXPECT_TRUE(!left || left->find(") Z ") != std::string::npos);
}

}  // namespace
}  // namespace demarc::study
