// The daemon of MPS is started, told of and ended; a script stands in for it.
#include "mps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "demarc/base/files.hpp"
#include "fork_at_rest.hpp"
#include "mps_processes.hpp"
#include "not_run.hpp"
#include "paths.hpp"
#include "staying_process.hpp"

namespace demarc::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WithMps : public testing::Test {
 protected:
  void TearDown() override {
    ::setenv("PATH", path.c_str(), 1);
    kill_mps(own, 5);
    kill_mps(others, 5);
  }
  void install(const std::string& script) const {
    const auto program = folder / "nvidia-cuda-mps-control";
    ASSERT_TRUE(write_file(program, "#!/bin/sh\nf=" + folder.string() + "\n" + script));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  }
  // Notes what it is asked.
  void install_answers(int exit_code) const {
    install(fmt::format(R"(
if [ "$1" = -d ]; then echo "start $CUDA_MPS_PIPE_DIRECTORY $CUDA_VISIBLE_DEVICES" >> "$f/log"; exit {}; fi
read word; echo "$word $CUDA_MPS_PIPE_DIRECTORY" >> "$f/log"
case "$word" in get_server_list) echo 77;; "get_client_list 77") echo 5; echo 6; echo 7;;
terminate_client*) cat "$f/terminated";; esac
exit $(cat "$f/code")
)",
                        exit_code));
    answer("0", 0);
  }
  // A process that stays, as the daemon does, and ends at "quit" if it ends by that.
  void install_daemon(bool quits) const {
    install(fmt::format(R"(
d=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
-d) "$0" --daemon </dev/null >/dev/null 2>&1 & while [ ! -s "$d/pid" ]; do sleep 0.01; done; exit 0;;
--daemon) echo $$ > "$d/pid"; while [ ! -e "$d/quit" ]; do sleep 0.01; done; exit 0;;
esac
read word; echo "$word" >> "$f/log"
[ "$word" = quit ] && {} "$d/quit"
exit 0
)",
                        quits ? "touch" : "true"));
  }
  // From now on: to terminate_client in words, to everything by its exit code.
  void answer(const std::string& terminated, int exit_code) const {
    ASSERT_TRUE(write_file(folder / "terminated", terminated + "\n"));
    ASSERT_TRUE(write_file(folder / "code", std::to_string(exit_code)));
  }
  [[nodiscard]] std::string log() const { return read_file(folder / "log").value(); }
  [[nodiscard]] MpsPlan plan(MpsUse use = MpsUse::on) {
    return {use, own, "GPU-1", [this](const std::string& line) { told.push_back(line); }, 0.5};
  }
  // Processes that MPS may know by these numbers, of which all live.
  static std::vector<WorkTarget> living(const std::vector<pid_t>& numbers) {
    std::vector<WorkTarget> targets;
    for (const pid_t number : numbers) {
      targets.push_back(
          {number, OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)))});
    }
    return targets;
  }
  static pid_t daemon_of(const std::string& place) {
    return std::stoi(read_file(place + "/pid").value());
  }
  static std::string words_of(const Result<void>& ended) {
    return ended ? "ended" : ended.error().message;
  }
  static bool readable(int file) {
    pollfd item{file, POLLIN, 0};
    return ::poll(&item, 1, 0) > 0;
  }

  std::string path = std::getenv("PATH");
  std::filesystem::path folder = test::fresh_folder("mps");
  std::string own = folder / "own";
  std::string others = folder / "others";
  std::vector<std::string> told;
};

TEST_F(WithMps, programs_find_the_daemon_until_the_server_ends) {
  install_answers(0);
  for (const MpsUse use : {MpsUse::on, MpsUse::automatic}) {
    std::filesystem::remove(folder / "log");
    {
      const auto mps = Mps::start(plan(use)).value();
      EXPECT_EQ(mps->folder(), own);
      EXPECT_EQ(log(), "start " + own + " GPU-1\n");
      EXPECT_TRUE(std::filesystem::is_directory(own));
    }
    EXPECT_THAT(log(), HasSubstr("\nquit " + own + "\n"));
    EXPECT_FALSE(std::filesystem::exists(own));
  }
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(WithMps, work_of_chosen_clients_is_ended) {
  install_answers(0);
  const auto mps = Mps::start(plan()).value();
  const auto results = mps->end_work_of(living({7, 5, 8}));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0]);
  EXPECT_TRUE(results[1]);
  EXPECT_THAT(words_of(results[2]), HasSubstr("MPS has no client with the number 8"));
  EXPECT_EQ(log(), "start " + own + " GPU-1\nget_server_list " + own + "\nget_client_list 77 " +
                       own + "\nterminate_client 77 5 " + own + "\nterminate_client 77 7 " + own +
                       "\n");
}

TEST_F(WithMps, the_number_of_a_process_that_has_ended_is_not_told) {
  install_answers(0);
  const auto mps = Mps::start(plan()).value();
  const pid_t process = test::fork_at_rest();
  if (process == 0) ::_exit(0);
  std::vector<WorkTarget> targets;
  targets.push_back({7, OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)))});
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED), 0);
  EXPECT_FALSE(targets[0].lives());
  EXPECT_THAT(words_of(mps->end_work_of(targets)[0]), HasSubstr("no client with the number 7"));
  EXPECT_THAT(log(), testing::Not(HasSubstr("terminate_client")));
}

// What else a daemon says, seen on driver 580.
TEST_F(WithMps, work_of_which_the_daemon_does_not_say_that_it_ended_is_an_error) {
  install_answers(0);
  const auto mps = Mps::start(plan()).value();
  const auto refusal = [&] { return words_of(mps->end_work_of(living({5, 7}))[0]); };
  answer("Invalid process 5!\n1", 0);
  EXPECT_EQ(
      refusal(),
      "the daemon of MPS answers 'terminate_client 77 5' with 'Invalid process 5!\n1\n'; 0 was "
      "expected");
  EXPECT_THAT(log(), HasSubstr("terminate_client 77 7")) << "the others are ended all the same";
  answer("", 0);
  EXPECT_THAT(refusal(), HasSubstr("with '\n'; 0 was expected"));
  answer("0", 1);
  EXPECT_EQ(refusal(), "the daemon of MPS does not answer 'get_server_list': exit code 1");
}

TEST_F(WithMps, a_daemon_that_hangs_is_waited_for_no_longer_once_the_server_is_in_a_hurry) {
  install("[ \"$1\" = -d ] && exit 0\nread word; [ \"$word\" = quit ] || sleep 1000\n");
  const auto mps = Mps::start(plan()).value();
  mps->hurry(0);
  EXPECT_THAT(words_of(mps->end_work_of(living({5}))[0]),
              HasSubstr("does not answer 'get_server_list': no word in"));
}

TEST_F(WithMps, off_means_that_nothing_is_started) {
  install_answers(0);
  {
    const auto mps = Mps::start(plan(MpsUse::off)).value();
    EXPECT_EQ(mps->folder(), "");
    EXPECT_EQ(mps->process_file(), -1);
    EXPECT_TRUE(mps->end_work_of(living({5}))[0]);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "log")) << "nor is a daemon told to quit";
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(WithMps, a_daemon_that_does_not_start_is_refused_in_its_own_words) {
  install("[ \"$1\" = -d ] && { echo no card; echo of this name >&2; exit 3; }\n");
  for (const MpsUse use : {MpsUse::on, MpsUse::automatic}) {
    const auto refused = Mps::start(plan(use));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(refused.error().message,
              "mps: 'nvidia-cuda-mps-control -d' does not start: exit code 3: no card\n"
              "of this name");
    EXPECT_FALSE(std::filesystem::exists(own));
  }
}

TEST_F(WithMps, a_folder_that_cannot_be_made_is_told) {
  install_answers(0);
  ASSERT_TRUE(write_file(own, ""));
  auto inside = plan();
  inside.folder = own + "/folder";
  const auto refused = Mps::start(inside);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            fmt::format("mps: cannot make {}: Not a directory", inside.folder));
}

TEST_F(WithMps, a_machine_without_it_has_none_and_says_so_unless_it_must) {
  ::setenv("PATH", folder.c_str(), 1);
  EXPECT_EQ(Mps::start(plan(MpsUse::automatic)).value()->folder(), "");
  EXPECT_THAT(told, ElementsAre(HasSubstr("without MPS: 'nvidia-cuda-mps-control' is not in PATH. "
                                          "Programs of the tenants take turns")));
  EXPECT_THAT(Mps::start(plan()).error().message, HasSubstr("the NVIDIA driver brings it"));
}

TEST_F(WithMps, what_a_killed_server_left_is_ended_before_the_next_one_starts) {
  // It refuses to be started twice, as NVIDIA's does.
  install(R"(
d=$CUDA_MPS_PIPE_DIRECTORY
[ "$1" = -d ] && { [ -e $d/here ] && { echo An instance is already running; exit 1; }; touch $d/here; exit 0; }
read word; [ "$word" = quit ] && rm $d/here
)");
  const auto left = Mps::start(plan()).value();
  ASSERT_TRUE(std::filesystem::exists(own + "/here"));
  EXPECT_TRUE(Mps::start(plan()));
}

TEST_F(WithMps, a_daemon_that_a_killed_server_left_and_that_does_not_quit_is_killed) {
  install_daemon(false);
  const auto left = Mps::start(plan()).value();
  ASSERT_GE(left->process_file(), 0);
  EXPECT_THAT(told, IsEmpty());
  const auto mps = Mps::start(plan()).value();
  EXPECT_TRUE(readable(left->process_file()));
  EXPECT_THAT(told, ElementsAre("mps: the daemon of a server that was killed still ran, and was "
                                "killed"));
  const auto found = mps_processes_of(own);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), daemon_of(own));
}

TEST_F(WithMps, the_end_of_the_daemon_can_be_waited_for) {
  install_daemon(true);
  const auto mps = Mps::start(plan()).value();
  const auto all = mps_processes_of(own);
  ASSERT_FALSE(all.empty());
  ASSERT_EQ(all.front(), daemon_of(own)) << "not one of its children";
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size()) << "each once";
  EXPECT_FALSE(readable(mps->process_file()));
  EXPECT_TRUE(kill_mps(own, 5));
  EXPECT_TRUE(readable(mps->process_file()));
  EXPECT_FALSE(kill_mps(own, 5)) << "nothing is left";
}

TEST_F(WithMps, a_daemon_that_quits_is_not_killed_and_one_that_does_not_is) {
  install_daemon(true);
  static_cast<void>(Mps::start(plan()).value());
  EXPECT_THAT(mps_processes_of(own), IsEmpty());
  EXPECT_THAT(told, IsEmpty());
  install_daemon(false);
  static_cast<void>(Mps::start(plan()).value());
  EXPECT_THAT(mps_processes_of(own), IsEmpty());
  EXPECT_THAT(told, ElementsAre(HasSubstr("did not end when it was asked to, and was killed")));
}

// What /proc tells of a process with the name of a daemon.
std::vector<MpsProcess> seen_of(const std::function<void()>& begin) {
  const pid_t process = test::staying_process([&] {
    begin();
    ::prctl(PR_SET_DUMPABLE, 1);  // else its files are root's
    ::prctl(PR_SET_NAME, "nvidia-cuda-mps");
  });
  auto seen = mps_processes();
  test::end_process(process);
  std::erase_if(seen, [&](const MpsProcess& one) { return one.process != process; });
  return seen;
}

TEST(MpsProcesses, without_a_folder_of_their_own_are_in_the_one_of_nvidia) {
  const auto seen = seen_of([] {});
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].folder, "/tmp/nvidia-mps");
  EXPECT_EQ(seen[0].parent, ::getpid());
}

TEST(MpsProcesses, of_other_users_are_not_looked_at) {
  if (::geteuid() != 0) DEMARC_NOT_RUN("only root can be another user");
  EXPECT_THAT(seen_of([] { ASSERT_EQ(::setuid(65534), 0); }), IsEmpty());
}

// Numbers of processes begin anew, so that a server of a daemon may have a lower one than it.
TEST(MpsProcesses, of_a_folder_begin_with_the_daemon_whatever_its_number) {
  EXPECT_THAT(
      mps_processes_of(
          "/own",
          {{3, 1, "/others"}, {5, 9, "/own"}, {7, 3, "/own"}, {8, 9, "/own"}, {9, 1, "/own"}}),
      ElementsAre(7, 9, 5, 8));
  EXPECT_THAT(mps_processes_of("/own", {{3, 1, "/others"}}), IsEmpty());
}

TEST_F(WithMps, daemons_of_others_are_named) {
  install_daemon(true);
  auto their = plan();
  their.folder = others;
  const auto theirs = Mps::start(their).value();
  const pid_t process = daemon_of(others);
  const auto mps = Mps::start(plan()).value();
  EXPECT_THAT(told, ElementsAre(HasSubstr(
                        fmt::format("another daemon runs, process {} with {}", process, others))));
}

TEST_F(WithMps, a_daemon_whose_folder_was_taken_away_is_none_of_others) {
  install_daemon(true);
  const auto left = Mps::start(plan()).value();
  std::filesystem::remove_all(own);
  const auto mps = Mps::start(plan()).value();
  EXPECT_FALSE(readable(left->process_file())) << "nobody could tell it to quit";
  EXPECT_THAT(told, IsEmpty());
}

}  // namespace
}  // namespace demarc::serve
