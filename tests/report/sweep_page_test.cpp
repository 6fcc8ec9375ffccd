// The page of a sweep: the best values first, and the devices and seeds of its points at the end.
#include "demarc/report/sweep_page.hpp"

#include <gmock/gmock.h>

#include "golden.hpp"
#include "paths.hpp"

namespace demarc::report {
namespace {

using testing::HasSubstr;

TEST(SweepPage, begins_with_what_is_best_and_ends_with_every_device_and_seed) {
  const char* text = R"({"schema": "demarc.sweep/1",
    "command": ["emulate", "--device", "sim:{card}", "--seed", "{seed}"],
    "axes": {"card": ["one", "two"], "seed": [5, 6]},
    "keep": {"time": "/time"},
    "aggregate": {"over": ["seed"], "statistics": ["mean"],
                  "best": {"axis": "card", "measure": "time", "least": true}}})";
  const auto plan = sweep::Plan::parse(text, "mine.json", ".");
  ASSERT_TRUE(plan) << plan.error().message;
  auto store = sweep::Store::open(test::fresh_folder("sweep_page") / "r.db", *plan, false);
  ASSERT_TRUE(store) << store.error().message;
  for (std::uint64_t i = 0; i < plan->size(); ++i) {
    sweep::Outcome outcome;
    outcome.done = true;
    outcome.kept = {sweep::Value(1234.5678 + static_cast<double>(i))};
    ASSERT_TRUE(store->add(plan->point(i).value(), outcome));
  }
  const auto page = sweep_page(*store, "the command");
  ASSERT_TRUE(page) << page.error().message;
  const std::string blocks = blocks_of(*page);
  EXPECT_THAT(blocks,
              HasSubstr("{\"kind\":\"heading\",\"text\":\"Result\",\"level\":2}\n"
                        "{\"kind\":\"prose\",\"text\":\"The card with the least mean `time`"));
  EXPECT_THAT(blocks, HasSubstr("{\"t\":\"1 235\",\"n\":1235.0678}")) << "three digits";
  EXPECT_THAT(blocks,
              HasSubstr("[\"command\",\"the command\"],[\"device\",\"sim:one\"],[\"device\","
                        "\"sim:two\"],[\"seed\",\"5, 6\"],[\"sweep\",\"mine.json\"]]}\n"));
}

TEST(SweepPage, names_a_measure_that_is_0_everywhere) {
  const char* text = R"({"schema": "demarc.sweep/1", "command": ["topo", "--device", "sim:{n}"],
    "axes": {"n": {"from": 1, "to": 2, "step": 1}}, "keep": {"time": "/time", "other": "/o"}})";
  const auto plan = sweep::Plan::parse(text, "mine.json", ".");
  ASSERT_TRUE(plan) << plan.error().message;
  auto store = sweep::Store::open(test::fresh_folder("sweep_page") / "r.db", *plan, false);
  ASSERT_TRUE(store) << store.error().message;
  for (std::uint64_t i = 0; i < plan->size(); ++i) {
    sweep::Outcome outcome;
    outcome.done = true;
    outcome.kept = {sweep::Value(0.0), sweep::Value(1.0)};
    ASSERT_TRUE(store->add(plan->point(i).value(), outcome));
  }
  const auto page = sweep_page(*store, "the command");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_THAT(blocks_of(*page), HasSubstr("Note: time is 0 at all 2 points, so it does not"));
  EXPECT_THAT(blocks_of(*page), testing::Not(HasSubstr("Note: other")));
}

TEST(SweepPage, of_many_points_it_has_the_commands_of_the_first_and_says_so) {
  const char* text = R"({"schema": "demarc.sweep/1", "command": ["topo", "--device", "sim:{n}"],
    "axes": {"n": {"from": 1, "to": 503, "step": 1}}, "keep": {"time": "/time"}})";
  const auto plan = sweep::Plan::parse(text, "mine.json", ".");
  ASSERT_TRUE(plan) << plan.error().message;
  auto store = sweep::Store::open(test::fresh_folder("sweep_page") / "r.db", *plan, false);
  ASSERT_TRUE(store) << store.error().message;
  for (std::uint64_t i = 1; i < plan->size(); ++i) {  // the first one has not ended
    sweep::Outcome outcome;
    outcome.done = true;
    outcome.kept = {sweep::Value(0.5 + static_cast<double>(i))};
    ASSERT_TRUE(store->add(plan->point(i).value(), outcome));
  }
  const auto page = sweep_page(*store, "the command");
  ASSERT_TRUE(page) << page.error().message;
  const std::string blocks = blocks_of(*page);
  EXPECT_THAT(blocks, HasSubstr("The first 500 of 502 points"));
  EXPECT_THAT(blocks, testing::Not(HasSubstr("demarc topo --device sim:1\"")));
  EXPECT_THAT(
      blocks,
      HasSubstr(
          R"("n":501.0},{"t":"501","n":500.5},{"t":""},{"t":"demarc topo --device sim:501"})"));
  EXPECT_THAT(blocks, testing::Not(HasSubstr("demarc topo --device sim:502\"")));
}

}  // namespace
}  // namespace demarc::report
