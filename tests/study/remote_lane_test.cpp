// Tests that a lane in another process answers as one here, and what its faults become.
#include "demarc/study/remote_lane.hpp"

#include <gtest/gtest.h>

#include <cerrno>

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

TEST(RemoteLane, unloads_the_lane_in_the_other_process) {
  auto there = spawn_lane(worker("h100"), {});
  ASSERT_TRUE(there) << there.error().message;
  ASSERT_TRUE((*there)->load({"mm", "mm"}));
  const auto unloaded = (*there)->unload();
  EXPECT_TRUE(unloaded) << unloaded.error().message;
}

TEST(RemoteLane, an_error_keeps_its_kind_and_words_on_the_way) {
  auto there = spawn_lane(worker("h100"), {});
  ASSERT_TRUE(there);
  const auto loaded = (*there)->load({"quicksort", "quicksort"});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::invalid_input);
  EXPECT_TRUE(loaded.error().message.starts_with("'quicksort' is not a workload"));
  EXPECT_TRUE((*there)->load({"x", "a\tb\nc"}).error().message.starts_with("'a\tb\nc' is not"));
}

// What comes of a worker that does as this shell line says.
Error fault_of(const std::string& line) {
  auto there = spawn_lane({"/bin/sh", "-c", line}, {}, 60);
  const Workload mm{"mm", "mm"};
  auto done = (*there)->load(mm);
  if (done) {
    if (auto times = (*there)->sample(2, 1); !times) return times.error();
    if (auto outputs = (*there)->outputs(); !outputs) return outputs.error();
    done = (*there)->start();
  }
  if (done) {
    if (auto rate = (*there)->stop(); !rate) return rate.error();
    done = (*there)->finish();
  }
  return done ? Error{} : done.error();
}

TEST(RemoteLane, a_worker_that_dies_is_a_failed_check_with_its_last_words) {
  EXPECT_EQ(fault_of("echo bad news >&2; exit 4"),
            (Error{ErrorKind::check_failed,
                   "worker '/bin/sh' ended with exit code 4; the last of its output: bad news"}));
  EXPECT_EQ(fault_of("read x; echo {}; read x; kill -SEGV $$").message,
            "worker '/bin/sh' ended with signal 11 (Segmentation fault); the last of its output: "
            "nothing");
}

TEST(RemoteLane, what_the_machine_lacks_for_a_worker_is_no_failed_check) {
  EXPECT_EQ(fault_of("echo no driver >&2; exit 2"),
            (Error{ErrorKind::missing_capability,
                   "worker '/bin/sh' ended with exit code 2; the last of its output: no driver"}));
}

// A shell line that reads a request and gives these answers.
std::string answering(const std::vector<std::string>& answers) {
  std::string line;
  for (const std::string& answer : answers) line += fmt::format("read x; echo '{}'; ", answer);
  return line;
}

const std::string done_answer = "{}";
const std::string sampled_answer = R"({"times":[5],"runs":[]})";
const std::string seen_answer = R"({"digest":"5","exact":true,"mismatch":""})";

TEST(RemoteLane, an_answer_that_cannot_be_understood_is_a_failed_check) {
  for (const std::vector<std::string>& answers : std::vector<std::vector<std::string>>{
           {"maybe"},
           {""},
           {R"({"ok":1})"},
           {R"({"error":"x","code":9})"},
           {R"({"error":"x","code":0})"},
           {R"({"error":"x"})"},
           {done_answer, done_answer},
           {done_answer, R"({"times":["fast"],"runs":[]})"},
           {done_answer, R"({"times":[NaN],"runs":[]})"},
           {done_answer, R"({"times":[-1],"runs":[]})"},
           {done_answer, R"({"times":[1],"runs":[-1]})"},
           {done_answer, R"({"times":[],"runs":[7]})"},
           {done_answer, sampled_answer, R"({"digest":"5"})"},
           {done_answer, sampled_answer, R"({"digest":"x","exact":true,"mismatch":""})"},
           {done_answer, sampled_answer, seen_answer, done_answer, done_answer},
           {done_answer, sampled_answer, seen_answer, done_answer, R"({"rate":"many"})"}}) {
    const Error error = fault_of(answering(answers) + "read x");
    EXPECT_EQ(error.kind, ErrorKind::check_failed) << answers.back();
    EXPECT_NE(error.message.find("cannot be understood"), std::string::npos)
        << answers.back() << ": " << error.message;
  }
}

TEST(RemoteLane, how_a_worker_ends_after_its_work_counts) {
  const std::string good =
      answering({done_answer, sampled_answer, seen_answer, done_answer, R"({"rate":1})"}) +
      "read x; ";
  EXPECT_EQ(fault_of(good + "exit 0").message, "");
  EXPECT_EQ(fault_of(good + "echo 3 blocks outside >&2; exit 3").message,
            "worker '/bin/sh' ended with exit code 3; the last of its output: 3 blocks outside");
}

TEST(RemoteLane, a_worker_that_never_answers_is_a_failed_check) {
  auto there = spawn_lane({"/bin/sh", "-c", "sleep 100"}, {}, 0.05);
  ASSERT_TRUE(there);
  const auto loaded = (*there)->load({"mm", "mm"});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error(),
            (Error{ErrorKind::check_failed, "worker '/bin/sh' gave no answer within 0.05 s"}));
}

// The number of an error stays until the next one: it says nothing of a call that went well.
TEST(RemoteLane, an_interruption_of_long_ago_is_none) {
  auto there = spawn_lane({"/bin/sh", "-c", "read x; sleep 100"}, {}, 0.05);
  ASSERT_TRUE(there);
  errno = EINTR;
  EXPECT_EQ((*there)->load({"mm", "mm"}).error().message,
            "worker '/bin/sh' gave no answer within 0.05 s");
}

TEST(RemoteLane, a_program_that_is_not_there_is_named) {
  const auto lane = spawn_lane({"/no/such/program"}, {});
  ASSERT_FALSE(lane);
  EXPECT_NE(lane.error().message.find("'/no/such/program'"), std::string::npos);
}

}  // namespace
}  // namespace demarc::study
