// The daemon of MPS is started, told of and ended; a script stands in for it.
#include "mps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;

class WithMps : public testing::Test {
 protected:
  void TearDown() override { ::setenv("PATH", path.c_str(), 1); }
  // Notes what it is asked.
  void install(int exit_code) const {
    const auto program = folder / "nvidia-cuda-mps-control";
    ASSERT_TRUE(write_file(program, fmt::format(R"(#!/bin/sh
if [ "$1" = -d ]; then echo "start $CUDA_MPS_PIPE_DIRECTORY $CUDA_VISIBLE_DEVICES" >> "{0}/log"; exit {1}; fi
read word; echo "$word $CUDA_MPS_PIPE_DIRECTORY" >> "{0}/log"
case "$word" in get_server_list) echo 77;; "get_client_list 77") echo 5; echo 6; echo 7;;
terminate_client*) cat "{0}/terminated";; esac
exit $(cat "{0}/code")
)",
                                                folder.string(), exit_code)));
    answer("0", 0);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  }
  // From now on: to terminate_client in words, to everything by its exit code.
  void answer(const std::string& terminated, int exit_code) const {
    ASSERT_TRUE(write_file(folder / "terminated", terminated + "\n"));
    ASSERT_TRUE(write_file(folder / "code", std::to_string(exit_code)));
  }
  [[nodiscard]] std::string log() const { return read_file(folder / "log").value(); }

  std::string path = std::getenv("PATH");
  std::filesystem::path folder = test::fresh_folder("mps");
  std::string own = folder / "own";
};

TEST_F(WithMps, programs_find_the_daemon_until_the_server_ends) {
  install(0);
  for (const MpsUse use : {MpsUse::on, MpsUse::automatic}) {
    std::filesystem::remove(folder / "log");
    {
      const auto mps = Mps::start(use, own, "GPU-1").value();
      EXPECT_EQ(mps->folder(), own);
      EXPECT_EQ(log(), "start " + own + " GPU-1\n");
      EXPECT_TRUE(std::filesystem::is_directory(own));
    }
    EXPECT_THAT(log(), HasSubstr("\nquit " + own + "\n"));
    EXPECT_FALSE(std::filesystem::exists(own));
  }
}

TEST_F(WithMps, work_of_chosen_clients_is_ended) {
  install(0);
  const auto mps = Mps::start(MpsUse::on, own, "GPU-1").value();
  EXPECT_TRUE(mps->end_work_of(std::vector<pid_t>{7, 5, 8}));
  EXPECT_EQ(log(), "start " + own + " GPU-1\nget_server_list " + own + "\nget_client_list 77 " +
                       own + "\nterminate_client 77 5 " + own + "\nterminate_client 77 7 " + own +
                       "\n");
}

// What else a daemon says, seen on driver 580.
TEST_F(WithMps, work_of_which_the_daemon_does_not_say_that_it_ended_is_an_error) {
  install(0);
  const auto mps = Mps::start(MpsUse::on, own, "GPU-1").value();
  const auto refusal = [&] {
    const auto ended = mps->end_work_of(std::vector<pid_t>{7, 5});
    return ended ? "ended" : ended.error().message;
  };
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

TEST_F(WithMps, off_means_that_nothing_is_started) {
  install(0);
  const auto mps = Mps::start(MpsUse::off, own, "GPU-1").value();
  EXPECT_EQ(mps->folder(), "");
  EXPECT_TRUE(mps->end_work_of(std::vector<pid_t>{5}));
  EXPECT_FALSE(std::filesystem::exists(folder / "log"));
}

TEST_F(WithMps, a_daemon_that_does_not_start_is_refused) {
  install(3);
  for (const MpsUse use : {MpsUse::on, MpsUse::automatic}) {
    const auto refused = Mps::start(use, own, "GPU-1");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("does not start: exit code 3"));
  }
}

TEST_F(WithMps, a_machine_without_it_has_none_unless_it_must) {
  ::setenv("PATH", folder.c_str(), 1);
  EXPECT_EQ(Mps::start(MpsUse::automatic, own, "GPU-1").value()->folder(), "");
  EXPECT_THAT(Mps::start(MpsUse::on, own, "GPU-1").error().message,
              HasSubstr("the NVIDIA driver brings it"));
}

}  // namespace
}  // namespace demarc::serve
