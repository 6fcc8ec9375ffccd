// Slow runs: which number they are judged by, beside which aggressor, over which victims.
#include "demarc/study/tail.hpp"

#include <gtest/gtest.h>

namespace demarc::study {
namespace {

// `count` runs whose p99 and worst run are `slow` and which else take 100.
std::vector<double> runs_with(double slow, std::size_t count) {
  std::vector<double> runs(count, 100.0);
  for (std::size_t i = 0; i < count / 50; ++i) runs[i] = slow;
  return runs;
}

Tail tail_beside(const std::vector<std::vector<double>>& neighbours,
                 const std::vector<double>& idle) {
  Tail tail;
  for (std::size_t b = 0; b < neighbours.size(); ++b) add_neighbour(tail, b, neighbours[b], idle);
  return tail;
}

TEST(Tail, p99_and_the_worst_run_are_those_beside_the_worst_aggressor_wherever_it_stands) {
  const auto idle = runs_with(100, 1000);
  for (std::size_t worst = 0; worst < 3; ++worst) {
    std::vector<std::vector<double>> neighbours(3, runs_with(150, 1000));
    neighbours[worst] = runs_with(300, 1000);
    const Tail tail = tail_beside(neighbours, idle);
    ASSERT_TRUE(tail.p99);
    EXPECT_DOUBLE_EQ(tail.p99->percent.value, 200);
    EXPECT_EQ(tail.p99->aggressor, worst);
    EXPECT_DOUBLE_EQ(tail.worst.percent, 200);
    EXPECT_EQ(tail.worst.runs, 1000U);
    EXPECT_EQ(tail.worst.aggressor, worst);
  }
}

TEST(Tail, an_aggressor_beside_which_nothing_is_slowed_is_the_worst_of_those_that_speed_up) {
  const Tail tail = tail_beside({runs_with(110, 50), runs_with(130, 50)}, runs_with(200, 50));
  EXPECT_DOUBLE_EQ(tail.worst.percent, -35);
  EXPECT_EQ(tail.worst.aggressor, 1U);
}

TEST(Tail, of_aggressors_that_slow_alike_the_first_is_named) {
  const std::vector<std::vector<double>> neighbours(3, runs_with(150, 1000));
  const Tail tail = tail_beside(neighbours, runs_with(100, 1000));
  EXPECT_EQ(tail.worst.aggressor, 0U);
  ASSERT_TRUE(tail.p99);
  EXPECT_EQ(tail.p99->aggressor, 0U);
}

TEST(Tail, one_neighbour_with_too_few_runs_leaves_no_p99_wherever_it_stands) {
  const auto idle = runs_with(100, 1000);
  for (std::size_t few = 0; few < 3; ++few) {
    std::vector<std::vector<double>> neighbours(3, runs_with(150, 1000));
    neighbours[few] = runs_with(120, 999);
    const Tail tail = tail_beside(neighbours, idle);
    EXPECT_FALSE(tail.p99) << few;
    EXPECT_EQ(judged_by(tail).name, "worst of 1000");
  }
  EXPECT_FALSE(tail_beside({runs_with(150, 1000)}, runs_with(100, 999)).p99);
}

TEST(Tail, a_victim_is_judged_by_p99_where_it_has_one_and_else_by_the_worst_of_how_many) {
  Tail tail;
  tail.worst = {30, 40, 2};
  TailFigure figure = judged_by(tail);
  EXPECT_EQ(figure.name, "worst of 40");
  EXPECT_EQ(figure.percent, 30);
  EXPECT_EQ(figure.aggressor, 2U);
  tail.p99 = P99Row{{10, 9, 11}, 1};
  figure = judged_by(tail);
  EXPECT_EQ(figure.name, "p99");
  EXPECT_EQ(figure.percent, 10);
  EXPECT_EQ(figure.aggressor, 1U);
}

TEST(Tail, average_and_maximum_are_of_all_numbers) {
  const OverVictims over = over_victims({-3, 9, -6, 4});
  EXPECT_EQ(over.victims, 4U);
  EXPECT_DOUBLE_EQ(over.average, 1);
  EXPECT_DOUBLE_EQ(over.maximum, 9);
  EXPECT_DOUBLE_EQ(over_victims({-3, -6}).maximum, -3);
  EXPECT_EQ(over_victims({}).victims, 0U);
}

Tail judged_by_p99(double percent) {
  Tail tail;
  tail.p99 = P99Row{{percent, percent, percent}, 0};
  tail.worst = {900, 1000, 0};
  return tail;
}

Tail judged_by_worst(double percent, std::size_t runs) {
  Tail tail;
  tail.worst = {percent, runs, 0};
  return tail;
}

TEST(Tail, victims_with_a_p99_and_without_are_summed_up_apart) {
  const TailSummary summary =
      summarize_tails({judged_by_worst(8, 40), judged_by_p99(1), judged_by_worst(2, 25),
                       judged_by_p99(5), judged_by_worst(2, 310)});
  EXPECT_EQ(summary.p99.victims, 2U);
  EXPECT_DOUBLE_EQ(summary.p99.average, 3);
  EXPECT_DOUBLE_EQ(summary.p99.maximum, 5);
  EXPECT_EQ(summary.worst.victims, 3U);
  EXPECT_DOUBLE_EQ(summary.worst.average, 4);
  EXPECT_DOUBLE_EQ(summary.worst.maximum, 8);
  EXPECT_EQ(summary.least_runs, 25U);
  EXPECT_EQ(summary.max_runs, 310U);
}

TEST(Tail, numbers_go_by_their_true_names) {
  const auto names = [](const std::vector<Tail>& tails) {
    std::string out;
    for (const NamedTail& one : named_tails(summarize_tails(tails))) out += one.name + "; ";
    return out;
  };
  EXPECT_EQ(names({}), "");
  EXPECT_EQ(names({judged_by_p99(1), judged_by_p99(2)}), "p99; ");
  EXPECT_EQ(names({judged_by_worst(1, 40), judged_by_worst(2, 40)}), "worst of 40 runs; ");
  EXPECT_EQ(names({judged_by_worst(1, 40), judged_by_worst(2, 25)}), "worst of 25 to 40 runs; ");
  EXPECT_EQ(names({judged_by_p99(1), judged_by_p99(2), judged_by_worst(1, 40)}),
            "p99 of 2 victims; worst of 40 runs of 1 victim; ");
}

TEST(Tail, each_name_stands_beside_its_own_number) {
  const auto named = named_tails(summarize_tails({judged_by_p99(1), judged_by_worst(7, 40)}));
  ASSERT_EQ(named.size(), 2U);
  EXPECT_EQ(named[0].percent.maximum, 1);
  EXPECT_EQ(named[1].percent.maximum, 7);
}

}  // namespace
}  // namespace demarc::study
