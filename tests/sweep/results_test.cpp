// Tables of what a store holds.
#include "demarc/sweep/results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "demarc/base/json.hpp"
#include "demarc/base/version.hpp"
#include "impossible.hpp"
#include "order.hpp"
#include "paths.hpp"
#include "plans.hpp"

namespace demarc::sweep {
namespace {

using demarc::test::fresh_folder;
using test::small_plan;
using testing::HasSubstr;

// sum = 100 a + b; a = 3, b = 2 failed.
Store filled(const std::string& name, const std::string& more = "") {
  const Plan plan = small_plan(3, more);
  Store store = Store::open(fresh_folder(name) / "r.db", plan, false).value();
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    const auto positions = plan.positions(i);
    Outcome outcome;
    outcome.done = i != 5;
    if (!outcome.done) outcome.error = "it \"broke\", twice";
    outcome.seconds = 0.25;
    outcome.kept = {Value(static_cast<double>(100 * (positions[0] + 1) + positions[1] + 1)),
                    Value(std::string("w")), std::nullopt};
    if (!outcome.done) outcome.kept.clear();
    EXPECT_TRUE(store.add(plan.point(i).value(), outcome));
  }
  return store;
}

TEST(SweepResults, points_stand_in_the_order_of_the_plan_as_csv_and_json) {
  Store store = filled("results");
  const std::string csv = to_csv(all_points(store, false).value());
  EXPECT_EQ(csv,
            "a,b,sum,word,nothing,error\n1,1,101,w,,\n1,2,102,w,,\n2,1,201,w,,\n2,2,202,w,,\n"
            "3,1,301,w,,\n3,2,,,,\"it \"\"broke\"\", twice\"\n");
  const Json json = Json::parse(to_json(store, all_points(store, true).value(), {"a note"}));
  EXPECT_EQ(json["schema"], "demarc.sweep.export/1");
  EXPECT_EQ(json["sweep"]["command"][0], "topo");
  EXPECT_EQ(json["notes"][0], "a note");
  EXPECT_EQ(json["rows"].size(), 6U);
  EXPECT_EQ(json["rows"][1]["sum"], 102.0);
  EXPECT_EQ(json["rows"][1]["nothing"], nullptr);
  EXPECT_EQ(json["rows"][1]["_seconds"], 0.25);
  EXPECT_EQ(json["rows"][1]["_rank"], 0);
  EXPECT_EQ(json["rows"][1]["_exit_code"], 0);
  EXPECT_EQ(json["rows"][1]["_revision"], revision());
  EXPECT_EQ(json["rows"][1]["_seed"], "");
  EXPECT_EQ(json["rows"][1]["_input"], "");
  EXPECT_EQ(json["rows"][5]["error"], "it \"broke\", twice");
}

TEST(SweepResults, what_is_put_together_is_what_the_sweep_file_says) {
  Store store = filled(
      "summary",
      R"(, "aggregate": {"over": ["b"], "statistics": ["mean", "interval", "min", "max", "p50"],
                                      "best": {"axis": "a", "measure": "sum", "least": false}})");
  const ResultTable table = summary(store).value();
  EXPECT_EQ(to_csv(ResultTable{table.columns, {}}),
            "a,points,sum_mean,sum_low,sum_high,sum_min,sum_max,sum_p50,"
            "word_mean,word_low,word_high,word_min,word_max,word_p50,"
            "nothing_mean,nothing_low,nothing_high,nothing_min,nothing_max,nothing_p50\n");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0][1], Value(std::int64_t{2}));
  EXPECT_EQ(table.rows[0][2], Value(101.5));
  // Student's t of one degree of freedom, 12.706, times 0.5.
  EXPECT_NEAR(std::get<double>(*table.rows[0][3]), 101.5 - 6.353, 1e-3);
  EXPECT_NEAR(std::get<double>(*table.rows[0][4]), 101.5 + 6.353, 1e-3);
  EXPECT_EQ(table.rows[0][5], Value(101.0));
  EXPECT_EQ(table.rows[0][6], Value(102.0));
  EXPECT_EQ(table.rows[0][7], Value(101.0));
  EXPECT_EQ(table.rows[2][1], Value(std::int64_t{1})) << "the one that failed is left out";
  EXPECT_FALSE(table.rows[2][3]) << "one sample has no interval";
  EXPECT_FALSE(table.rows[0][8]) << "a word has no mean";
  EXPECT_EQ(to_csv(best_values(store).value()),
            "best_a,sum_mean,not_significantly_worse\n3,301,unknown\n");
  EXPECT_THAT(to_table(table, 2), HasSubstr("... and 1 more rows\n"));
  ResultTable small{
      {"name", "n"},
      {{Value(std::string("longest")), Value(1.23456789)}, {Value(true), std::nullopt}}};
  EXPECT_EQ(to_table(small, 2), "   name        n\nlongest  1.23457\n   true         \n");
  EXPECT_EQ(to_csv(small), "name,n\nlongest,1.23456789\ntrue,\n");
}

TEST(SweepResults, the_best_of_each_group_is_the_least_unless_more_is_better) {
  Store store = filled("best", R"(, "aggregate": {"over": [], "statistics": [],
                                   "best": {"axis": "a", "measure": "sum"}})");
  EXPECT_EQ(to_csv(best_values(store).value()),
            "b,best_a,sum_mean,not_significantly_worse\n1,1,101,unknown\n2,1,102,unknown\n");
  Store none = filled("none");
  EXPECT_TRUE(best_values(none)->columns.empty());
  EXPECT_EQ(to_csv(summary(none).value()).substr(0, 20), "a,b,points,sum_mean,");
}

TEST(SweepResults, of_equals_the_first_is_the_best) {
  const Plan plan = small_plan(
      2,
      R"(, "aggregate": {"over": [], "statistics": [], "best": {"axis": "a", "measure": "sum"}})");
  for (const double second : {5.0, 4.0}) {
    Store store = Store::open(fresh_folder("equals") / "r.db", plan, false).value();
    for (std::uint64_t i = 0; i < plan.size(); ++i) {
      Outcome outcome;
      outcome.done = true;
      outcome.kept = {Value(plan.positions(i)[0] == 0 ? 5.0 : second), std::nullopt, std::nullopt};
      ASSERT_TRUE(store.add(plan.point(i).value(), outcome));
    }
    EXPECT_EQ(
        to_csv(best_values(store).value()),
        std::string("b,best_a,sum_mean,not_significantly_worse\n") +
            (second == 5 ? "1,1,5,unknown\n2,1,5,unknown\n" : "1,2,4,unknown\n2,2,4,unknown\n"));
  }
}

TEST(SweepResults, values_whose_mean_does_not_differ_significantly_from_the_best_are_named) {
  const Plan plan = small_plan(
      3,
      R"(, "aggregate": {"over": ["b"], "statistics": [], "best": {"axis": "a", "measure": "sum"}})");
  const auto best_of = [&](const std::vector<std::vector<double>>& sums) {
    Store store = Store::open(fresh_folder("alike") / "r.db", plan, false).value();
    for (std::uint64_t i = 0; i < plan.size(); ++i) {
      Outcome outcome;
      outcome.done = true;
      const auto at = plan.positions(i);
      outcome.kept = {Value(sums[at[0]][at[1]]), std::nullopt, std::nullopt};
      EXPECT_TRUE(store.add(plan.point(i).value(), outcome));
    }
    return to_csv(best_values(store).value());
  };
  const std::string head = "best_a,sum_mean,not_significantly_worse\n";
  EXPECT_EQ(best_of({{10, 11}, {10.2, 11.2}, {30, 30.1}}), head + "1,10.5,2\n");
  EXPECT_EQ(best_of({{10, 10.5}, {20, 20.5}, {30, 30.5}}), head + "1,10.25,\n");
  EXPECT_EQ(best_of({{10, 11}, {10, 11}, {10, 11}}), head + "1,10.5,2 3\n");
  EXPECT_EQ(best_of({{-1, -1}, {2, 2}, {3, 3}}), head + "1,-1,unknown\n") << "no ratio to it";
}

TEST(SweepResults, a_points_command_can_be_given_to_a_shell) {
  EXPECT_EQ(command_of({0, {"topo", "--x=1,2", "two words", "it's", ""}, {}, "", "", ""}),
            "demarc topo --x=1,2 'two words' 'it'\\''s' ''");
}

TEST(SweepOrder, each_value_is_met_first_then_the_dearest_points_run) {
  const Plan plan = small_plan(20);
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < plan.size(); ++i) all.push_back(i);
  Order order(plan, all);
  EXPECT_EQ(order.count(), 40U);
  EXPECT_FALSE(order.expected(3));
  // a costs its square, b doubles.
  const auto seconds = [&](std::uint64_t i) {
    const auto at = plan.positions(i);
    return static_cast<double>((at[0] + 1) * (at[0] + 1) * (at[1] + 1));
  };
  std::vector<bool> seen_a(20, false);
  std::vector<std::uint64_t> taken;
  while (!order.empty()) {
    taken.push_back(order.take());
    order.learn(taken.back(), seconds(taken.back()));
  }
  ASSERT_EQ(taken.size(), 40U);
  for (std::size_t i = 0; i < 20; ++i) seen_a[plan.positions(taken[i])[0]] = true;
  EXPECT_EQ(std::count(seen_a.begin(), seen_a.end(), true), 20) << "the first twenty have each a";
  EXPECT_GE(taken[20], 36U) << "one with a = 19 or 20 is the dearest that is left";
  EXPECT_EQ(std::set<std::uint64_t>(taken.begin(), taken.end()).size(), 40U);
  EXPECT_NEAR(*order.expected(7), seconds(7), 0.25 * seconds(7));
  order.give_back(taken[0]);
  EXPECT_EQ(order.count(), 1U);
  EXPECT_EQ(order.take(), taken[0]);
}

// Points 0 to 3 have the sums of `sums`.
std::vector<std::string> zero_notes(const std::string& name, const std::vector<double>& sums) {
  const Plan plan = small_plan(3);
  Store store = Store::open(fresh_folder(name) / "r.db", plan, false).value();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Outcome outcome;
    outcome.done = true;
    outcome.kept = {Value(sums[i]), Value(std::string("0")), std::nullopt};
    EXPECT_TRUE(store.add(plan.point(i).value(), outcome));
  }
  return zero_measures(store).value();
}

TEST(SweepResults, a_measure_that_is_0_everywhere_is_named_from_two_points_on) {
  const auto notes = zero_notes("zeros", {0, 0, 0});
  ASSERT_EQ(notes.size(), 1U) << "words and nulls are not numbers";
  EXPECT_THAT(notes[0], HasSubstr("sum is 0 at all 3 points, so it does not depend on these axes"));
  EXPECT_TRUE(zero_notes("one_zero", {0}).empty());
  EXPECT_EQ(zero_notes("two_zeros", {0, 0}).size(), 1U);
  EXPECT_TRUE(zero_notes("small", {0, 1e-9, 0}).empty());
}

TEST(SweepResults, a_hit_rate_beyond_its_bounds_is_found_wherever_it_is) {
  const auto found = [](const char* text) { return impossible_rate(Json::parse(text)); };
  EXPECT_FALSE(found(R"({"l1_hit_rate": 0, "b": [{"hit_rate": 1.0}], "rate": 7, "hit_rates": 9})"));
  EXPECT_FALSE(found("3"));
  EXPECT_EQ(
      found(R"({"b": [{}, {"l2_hit_rate": 1.5}]})"),
      "the result cannot be right: /b/1/l2_hit_rate is 1.5, and a hit rate is between 0 and 1");
  EXPECT_TRUE(found(R"({"hit_rate": -0.1})"));
  EXPECT_FALSE(found(R"({"hit_rate": null})"));
}

}  // namespace
}  // namespace demarc::sweep
