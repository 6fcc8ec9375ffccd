// Points run once, whatever becomes of one of them, of the process that runs them, and of the
// ranks.
#include "demarc/sweep/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <thread>

#include "demarc/sweep/results.hpp"
#include "paths.hpp"
#include "plans.hpp"

namespace demarc::sweep {
namespace {

using demarc::test::fresh_folder;
using test::small_plan;
using testing::HasSubstr;

const RunCommand command = test::carry_out;

struct Ran {
  State state;
  std::string points;  // as CSV
};

Ran run(const std::filesystem::path& path, const Plan& plan, RunOptions options = {},
        unsigned jobs = 2) {
  auto crew = Crew::start(plan, jobs, command);
  EXPECT_TRUE(crew) << crew.error().message;
  auto store = Store::open(path, plan, false);
  EXPECT_TRUE(store) << store.error().message;
  const auto state = run_sweep(plan, *store, *crew, nullptr, options);
  EXPECT_TRUE(state) << state.error().message;
  return {*state, to_csv(all_points(*store, false).value())};
}

const std::string all_well =
    "a,b,sum,word,nothing,error\n"
    "1,1,11,one,,\n1,2,12,two,,\n2,1,21,one,,\n2,2,22,two,,\n3,1,31,one,,\n3,2,32,two,,\n";

TEST(SweepRun, every_point_runs_once_and_what_is_there_does_not_run_again) {
  const auto folder = fresh_folder("run");
  for (const unsigned jobs : {1U, 2U, 5U}) {
    const auto path = folder / (std::to_string(jobs) + ".db");
    const Ran first = run(path, small_plan(), {}, jobs);
    EXPECT_EQ(first.points, all_well);
    EXPECT_EQ(first.state.points, 6U);
    EXPECT_EQ(first.state.ran, 6U);
    EXPECT_EQ(first.state.held, 0U);
    const Ran again = run(path, small_plan(), {}, jobs);
    EXPECT_EQ(again.state.ran, 0U);
    EXPECT_EQ(again.state.held, 6U);
    EXPECT_EQ(again.points, all_well);
    EXPECT_EQ(run(path, small_plan(4), {}, jobs).state.ran, 2U) << "the axis has a value more";
  }
}

TEST(SweepRun, ends_after_so_many_points_and_goes_on_there) {
  const auto path = fresh_folder("run-most") / "r.db";
  RunOptions few;
  few.most = 4;
  EXPECT_EQ(run(path, small_plan(), few).state.ran, 4U);
  EXPECT_EQ(run(path, small_plan(), few).state.ran, 2U);
  EXPECT_EQ(run(path, small_plan()).points, all_well);
}

// The points with a = 2 fail in one way; the others are as they are.
struct Failure {
  const char* what;
  const char* error;
  int exit_code;
};
class SweepFailures : public testing::TestWithParam<Failure> {};

TEST_P(SweepFailures, are_rows_and_run_again_when_that_is_asked_for) {
  const Failure& want = GetParam();
  const auto path = fresh_folder("run-fails") / "r.db";
  // Who hangs is waited for; the others may be slow on a busy machine.
  const std::string limit = std::string_view(want.what) == "hang" ? "0.3" : "60";
  const Plan plan = small_plan(3, R"(, "time_limit_s": )" + limit, want.what);
  const Ran ran = run(path, plan);
  EXPECT_EQ(ran.state.ran, 6U);
  EXPECT_EQ(ran.state.failed, 2U);
  EXPECT_THAT(ran.points, HasSubstr("\n1,2,12,two,,\n2,1,,,,"));
  EXPECT_THAT(ran.points, HasSubstr("\n3,2,32,two,,\n"));
  auto store = Store::read(path);
  const Row row = store->row(2)->value();
  EXPECT_THAT(row.outcome.error, HasSubstr(want.error));
  EXPECT_EQ(row.outcome.exit_code, want.exit_code);
  const Ran held = run(path, plan);
  EXPECT_EQ(held.state.ran, 0U);
  EXPECT_EQ(held.state.failed, 2U) << "they still have";
  RunOptions retry;
  retry.retry = true;
  EXPECT_EQ(run(path, plan, retry).state.ran, 2U);
}

INSTANTIATE_TEST_SUITE_P(
    All, SweepFailures,
    testing::Values(Failure{"abort", "ended by signal 11 (Segmentation fault)", 139},
                    Failure{"exit", "exit code 5", 5}, Failure{"fail", "this is wrong", 3},
                    Failure{"hang", "took longer than 0.3 s", 137},
                    Failure{"no-json", "does the command say --json?", 1},
                    Failure{"rate", "/list/0/l2_hit_rate is 1.5, and a hit rate is between", 3},
                    Failure{"kill-parent", "the process that runs points was killed", 137}),
    [](const auto& failure) {
      std::string name = failure.param.what;
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

TEST(SweepRun, a_member_that_is_not_there_is_named) {
  const auto path = fresh_folder("run-member") / "r.db";
  const Plan plan = Plan::parse(
                        R"({"schema": "demarc.sweep/1", "command": ["topo", "{a}", "1", "-"],
                            "axes": {"a": [1, 2, 3, 4]}, "keep": {"m": "/list/{a}/w"}})",
                        "s.json", {})
                        .value();
  EXPECT_THAT(run(path, plan).points,
              HasSubstr("1,two,\n2,,m: the result has nothing at /list/2\n"));
}

// A member may be reached in many ways; what is not a number, string or truth is refused.
TEST(SweepRun, pointers_reach_members_elements_and_elements_by_their_members) {
  const auto path = fresh_folder("run-pointers") / "r.db";
  const Plan plan =
      Plan::parse(
          R"({"schema": "demarc.sweep/1", "command": ["topo", "{a}", "2", "-"], "axes": {"a": [1]},
              "keep": {"by_number": "/list/1/n", "by_member": "/list/w=two/n", "by_two": "/list/w=one&n=1/w"}})",
          "s.json", {})
          .value();
  EXPECT_EQ(run(path, plan).points, "a,by_number,by_member,by_two,error\n1,2,2,one,\n");
  for (const char* pointer :
       {"/list", "/list/0", "/list/w=one&n=2/w", "/list/01x/n", "/s/x", "/x"}) {
    const Plan wrong =
        Plan::parse(
            R"({"schema": "demarc.sweep/1", "command": ["topo", "{a}", "2", "-"], "axes": {"a": [1]}, "keep": {"m": ")" +
                std::string(pointer) + "\"}}",
            "s.json", {})
            .value();
    EXPECT_EQ(run(fresh_folder("run-wrong") / "r.db", wrong).state.failed, 1U) << pointer;
  }
}

TEST(SweepRun, tells_how_far_it_is) {
  const auto path = fresh_folder("run-tells") / "r.db";
  RunOptions options;
  std::vector<State> told;
  options.progress = [&](const State& state) { told.push_back(state); };
  const Ran ran = run(path, small_plan(3, "", "wait"), options);
  ASSERT_GE(told.size(), 2U);
  EXPECT_LT(told.front().ran, 6U);
  EXPECT_EQ(told.back().ran, 6U);
  EXPECT_EQ(told.back().points, 6U);
  EXPECT_GT(ran.state.point_seconds, 0.0054) << "0.3 ms times a times b";
}

// Ranks as queues between threads.
class Queues {
 public:
  explicit Queues(std::uint32_t size) : inboxes_(size) {}
  class Rank final : public Transport {
   public:
    Rank(Queues& queues, std::uint32_t rank) : queues_(queues), rank_(rank) {}
    std::uint32_t rank() const override { return rank_; }
    std::uint32_t size() const override {
      return static_cast<std::uint32_t>(queues_.inboxes_.size());
    }
    void send(std::uint32_t to, const std::string& text) override {
      const std::scoped_lock lock(queues_.mutex_);
      queues_.inboxes_[to].push_back({rank_, text});
    }
    void abandon(int /*exit_code*/) override { std::abort(); }
    std::optional<RankMessage> receive() override {
      const std::scoped_lock lock(queues_.mutex_);
      auto& inbox = queues_.inboxes_[rank_];
      if (inbox.empty()) return {};
      RankMessage message = inbox.front();
      inbox.pop_front();
      return message;
    }

   private:
    Queues& queues_;
    std::uint32_t rank_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::deque<RankMessage>> inboxes_;
};

TEST(SweepRun, ranks_share_the_points_and_the_results_are_the_same) {
  const Plan plan = small_plan(40, "", "wait");
  const auto folder = fresh_folder("run-ranks");
  const std::string alone = run(folder / "alone.db", plan).points;
  for (const std::uint32_t size : {1U, 2U, 4U}) {
    Queues queues(size);
    std::vector<Crew> crews;
    for (std::uint32_t r = 0; r < size; ++r)
      crews.push_back(Crew::start(plan, 1 + r % 2, command).value());
    std::vector<std::thread> others;
    for (std::uint32_t r = 1; r < size; ++r) {
      others.emplace_back([&, r] {
        Queues::Rank rank(queues, r);
        EXPECT_TRUE(serve_rank(crews[r], rank));
      });
    }
    auto store = Store::open(folder / (std::to_string(size) + ".db"), plan, false);
    Queues::Rank rank(queues, 0);
    const auto state = run_sweep(plan, *store, crews[0], &rank, {});
    for (std::thread& other : others) other.join();
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(state->ran, 80U);
    EXPECT_EQ(to_csv(all_points(*store, false).value()), alone);
    std::vector<std::size_t> of_rank(size);
    for (std::uint64_t i = 0; i < plan.size(); ++i) {
      ++of_rank.at(store->row(i)->value().outcome.rank);
    }
    for (const std::size_t count : of_rank) EXPECT_GT(count, 0U);
  }
}

TEST(SweepRun, started_by_mpi_is_what_its_variables_say) {
  EXPECT_FALSE(started_by_mpi());
  ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_FALSE(started_by_mpi());
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_TRUE(started_by_mpi());
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  ::setenv("PMIX_RANK", "0", 1);
  ::setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_FALSE(started_by_mpi());
  ::setenv("SLURM_STEP_NUM_TASKS", "3", 1);
  EXPECT_TRUE(started_by_mpi());
  ::unsetenv("PMIX_RANK");
  ::unsetenv("SLURM_STEP_NUM_TASKS");
}

}  // namespace
}  // namespace demarc::sweep
