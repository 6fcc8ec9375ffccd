// What is said of a forecast that is given: nothing is followed.
#include <gtest/gtest.h>

#include "demarc/study/forecast.hpp"

namespace demarc::study {
namespace {

// Asks for these shares of the DRAM's and the L2's bandwidth.
WorkloadForecast asking(const std::string& name, double dram, double l2 = 0, double slowdown = 1) {
  WorkloadForecast row;
  row.name = row.spec = name;
  row.dram_demand_share = dram;
  row.l2_demand_share = l2;
  row.half_memory_slowdown = slowdown;
  return row;
}

WorkloadForecast unknown(const std::string& name) {
  WorkloadForecast row = asking(name, 0);
  row.missing = "it brings compiled code";
  return row;
}

Forecast forecast_of(std::vector<WorkloadForecast> victims,
                     std::vector<WorkloadForecast> aggressors) {
  Forecast out;
  out.device = "card";
  out.victims = std::move(victims);
  out.aggressors = std::move(aggressors);
  return out;
}

Plan plan_for_words(const std::string& modes) {
  Plan plan;
  plan.modes = parse_modes(modes).value();
  return plan;
}

TEST(ForecastWords, an_aggressor_presses_from_a_quarter_of_either_bandwidth_on) {
  EXPECT_TRUE(presses(asking("a", 0.25)));
  EXPECT_TRUE(presses(asking("a", 0, 0.25)));
  EXPECT_FALSE(presses(asking("a", 0.2499, 0.2499)));
  EXPECT_TRUE(presses(unknown("a")));
}

TEST(ForecastWords, a_victim_is_exposed_from_a_twentieth_of_either_bandwidth_on) {
  EXPECT_TRUE(exposed(asking("v", 0.05)));
  EXPECT_TRUE(exposed(asking("v", 0, 0.05)));
  EXPECT_FALSE(exposed(asking("v", 0.0499, 0.0499)));
  EXPECT_TRUE(exposed(unknown("v")));
}

TEST(ForecastWords, the_hardest_is_the_one_that_asks_for_most_of_what_is_known) {
  const auto words = [](std::vector<WorkloadForecast> aggressors) {
    return forecast_words(forecast_of({}, std::move(aggressors)));
  };
  const std::string b = "By forecast b loads the memory most: ";
  EXPECT_TRUE(words({asking("a", 0.3), asking("b", 0.1, 0.5), asking("c", 0.4)}).starts_with(b));
  EXPECT_TRUE(words({asking("b", 0.5), asking("a", 0.3)}).starts_with(b));
  EXPECT_TRUE(words({asking("b", 0.5), asking("a", 0.5)}).starts_with(b));  // the first of equals
  WorkloadForecast wild = unknown("wild");
  wild.dram_demand_share = 0.9;  // share of something else
  EXPECT_EQ(words({wild, asking("b", 0.1, 0.2)}),
            b + "10 % of the DRAM's bandwidth, 20 % of the L2's. Not forecast: wild.");
  EXPECT_EQ(words({wild}), "");
}

TEST(ForecastWords, victims_that_lose_more_than_a_twentieth_with_half_the_l2_are_named) {
  const auto words = [](std::vector<WorkloadForecast> victims) {
    return forecast_words(forecast_of(std::move(victims), {}));
  };
  EXPECT_EQ(words({asking("a", 0, 0, 1.05)}),
            "By forecast with half of the memory no victim takes more than 1.05x as long.");
  EXPECT_EQ(words({asking("a", 0, 0, 1.06)}),
            "By forecast with half of the memory a takes 1.06x as long.");
  EXPECT_EQ(words({asking("a", 0, 0, 1.5), asking("b", 0, 0, 1), asking("c", 0, 0, 2)}),
            "By forecast with half of the memory a takes 1.50x and c takes 2.00x as long.");
  EXPECT_EQ(words({asking("a", 0, 0, 1.5), asking("b", 0, 0, 3), asking("c", 0, 0, 2)}),
            "By forecast with half of the memory a takes 1.50x, b takes 3.00x and c "
            "takes 2.00x as long.");
  WorkloadForecast begun = asking("begun", 0);
  begun.complete = false;
  EXPECT_EQ(words({begun, asking("a", 0)}),
            "By forecast with half of the memory no victim takes more than 1.05x as long, as "
            "far as beginnings can tell.");
  WorkloadForecast lost = unknown("lost");
  lost.half_memory_slowdown = 9;  // slowdown of something else
  EXPECT_EQ(words({asking("a", 0, 0, 1.5), lost}),
            "By forecast with half of the memory a takes 1.50x as long. Not forecast: lost.");
}

TEST(ForecastWords, workloads_are_named_while_they_are_four_and_counted_when_they_are_more) {
  const auto pressing_of = [](std::size_t pressing, std::size_t calm) {
    std::vector<WorkloadForecast> aggressors;
    for (std::size_t i = 0; i < pressing; ++i) {
      aggressors.push_back(asking(std::string(1, static_cast<char>('a' + i)), 0.5));
    }
    for (std::size_t i = 0; i < calm; ++i) aggressors.push_back(asking("calm", 0.1));
    const std::string said =
        recommend(plan_for_words("mask+color"), forecast_of({asking("v", 0.3)}, aggressors));
    const auto from = said.find("mask+color: ") + 12;
    return said.substr(from, said.find(" on the memory") - from);
  };
  EXPECT_EQ(pressing_of(1, 4), "a presses");
  EXPECT_EQ(pressing_of(2, 0), "a and b press");
  EXPECT_EQ(pressing_of(4, 0), "a, b, c and d press");
  EXPECT_EQ(pressing_of(5, 0), "all 5 aggressors press");
  EXPECT_EQ(pressing_of(5, 1), "5 of 6 aggressors press");
}

TEST(ForecastWords, what_is_known_to_press_is_named_and_not_what_may) {
  const Plan plan = plan_for_words("mask,mask+color");
  EXPECT_TRUE(recommend(plan, forecast_of({unknown("x"), asking("v", 0.1), asking("w", 0.2)},
                                          {unknown("app"), asking("va", 0.5)}))
                  .starts_with("Nothing was measured; the forecast recommends mask+color: va "
                               "presses on the memory that v and w need. "));
  EXPECT_TRUE(recommend(plan, forecast_of({unknown("x")}, {unknown("app"), asking("mm", 0.1)}))
                  .starts_with("Nothing was measured; the forecast recommends mask+color: app may "
                               "press on the memory that x may need. "));
}

TEST(ForecastWords, without_a_victim_that_needs_the_memory_it_stays_undivided) {
  EXPECT_TRUE(
      recommend(plan_for_words("mask+color,mask"),
                forecast_of({asking("mm", 0.01)}, {asking("va", 0.5)}))
          .starts_with("Nothing was measured; the forecast recommends mask: no victim asks for 5 % "
                       "of the DRAM's or the L2's bandwidth. By forecast va loads"));
  EXPECT_TRUE(recommend(plan_for_words("mask+color"),
                        forecast_of({asking("mm", 0.01)}, {asking("va", 0.5)}))
                  .starts_with("None of the chosen modes divides the SMs alone; add mask to "
                               "--modes: no victim asks"));
}

TEST(ForecastWords, of_the_modes_that_divide_alike_the_best_known_is_chosen) {
  const auto chosen = [](const std::string& modes, double demand) {
    const std::string said =
        recommend(plan_for_words(modes), forecast_of({asking("v", 0.3)}, {asking("va", demand)}));
    const auto from = said.find("recommends ") + 11;
    return said.substr(from, said.find(':') - from);
  };
  EXPECT_EQ(chosen("none,mps,affinity,green,mask", 0.1), "mask");
  EXPECT_EQ(chosen("none,mps,affinity,green", 0.1), "green");
  EXPECT_EQ(chosen("none,mps,affinity,mask+color", 0.1), "affinity");
  EXPECT_EQ(chosen("none,mps", 0.1), "mps");
  EXPECT_EQ(chosen("mask,affinity+color,green+color", 0.5), "green+color");
  EXPECT_EQ(chosen("mask+windows,green+color", 0.5), "green+color");  // walks are not forecast
}

TEST(ForecastWords, without_a_forecast_the_reason_is_given) {
  Forecast none;
  none.missing = "the model has no description";
  EXPECT_EQ(recommend(plan_for_words("mask"), none), "No forecast: the model has no description.");
  EXPECT_EQ(forecast_text(none), "No forecast: the model has no description.\n");
}

TEST(ForecastWords, the_table_has_each_workload_once_and_says_what_is_a_beginning) {
  WorkloadForecast va = asking("va", 0.931, 0.204, 1.5);
  va.l2_hit_rate = 0.75;
  va.half_l2_hit_rate = 0.125;
  WorkloadForecast nn = asking("nn", 0.1);
  nn.complete = false;
  const Forecast forecast = forecast_of({va, nn}, {va, asking("mm", 0.01)});
  EXPECT_EQ(rows_of(forecast).size(), 3U);
  const std::string text = forecast_text(forecast);
  EXPECT_NE(text.find("  va              93.1    20.4     75.0     12.5    1.50x\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1.00x  of its beginning\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  mm "), std::string::npos) << text;
}

}  // namespace
}  // namespace demarc::study
