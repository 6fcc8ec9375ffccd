#include "demarc/study/remote_lane.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/study/planted.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

std::vector<std::string> worker(const std::string& model) {
  return {(test::build_dir() / "tests" / "study" / "demarc_planted_worker").string(), model};
}

TEST(RemoteLane, a_lane_in_another_process_answers_like_one_here) {
  const auto model = planted_model("h100");
  ASSERT_TRUE(model);
  const auto executor = make_planted_executor(*model, 1);
  const auto stage = executor->whole();
  Lane& here = (*stage)->lane(0);
  auto there = spawn_lane(worker("h100"), {});
  ASSERT_TRUE(there) << there.error().message;
  const Workload mm{"mm", "mm"};
  ASSERT_TRUE(here.load(mm));
  ASSERT_TRUE((*there)->load(mm)) << (*there)->load(mm).error().message;
  EXPECT_EQ((*there)->outputs()->digest, here.outputs()->digest);
  const auto far = (*there)->sample(50, 1);
  const auto near = here.sample(50, 1);
  ASSERT_TRUE(far);
  ASSERT_EQ(far->size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR((*far)[i], (*near)[i], 0.001);
  ASSERT_TRUE((*there)->start());
  EXPECT_GT(*(*there)->stop(), 0);
}

TEST(RemoteLane, an_error_keeps_its_kind_and_words_on_the_way) {
  auto there = spawn_lane(worker("h100"), {});
  ASSERT_TRUE(there);
  const auto loaded = (*there)->load({"quicksort", "quicksort"});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::invalid_input);
  EXPECT_TRUE(loaded.error().message.starts_with("'quicksort' is no workload"));
}

TEST(RemoteLane, a_worker_that_dies_is_an_error_and_not_a_hang) {
  auto there = spawn_lane({"/bin/sh", "-c", "exit 4"}, {});
  ASSERT_TRUE(there);
  const auto loaded = (*there)->load({"mm", "mm"});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "worker '/bin/sh' has ended");
}

TEST(RemoteLane, a_worker_that_never_answers_is_given_up) {
  auto there = spawn_lane({"/bin/sh", "-c", "sleep 100"}, {}, 0.05);
  ASSERT_TRUE(there);
  EXPECT_NE((*there)->load({"mm", "mm"}).error().message.find("gave no answer"), std::string::npos);
}

TEST(RemoteLane, a_program_that_is_not_there_is_named) {
  const auto lane = spawn_lane({"/no/such/program"}, {});
  ASSERT_FALSE(lane);
  EXPECT_NE(lane.error().message.find("'/no/such/program'"), std::string::npos);
}

TEST(CommandLane, runs_until_stopped_with_its_environment_and_all_its_children_end) {
  const auto folder = test::fresh_folder("command_lane");
  const std::string file = (folder / "said").string();
  auto lane = make_command_lane({}, {{"GREETING", "hello there"}}, 0.3);
  ASSERT_TRUE(lane->load(
      {"x", "cmd:echo $GREETING > " + file + "; sleep 1000 & echo $! >> " + file + "; wait"}));
  ASSERT_TRUE(lane->start());
  const std::string said = read_file(file).value();
  EXPECT_TRUE(said.starts_with("hello there\n"));
  const int grandchild = std::stoi(said.substr(said.find('\n') + 1));
  EXPECT_EQ(::kill(grandchild, 0), 0);
  EXPECT_EQ(*lane->stop(), 0.0);
  for (int i = 0; i < 200 && ::kill(grandchild, 0) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // Gone, or waiting to be collected by a parent that is not us.
  const auto status = read_file("/proc/" + std::to_string(grandchild) + "/stat");
  EXPECT_TRUE(!status || status->find(") Z ") != std::string::npos);
}

TEST(CommandLane, a_command_that_ends_at_once_is_refused) {
  auto lane = make_command_lane({}, {}, 5);
  ASSERT_TRUE(lane->load({"x", "cmd:true"}));
  const auto started = lane->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message,
            "--aggressor-cmd: 'true' ends at once; it must run until it is stopped");
}

TEST(CommandLane, cannot_be_a_victim) {
  auto lane = make_command_lane({}, {}, 0);
  ASSERT_TRUE(lane->load({"x", "cmd:sleep 9"}));
  EXPECT_EQ(lane->sample(1, 1).error().message,
            "'sleep 9' is a command: it can be an aggressor, not a victim");
}

}  // namespace
}  // namespace demarc::study
