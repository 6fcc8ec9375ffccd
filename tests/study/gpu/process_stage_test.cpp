// One lane for commands and one for all else, behind one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "gpu/process_stage.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;

// Notes what it is asked for.
class NotingLane : public Lane {
 public:
  NotingLane(std::string name, std::vector<std::string>& asked, bool fails_at_the_end = false)
      : name_(std::move(name)), asked_(asked), fails_(fails_at_the_end) {}
  Result<void> load(const Workload& workload) override { return note("load " + workload.spec); }
  Result<void> unload() override { return note("unload"); }
  Result<std::vector<double>> sample(std::uint32_t count, double longest) override {
    DEMARC_CHECK(note(fmt::format("sample {} {}", count, longest)));
    return std::vector<double>{1};
  }
  std::vector<double> last_runs() const override { return {2}; }
  Result<Outputs> outputs() override {
    DEMARC_CHECK(note("outputs"));
    return Outputs{3, true, ""};
  }
  Result<void> start() override { return note("start"); }
  Result<double> stop() override {
    DEMARC_CHECK(note("stop"));
    return 4;
  }
  Result<void> visit_begins() override { return note("begins"); }
  Result<void> visit_ended() override { return note("ended"); }
  std::string remark() const override { return name_; }
  Result<void> finish() override {
    DEMARC_CHECK(note("finish"));
    if (fails_) return check_failed("{} was outside", name_);
    return {};
  }

 private:
  Result<void> note(const std::string& what) {
    asked_.push_back(name_ + ": " + what);
    return {};
  }
  std::string name_;
  std::vector<std::string>& asked_;
  bool fails_;
};

TEST(ChoosingLane, hands_commands_to_one_lane_and_all_else_to_the_other) {
  std::vector<std::string> asked;
  const auto lane = make_choosing_lane(std::make_unique<NotingLane>("device", asked),
                                       std::make_unique<NotingLane>("command", asked));
  ASSERT_TRUE(lane->stop()) << "nothing is loaded yet";
  EXPECT_THAT(asked, ElementsAre("device: stop"));
  for (const char* spec : {"mm", "cmd:make"}) {
    const std::string name = spec == std::string("mm") ? "device" : "command";
    ASSERT_TRUE(lane->load({"x", spec}));
    asked.erase(asked.begin(), asked.end() - 1);
    EXPECT_EQ(lane->sample(5, 2)->front(), 1);
    EXPECT_EQ(lane->outputs()->digest, 3U);
    ASSERT_TRUE(lane->start());
    ASSERT_TRUE(lane->visit_begins());
    ASSERT_TRUE(lane->visit_ended());
    EXPECT_EQ(lane->stop().value(), 4);
    EXPECT_THAT(
        asked, ElementsAre(name + ": load " + spec, name + ": sample 5 2", name + ": outputs",
                           name + ": start", name + ": begins", name + ": ended", name + ": stop"));
    EXPECT_EQ(lane->last_runs().front(), 2);
    EXPECT_EQ(lane->remark(), name);
  }
}

TEST(ChoosingLane, keeps_nothing_on_the_card_while_a_command_is_loaded) {
  std::vector<std::string> asked;
  const auto lane = make_choosing_lane(std::make_unique<NotingLane>("device", asked),
                                       std::make_unique<NotingLane>("command", asked));
  ASSERT_TRUE(lane->load({"x", "mm"}) && lane->load({"x", "cmd:make"}));
  EXPECT_THAT(asked, ElementsAre("device: load mm", "device: unload", "command: load cmd:make"));
  asked.clear();
  ASSERT_TRUE(lane->unload());
  EXPECT_THAT(asked, ElementsAre("command: unload", "device: unload"));
}

TEST(ChoosingLane, ends_both_and_tells_which_of_them_was_outside) {
  std::vector<std::string> asked;
  const auto end = [&](bool device_fails, bool command_fails) {
    const auto ended =
        make_choosing_lane(std::make_unique<NotingLane>("device", asked, device_fails),
                           std::make_unique<NotingLane>("command", asked, command_fails))
            ->finish();
    return ended ? "" : ended.error().message;
  };
  EXPECT_EQ(end(false, false), "");
  EXPECT_THAT(asked, ElementsAre("command: finish", "device: finish"));
  EXPECT_EQ(end(true, false), "device was outside");
  EXPECT_EQ(end(false, true), "command was outside");
}

PartProcesses worker_that(const std::string& does) {
  PartProcesses part;
  part.worker = {"/bin/sh", "-c", does};
  return part;
}

// Each a_worker_that_answers one request.
constexpr const char* a_worker_that_answers =
    R"(read request; echo '{"rate":0.0}'; cat > /dev/null)";

TEST(ProcessStage, is_there_once_all_workers_have_answered) {
  const auto stage = make_process_stage(
      {{worker_that(a_worker_that_answers), worker_that(a_worker_that_answers)}, {}, "two"});
  ASSERT_TRUE(stage) << stage.error().message;
  EXPECT_EQ((*stage)->lanes(), 2U);
  EXPECT_EQ((*stage)->account(), "two");
  const auto refused = make_process_stage(
      {{worker_that(a_worker_that_answers), worker_that("echo no lease >&2; exit 2")}, {}, ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("exit code 2"));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("no lease"));
  PartProcesses silent = worker_that("exec sleep 1000");
  silent.patience_seconds = 0.05;
  const auto late = make_process_stage({{silent}, {}, ""});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, testing::HasSubstr("gave no answer within 0.05 s"));
}

TEST(ProcessStage, has_the_worker_of_an_idle_part_give_up_its_memory) {
  const auto asked = test::fresh_folder("idle_worker") / "asked";
  const auto stage = make_process_stage(
      {{worker_that(a_worker_that_answers),
        worker_that(fmt::format("read x; echo '{{\"rate\":0.0}}'; read x; echo \"$x\" > {}; echo "
                                "'{{}}'; cat > /dev/null",
                                asked.string()))},
       {},
       "two"});
  ASSERT_TRUE(stage) << stage.error().message;
  const auto rested = (*stage)->rest(1);
  ASSERT_TRUE(rested) << rested.error().message;
  EXPECT_THAT(read_file(asked).value(), testing::HasSubstr("unload"));
}

// A server that measures colours takes minutes; a worker without one answers within two.
TEST(ProcessStage, waits_longer_for_parts_that_are_leases) {
  CommandLaneOptions command;
  command.leave_seconds = 1;
  const PartProcesses part = leased_part({"worker"}, {{"A", "b"}}, command);
  EXPECT_THAT(part.worker, ElementsAre("worker"));
  EXPECT_EQ(part.environment.size(), 1U);
  EXPECT_EQ(part.patience_seconds, 300);
  EXPECT_EQ(part.command.patience_seconds, 300);
  EXPECT_EQ(part.command.leave_seconds, 21);
  EXPECT_EQ(PartProcesses().patience_seconds, 120);
}

TEST(ProcessStage, asks_for_its_account_after_the_workers_and_keeps_their_server_until_they_end) {
  auto server = std::make_shared<int>();
  const std::weak_ptr<int> alive = server;
  ProcessStagePlan plan{{worker_that(a_worker_that_answers)}, std::move(server), "not yet known"};
  plan.ask_account = []() -> Result<std::string> { return std::string("known"); };
  auto stage = make_process_stage(plan);
  ASSERT_TRUE(stage) << stage.error().message;
  EXPECT_EQ((*stage)->account(), "known");
  plan.server.reset();
  EXPECT_FALSE(alive.expired());
  stage->reset();
  EXPECT_TRUE(alive.expired());
  plan.ask_account = []() -> Result<std::string> { return check_failed("not said"); };
  const auto unknown = make_process_stage(plan);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "not said");
}

}  // namespace
}  // namespace demarc::study
