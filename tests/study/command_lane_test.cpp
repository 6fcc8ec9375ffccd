// Tests when a command counts as at work, and what becomes of one that ends or dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/study/remote_lane.hpp"
#include "last_lines.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A command whose launches the test counts by hand.
class CommandLane : public testing::Test {
 protected:
  // The prefix does what is `first`, announces itself, and becomes the command or does `then`.
  std::unique_ptr<Lane> lane(const std::string& command, const std::string& first = ":",
                             const std::string& then = "exec \"$@\"") {
    options.prefix = [first, then](int announce) {
      return std::vector<std::string>{
          "/bin/sh", "-c", fmt::format("{}; echo here >&{}; {}", first, announce, then), "prefix"};
    };
    options.open_count = [this](const std::string& announced) -> Result<LaunchCount> {
      if (announced != "here") return invalid_input("'{}'", announced);
      return [this] {
        ++looks;
        return launches.load();
      };
    };
    auto made = make_command_lane(options);
    EXPECT_TRUE(made->load({"x", "cmd:" + command}));
    return made;
  }
  // Waits until the lane has looked at the counter again.
  void until_seen() {
    const int before = looks;
    while (looks < before + 3) std::this_thread::yield();
  }

  CommandLaneOptions options{.prefix = {},
                             .open_count = {},
                             .before_end = {},
                             .environment = {},
                             .settle_seconds = 0,
                             .patience_seconds = 60,
                             .leave_seconds = 60};
  std::atomic<std::uint64_t> launches{1};
  std::atomic<int> looks{0};
};

template <class T>
std::string words(const Result<T>& outcome) {
  if (outcome) return "no error";
  EXPECT_EQ(outcome.error().kind, ErrorKind::check_failed);
  return outcome.error().message;
}

TEST_F(CommandLane, is_at_work_while_its_launches_go_on) {
  auto made = lane("sleep 1000");
  ASSERT_TRUE(made->start());
  ASSERT_TRUE(made->visit_begins());
  ++launches;
  until_seen();
  EXPECT_TRUE(made->visit_ended());
  EXPECT_EQ(*made->stop(), 0.0);
  EXPECT_EQ(made->remark(), "");
}

TEST_F(CommandLane, is_announced_to_whom_its_end_concerns_before_it_ends) {
  bool ran = false;
  options.before_end = [&ran](pid_t leader) { ran = ::kill(leader, 0) == 0; };
  auto made = lane("sleep 1000");
  ASSERT_TRUE(made->start());
  EXPECT_FALSE(ran);
  EXPECT_TRUE(made->stop());
  EXPECT_TRUE(ran);
}

TEST_F(CommandLane, without_a_launch_in_the_visit_the_next_one_decides) {
  auto made = lane("sleep 1000");
  ASSERT_TRUE(made->start());
  ASSERT_TRUE(made->visit_begins());
  until_seen();
  std::thread later([this] {
    until_seen();
    ++launches;
  });
  EXPECT_TRUE(made->visit_ended());
  later.join();
}

TEST_F(CommandLane, that_launches_nothing_any_more_was_not_seen_working) {
  options.patience_seconds = 0.3;  // the start has to be seen within it, on a busy machine too
  auto made = lane("sleep 1000");
  ASSERT_TRUE(made->start());
  ASSERT_TRUE(made->visit_begins());
  EXPECT_EQ(words(made->visit_ended()),
            "the command 'sleep 1000' was not seen working on the card during the visit: it "
            "launched no kernel");
}

TEST_F(CommandLane, that_never_launches_is_not_started) {
  launches = 0;
  options.patience_seconds = 0.03;
  EXPECT_EQ(words(lane("sleep 1000")->start()),
            "the command 'sleep 1000' was not seen working on the card: it launched no kernel "
            "within 0.03 s");
}

TEST_F(CommandLane, that_ends_with_an_error_says_so_with_its_last_words) {
  launches = 0;
  EXPECT_EQ(words(lane("echo one; echo bad >&2; exit 7")->start()),
            "the command 'echo one; echo bad >&2; exit 7' ended with exit code 7; the last of its "
            "output: one | bad");
  EXPECT_EQ(
      words(lane("kill -9 $$")->start()),
      "the command 'kill -9 $$' ended with signal 9 (Killed); the last of its output: nothing");
}

// Its control block is gone before the process is.
TEST_F(CommandLane, that_ends_before_its_launches_can_be_counted_says_how_it_ended) {
  auto made = lane("echo why; exit 5");
  options.open_count = [](const std::string&) -> Result<LaunchCount> {
    return invalid_input("no such file");
  };
  made = make_command_lane(options);
  ASSERT_TRUE(made->load({"x", "cmd:echo why; exit 5"}));
  EXPECT_EQ(words(made->start()),
            "the command 'echo why; exit 5' ended with exit code 5; the last of its output: why");
}

TEST_F(CommandLane, that_dies_in_the_visit_is_an_error_of_the_visit_and_of_its_end) {
  const auto go = (test::fresh_folder("command_go") / "go").string();
  auto made = lane("while [ ! -e " + go + " ]; do sleep 0.005; done; exit 9");
  ASSERT_TRUE(made->start());
  ASSERT_TRUE(made->visit_begins());
  ASSERT_TRUE(write_file(go, ""));
  EXPECT_THAT(words(made->visit_ended()), HasSubstr("ended with exit code 9"));
  EXPECT_THAT(made->stop().error().message, HasSubstr("ended with exit code 9"));
}

TEST_F(CommandLane, that_ends_well_is_started_again_and_that_is_said) {
  const auto file = (test::fresh_folder("command_again") / "runs").string();
  auto made = lane("echo x >> " + file + "; [ $(wc -l < " + file + ") -lt 3 ] || exec sleep 1000");
  ASSERT_TRUE(made->start());
  while (read_file(file).value_or("").size() < 6) std::this_thread::yield();
  until_seen();
  ASSERT_TRUE(made->stop());
  EXPECT_EQ(made->remark(), "the command ended by itself and was restarted 2 times");
}

TEST_F(CommandLane, that_is_started_again_and_again_within_a_visit_is_an_error) {
  const auto file = (test::fresh_folder("command_often") / "runs").string();
  auto made = lane("echo x >> " + file);
  ASSERT_TRUE(made->start());
  ASSERT_TRUE(made->visit_begins());
  const auto runs = [&] { return read_file(file).value_or("").size() / 2; };
  const auto before = runs();
  while (runs() < before + 7) std::this_thread::yield();
  EXPECT_THAT(words(made->visit_ended()), HasSubstr("times within one visit"));
}

TEST_F(CommandLane, that_ends_well_without_a_launch_is_not_tried_for_ever) {
  launches = 0;
  EXPECT_EQ(words(lane("echo done")->start()),
            "the command 'echo done' was not seen working on the card: it ended 4 times and "
            "launched no kernel; the last of its output: done");
}

TEST_F(CommandLane, whose_launches_cannot_be_counted_is_an_error) {
  auto made = lane("sleep 1000");  // fills the options
  options.open_count = [](const std::string&) -> Result<LaunchCount> {
    return missing_capability("a stranger's block");
  };
  made = make_command_lane(options);
  ASSERT_TRUE(made->load({"x", "cmd:sleep 1000"}));
  EXPECT_EQ(
      words(made->start()),
      "the command 'sleep 1000' runs, but its launches cannot be counted: a stranger's block");
}

TEST_F(CommandLane, whose_prefix_ends_with_3_was_not_where_it_had_to_be) {
  auto made = lane("sleep 1000", "trap 'echo 2 blocks outside >&2; exit 3' TERM; echo ready",
                   "while :; do sleep 0.005; done");
  ASSERT_TRUE(made->start());
  until_seen();
  const auto stopped = made->stop();  // its shell may have a word on its sleep in between
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message,
              StartsWith("the command 'sleep 1000' ended with exit code 3; "
                         "the last of its output: ready | "));
  EXPECT_THAT(stopped.error().message, EndsWith(" | 2 blocks outside"));
}

TEST_F(CommandLane, that_must_be_killed_is_an_error_only_where_its_prefix_proves_something) {
  options.leave_seconds = 0.03;
  for (const bool proves : {false, true}) {
    options.proves = proves;
    auto made = lane("x", "trap '' TERM", "while :; do sleep 0.005; done");
    ASSERT_TRUE(made->start());
    until_seen();
    EXPECT_EQ(made->stop().has_value(), !proves);
  }
}

TEST_F(CommandLane, has_its_environment_and_all_its_children_end) {
  const std::string file = (test::fresh_folder("command_lane") / "said").string();
  options.environment = {{"GREETING", "hello there"}};
  auto made = lane("echo $GREETING; sleep 1000 & echo $! > " + file + "; wait");
  ASSERT_TRUE(made->start());
  while (!read_file(file).value_or("").ends_with("\n")) std::this_thread::yield();
  const int grandchild = std::stoi(*read_file(file));
  EXPECT_EQ(::kill(grandchild, 0), 0);
  EXPECT_TRUE(made->stop());
  const auto gone = [&] {
    const auto status = read_file(fmt::format("/proc/{}/stat", grandchild));
    return !status || status->find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 1000 && !gone(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(gone());
}

TEST_F(CommandLane, settles_before_it_counts_as_started) {
  options.settle_seconds = 0.05;
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(lane("sleep 1000")->start());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(50));
  options.settle_seconds = 60;
  EXPECT_THAT(words(lane("exit 4")->start()), HasSubstr("exit code 4"));
}

TEST_F(CommandLane, takes_commands_alone) {
  auto made = lane("sleep 9");
  EXPECT_FALSE(made->load({"x", "cmd:"}));
  EXPECT_FALSE(made->load({"mm", "mm"}));
}

TEST_F(CommandLane, as_a_victim_is_run_as_often_as_is_asked_for) {
  const auto file = (test::fresh_folder("command_victim") / "runs").string();
  auto made = lane("echo x >> " + file);
  const auto times = made->sample(3, 1000);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_THAT(*times, testing::SizeIs(3));
  EXPECT_THAT(*times, testing::Each(testing::Gt(0)));
  EXPECT_EQ(read_file(file).value(), "x\nx\nx\n");
  EXPECT_THAT(*made->sample(3, 0), testing::SizeIs(1)) << "time is up after the first";
  const auto outputs = made->outputs();
  ASSERT_TRUE(outputs);
  EXPECT_FALSE(outputs->exact);
  EXPECT_EQ(outputs->mismatch, "");
  EXPECT_EQ(read_file(file).value(), "x\nx\nx\nx\n") << "results are not read";
}

// The counter stands at 0 until the command has written the file, and a while longer.
TEST_F(CommandLane, as_a_victim_is_timed_from_its_first_launch_to_its_end) {
  const auto folder = test::fresh_folder("command_timed");
  const auto go = (folder / "go").string();
  auto made = lane("sleep 0.3; : > " + go + "; sleep 0.1");
  options.open_count = [&go](const std::string&) -> Result<LaunchCount> {
    return [&go] { return std::filesystem::exists(go) ? 1U : 0U; };
  };
  made = make_command_lane(options);
  ASSERT_TRUE(made->load({"x", "cmd:sleep 0.3; : > " + go + "; sleep 0.1"}));
  const auto begun = std::chrono::steady_clock::now();
  const auto times = made->sample(1, 1000);
  const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - begun;
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_GE(times->at(0), 0.1e9);
  EXPECT_LE(times->at(0), all.count() - 0.15e9);
}

TEST_F(CommandLane, as_a_victim_has_to_end_well_and_in_time_after_a_launch) {
  EXPECT_EQ(words(lane("echo bad; exit 2")->sample(2, 1000)),
            "the command 'echo bad; exit 2' ended with exit code 2; the last of its output: bad");
  launches = 0;
  EXPECT_EQ(words(lane("echo idle")->sample(1, 1000)),
            "the command 'echo idle' launched no kernel; the last of its output: idle");
  launches = 1;
  options.longest_run_seconds = 0.05;
  bool told = false;
  options.before_end = [&told](pid_t) { told = true; };
  EXPECT_EQ(
      words(lane("sleep 1000")->sample(1, 1000)),
      "the command 'sleep 1000' did not end within 0.05 s, and a victim has to end by itself");
  EXPECT_TRUE(told);
  auto made = lane("sleep 1000");
  options.longest_run_seconds = 600;
  options.open_count = [](const std::string&) -> Result<LaunchCount> {
    return missing_capability("a stranger's block");
  };
  made = make_command_lane(options);
  ASSERT_TRUE(made->load({"x", "cmd:sleep 1000"}));
  EXPECT_EQ(
      words(made->sample(1, 1000)),
      "the command 'sleep 1000' runs, but its launches cannot be counted: a stranger's block");
  options.prefix = [](int) { return std::vector<std::string>{"/no/such/program"}; };
  made = make_command_lane(options);
  ASSERT_TRUE(made->load({"x", "cmd:true"}));
  EXPECT_THAT(words(made->sample(1, 1)), HasSubstr("the command 'true' does not start: "));
}

TEST(LastLines, are_eight_at_most_on_one_line) {
  EXPECT_EQ(last_lines(""), "nothing");
  EXPECT_EQ(last_lines("\n\n"), "nothing");
  EXPECT_EQ(last_lines("one"), "one");
  EXPECT_EQ(last_lines("one\ntwo\n"), "one | two");
  EXPECT_EQ(last_lines("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"), "2 | 3 | 4 | 5 | 6 | 7 | 8 | 9");
  EXPECT_EQ(last_lines("2\n3\n4\n5\n6\n7\n8\n9"), "2 | 3 | 4 | 5 | 6 | 7 | 8 | 9");
}

}  // namespace
}  // namespace demarc::study
