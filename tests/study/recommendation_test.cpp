// What is recommended, of results that are given: nothing runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

// Modes with these greatest variations of the first of two victims; the worst of 40 runs is one per
// cent more.
StudyResult invented(const std::vector<std::pair<std::string, double>>& modes) {
  StudyResult result;
  result.plan.victims = {{"stream", "stream"}, {"mm", "mm"}};
  result.plan.aggressors = {{"mm", "mm"}, {"stream", "stream"}};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    result.plan.modes.push_back(parse_modes(modes[i].first)->front());
    ModeSummary summary;
    summary.mode = i;
    Variation mm;
    mm.mean_percent.value = 0.5;
    mm.victim = 1;
    Variation stream;
    stream.mean_percent.value = modes[i].second;
    stream.worst_for_mean = 1;
    stream.overhead = 0.5;
    mm.overhead = 0.75;
    summary.victims = {stream, mm};
    summary.mean = {2, modes[i].second, modes[i].second};
    summary.tail.worst = {2, modes[i].second, modes[i].second + 1};
    summary.tail.least_runs = summary.tail.max_runs = 40;
    result.modes.push_back(summary);
  }
  return result;
}

// For one aggressor that asks for these shares, and of no victim.
Forecast forecast_of(double dram, double l2) {
  WorkloadForecast aggressor;
  aggressor.name = "va";
  aggressor.dram_demand_share = dram;
  aggressor.l2_demand_share = l2;
  Forecast forecast;
  forecast.aggressors = {aggressor};
  return forecast;
}

std::string first_mode_of(const StudyResult& result) {
  const std::string text = recommend(result);
  return text.substr(0, text.find(':'));
}

// What is said of a mode of invented(), behind its name.
std::string figures(const char* slowdown, const char* worst) {
  return fmt::format(
      ": worst slowdown {} (stream next to stream; worst of 40 runs {}), overhead 0.62x on average "
      "and 0.75x at most (mm).",
      slowdown, worst);
}

TEST(Recommendation, gives_slowdown_and_overhead_of_the_best_mode_and_of_the_rest) {
  EXPECT_EQ(recommend(invented({{"mps", 140}, {"mask+color", 2.4}, {"mask", 37.2}})),
            "Use mask+color" + figures("1.02x", "1.03x") + " mask" + figures("1.37x", "1.38x") +
                " mps" + figures("2.40x", "2.41x"));
}

TEST(Recommendation, a_doubt_about_the_workloads_stands_behind_the_figures) {
  StudyResult result = invented({{"mask", 2}});
  result.doubt = "Everything is small";
  EXPECT_EQ(recommend(result), "Use mask" + figures("1.02x", "1.03x") + " Everything is small.");
}

TEST(Recommendation, gives_the_mode_that_its_words_name_and_none_where_nothing_ran) {
  const StudyResult held = invented({{"mps", 140}, {"mask+color", 2.4}, {"mask", 37.2}});
  EXPECT_EQ(recommended_mode(held), &held.modes[1]);
  const StudyResult broken = invented({{"mps", 140}, {"green", 60}});
  EXPECT_EQ(recommended_mode(broken), &broken.modes[1]);
  EXPECT_GE(recommended_mode(broken)->mean.maximum, holds_below);
  EXPECT_EQ(recommended_mode(invented({})), nullptr);
  StudyResult quiet = invented({{"mask+color", 1}, {"mask", 2}});
  quiet.forecast = forecast_of(0.1, 0.1);
  EXPECT_EQ(recommended_mode(quiet), &quiet.modes[1]);
}

TEST(Recommendation, says_so_when_nothing_holds) {
  EXPECT_EQ(recommend(invented({{"mps", 140}, {"green", 60}})),
            "No mode keeps every slowdown below 1.10x; the best is green" +
                figures("1.60x", "1.61x") + " mps" + figures("2.40x", "2.41x"));
}

TEST(Recommendation, a_victim_slowed_by_a_tenth_is_not_held_and_one_slowed_by_less_is) {
  EXPECT_TRUE(recommend(invented({{"mask", 10}})).starts_with("No mode keeps every slowdown"));
  EXPECT_TRUE(
      recommend(invented({{"mask", 9.99}})).starts_with("Use mask: worst slowdown 1.10x ("));
}

TEST(Recommendation, names_the_victim_that_suffers_most_wherever_it_stands) {
  StudyResult result = invented({{"mask", 40}});
  result.modes[0].victims[1].mean_percent.value = 50;  // mm, beside mm
  result.modes[0].mean.maximum = 50;
  EXPECT_NE(recommend(result).find("mask: worst slowdown 1.50x (mm next to mm;"),
            std::string::npos);
}

TEST(Recommendation, of_equals_the_first_of_the_plan_is_named) {
  StudyResult result = invented({{"mps", 40}, {"mask", 40}});
  for (ModeSummary& mode : result.modes) mode.victims[1].mean_percent.value = 40;
  EXPECT_EQ(recommend(result), "No mode keeps every slowdown below 1.10x; the best is mps" +
                                   figures("1.40x", "1.41x") + " mask" + figures("1.40x", "1.41x"));
}

TEST(Recommendation, gives_p99_and_worst_their_names_and_numbers_of_victims) {
  StudyResult result = invented({{"mask", 2}});
  result.modes[0].tail.p99 = {1, 0.3, 0.3};
  result.modes[0].tail.worst.victims = 1;
  result.modes[0].tail.least_runs = 25;
  EXPECT_EQ(
      recommend(result),
      "Use mask: worst slowdown 1.02x (stream next to stream; p99 of 1 victim 1.00x; worst of "
      "25 to 40 runs of 1 victim 1.03x), overhead 0.62x on average and 0.75x at most (mm).");
}

TEST(Recommendation, of_one_victim_there_is_one_overhead) {
  StudyResult result = invented({{"mask", 2}});
  result.plan.victims.pop_back();
  result.modes[0].victims.pop_back();
  EXPECT_EQ(recommend(result),
            "Use mask: worst slowdown 1.02x (stream next to stream; worst of 40 runs 1.03x), "
            "overhead 0.50x.");
}

TEST(Recommendation, a_mode_that_lost_a_victim_is_not_judged) {
  StudyResult result = invented({{"mask", 2}, {"mask+color", 1}});
  result.modes[1].victims.pop_back();
  EXPECT_EQ(recommend(result), "Use mask" + figures("1.02x", "1.03x"));
  result.modes[0].victims.clear();
  EXPECT_EQ(recommend(result),
            "No mode ran every victim with correct results, so there is nothing to recommend.");
}

TEST(Recommendation, simulated_windows_are_not_judged_because_their_walks_are_not_those_of_a_card) {
  StudyResult result = invented({{"mask+windows", 0}, {"mask+color", 1}});
  result.device.measured = false;
  EXPECT_EQ(first_mode_of(result), "Use mask+color");
  EXPECT_EQ(recommend(result).find("mask+windows"), std::string::npos);
  result.device.measured = true;
  EXPECT_EQ(first_mode_of(result), "Use mask+windows");
}

TEST(Recommendation, undivided_memory_is_preferred_only_where_it_holds) {
  StudyResult result = invented({{"mask", 9}, {"mask+color", 1}});
  result.forecast = forecast_of(0.1, 0.1);
  EXPECT_EQ(first_mode_of(result), "Use mask");
  EXPECT_NE(recommend(result).find("Colours would gain nothing"), std::string::npos);
  StudyResult throttled = invented({{"mask", 50}, {"throttle", 2}, {"mask+color", 1}});
  throttled.forecast = result.forecast;
  EXPECT_EQ(first_mode_of(throttled), "Use mask+color");
  StudyResult tenants = invented({{"mask", 5}, {"tenant", 1}});
  tenants.forecast = result.forecast;
  EXPECT_EQ(first_mode_of(tenants), "Use mask") << "tenants have colours";
  result.modes[0].mean.maximum = 10;
  EXPECT_EQ(first_mode_of(result), "Use mask+color");
  EXPECT_EQ(recommend(result).find("Colours would gain nothing"), std::string::npos);
}

TEST(Recommendation, of_the_modes_without_colours_that_hold_the_best_is_preferred) {
  StudyResult result =
      invented({{"green", 8}, {"mask+color", 1}, {"mask", 4}, {"green+color", 2}, {"mps", 50}});
  result.forecast = forecast_of(0, 0);
  const std::string text = recommend(result);
  EXPECT_TRUE(text.starts_with("Use mask: ")) << text;
  const std::vector<std::string> order{
      "Use mask: ", " mask+color: ", " green+color: ", " green: ", " mps: "};
  for (std::size_t i = 1; i < order.size(); ++i) {
    EXPECT_LT(text.find(order[i - 1]), text.find(order[i])) << text;
  }
}

TEST(Recommendation, where_an_aggressor_presses_or_nothing_is_forecast_colours_stay) {
  StudyResult result = invented({{"mask", 3}, {"mask+color", 1}});
  EXPECT_EQ(first_mode_of(result), "Use mask+color");  // no forecast
  result.forecast = forecast_of(pressing_share, 0);
  EXPECT_EQ(first_mode_of(result), "Use mask+color");
  result.forecast = forecast_of(0, pressing_share);
  EXPECT_EQ(first_mode_of(result), "Use mask+color");
  result.forecast = forecast_of(0.249, 0.249);
  EXPECT_EQ(first_mode_of(result), "Use mask");
  result.forecast.aggressors.push_back(result.forecast.aggressors[0]);
  result.forecast.aggressors[1].missing = "it brings compiled code";
  EXPECT_EQ(first_mode_of(result), "Use mask+color");
}

TEST(Recommendation, where_no_colours_are_best_anyway_they_are_not_spoken_of) {
  StudyResult result = invented({{"mask", 1}, {"mask+color", 3}});
  result.forecast = forecast_of(0.1, 0.1);
  EXPECT_EQ(recommend(result).find("Colours would gain nothing"), std::string::npos);
}

// The neighbour's runs per second under the first mode and under the second.
StudyResult with_rates(StudyResult result, double first, double second) {
  for (const double rate : {first, second}) {
    Cell cell;
    cell.mode = result.cells.size();
    cell.aggressor = 1;
    cell.aggressor_rate = rate;
    cell.samples_ns = {1};
    result.cells.push_back(cell);
  }
  return result;
}

TEST(Throttling, that_holds_says_what_it_takes_from_the_neighbours) {
  const StudyResult result = invented({{"throttle", 1}, {"mask+color", 2}, {"mask", 3}});
  const std::string text = recommend(with_rates(result, 10, 40));
  EXPECT_TRUE(text.starts_with("Use mask+color: ")) << text;
  EXPECT_TRUE(text.ends_with(
      " throttle" + figures("1.01x", "1.02x") +
      " Under throttle the neighbours do 0.25x of the work that they do under mask+color, so "
      "colours are worth their overhead only if the neighbours need more."))
      << text;
  EXPECT_EQ(recommended_mode(result), &result.modes[1]);
}

TEST(Throttling, by_preemption_is_judged_alike_even_if_the_neighbours_do_nothing) {
  const StudyResult result = invented({{"preempt", 0}, {"throttle", 1}, {"mask+color", 2}});
  StudyResult measured = with_rates(result, 0, 20);
  Cell cell = measured.cells[1];
  cell.mode = 2;
  cell.aggressor_rate = 40;
  measured.cells.push_back(cell);
  const std::string text = recommend(measured);
  EXPECT_TRUE(text.starts_with("Use mask+color: ")) << text;
  EXPECT_TRUE(text.ends_with(
      " Under preempt the neighbours do 0.00x of the work that they do under mask+color, so "
      "colours are worth their overhead only if the neighbours need more. Under throttle the "
      "neighbours do 0.50x of the work that they do under mask+color, so colours are worth their "
      "overhead only if the neighbours need more."))
      << text;
  StudyResult undivided = invented({{"mask", 5}, {"preempt", 1}, {"mask+color", 2}});
  undivided.forecast = forecast_of(0, 0);
  EXPECT_EQ(first_mode_of(undivided), "Use mask");
}

TEST(Throttling, that_does_not_hold_is_said_not_to) {
  const StudyResult result = invented({{"throttle", 20}, {"mask+color", 2}});
  const std::string text = recommend(with_rates(result, 10, 40));
  EXPECT_TRUE(
      text.ends_with("0.25x of the work that they do under mask+color, and only mask+color "
                     "keeps slowdowns below 1.10x, so colours are worth their overhead."))
      << text;
  const StudyResult neither = invented({{"throttle", 20}, {"mask+color", 10}});
  EXPECT_TRUE(recommend(with_rates(neither, 10, 40))
                  .ends_with("under mask+color, and neither keeps slowdowns below 1.10x."));
}

TEST(Throttling, that_lets_the_neighbours_do_more_leaves_colours_nothing) {
  const StudyResult result = invented({{"throttle", 1}, {"mask+color", 2}});
  for (const double rate : {40.0, 60.0}) {
    EXPECT_TRUE(recommend(with_rates(result, rate, 40))
                    .ends_with("under mask+color, so colours are not worth their overhead."));
  }
}

TEST(Throttling, that_alone_holds_is_recommended) {
  EXPECT_TRUE(recommend(with_rates(invented({{"throttle", 5}, {"mask+color", 12}}), 10, 40))
                  .ends_with("under mask+color, and only throttle keeps slowdowns below 1.10x."));
  EXPECT_EQ(first_mode_of(invented({{"throttle", 5}, {"mask+color", 12}, {"mask", 11}})),
            "Use throttle");
}

TEST(Throttling, is_not_compared_with_work_that_is_not_known) {
  const StudyResult result = invented({{"throttle", 1}, {"mask+color", 2}});
  EXPECT_EQ(recommend(with_rates(result, 10, 0)).find("Under throttle"), std::string::npos);
  StudyResult not_run = with_rates(result, 10, 40);
  not_run.cells[0].samples_ns.clear();
  EXPECT_EQ(recommend(not_run).find("Under throttle"), std::string::npos);
  StudyResult commands = with_rates(result, 0, 40);
  commands.plan.aggressors[1].spec = "cmd:./trainer";
  EXPECT_EQ(recommend(commands).find("Under throttle"), std::string::npos);
}

TEST(Throttling, without_colours_says_what_it_takes_from_the_neighbours_as_against_the_best_mode) {
  const std::string text =
      recommend(with_rates(invented({{"preempt", 0}, {"mask", 20}, {"none", 30}}), 1, 40));
  EXPECT_TRUE(text.starts_with("Use preempt: ")) << text;
  EXPECT_TRUE(
      text.ends_with(" Under preempt the neighbours do 0.03x of the work that they do under mask."))
      << text;
  EXPECT_EQ(recommend(with_rates(invented({{"preempt", 0}, {"throttle", 1}}), 1, 40)).find("Under"),
            std::string::npos)
      << "neither lets them work";
}

}  // namespace
}  // namespace demarc::study
