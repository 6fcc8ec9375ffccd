// Figures measured on an executor: the stand-in for libcuda, and lanes that follow a script.
#include "calibrate/calibrate_fixture.hpp"
#include "calibrate/figure_rows.hpp"
#include "gpu_executor_fixture.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

FigureOptions few_runs() {
  FigureOptions options;
  options.rule.warm_up = 1;
  options.rule.least = options.rule.most = 2;
  return options;
}

using testing::HasSubstr;

using CardFigures = GpuExecutorTest;

TEST_F(CardFigures, are_measured_of_every_row_on_the_whole_card_and_on_half_of_it) {
  const auto executor = open();
  const auto set = measure_figures(tiny_card(24), *executor, few_runs(), {});
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_EQ(set->figures.size(), figure_rows().size());
  for (std::size_t i = 0; i < set->figures.size(); ++i) {
    EXPECT_EQ(set->figures[i].name, figure_rows()[i].name);
    EXPECT_GT(set->figures[i].value, 0) << set->figures[i].name;
  }
  EXPECT_EQ(set->device.sms, 24U);
  EXPECT_TRUE(set->device.measured);
  EXPECT_THAT(set->device.notes, testing::Contains(HasSubstr("halves: part 1/2: SMs ")));
}

TEST_F(CardFigures, are_refused_with_a_description_of_other_sms) {
  const auto executor = open();
  const auto set = measure_figures(tiny_card(4), *executor, few_runs(), {});
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message,
              HasSubstr("Fake GPU has 24 SMs, but the description 'tiny' has 4"));
}

TEST(ScriptedFigures, that_cannot_be_measured_are_named_and_end_the_measurement) {
  const auto refusal = [](const std::string& entry, Error fault) {
    Script script;
    script.sms = 2;
    script.faults.emplace(entry, std::move(fault));
    ScriptedExecutor executor(script);
    const auto set = measure_figures(tiny_card(), executor, few_runs(), {});
    EXPECT_FALSE(set);
    EXPECT_EQ(set.error().kind, ErrorKind::invalid_input);
    return set.error().message;
  };
  const Error none{ErrorKind::missing_capability, "no room"};
  EXPECT_EQ(refusal("whole/0 load dram_read", none),
            "figure 'dram_read' cannot be measured: no room");
  EXPECT_EQ(refusal("divide mask", {ErrorKind::check_failed, "a mask does not hold"}),
            "figure 'l2_read_half' cannot be measured: a mask does not hold");
  EXPECT_EQ(refusal("mask/0 sample atomics_half", none),
            "figure 'atomics_half' cannot be measured: no room");
}

TEST(ScriptedFigures, of_half_a_card_are_measured_in_a_green_context_where_there_are_no_masks) {
  Script script;
  script.sms = 2;
  const Error none{ErrorKind::missing_capability, "no masks"};
  script.faults.emplace("divide mask", none);
  ScriptedExecutor executor(script);
  const auto set = measure_figures(tiny_card(), executor, few_runs(), {});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_THAT(script.log, testing::Contains("green/0 sample add_half"));
  script.faults.emplace("divide green", Error{ErrorKind::missing_capability, "no contexts"});
  EXPECT_EQ(measure_figures(tiny_card(), executor, few_runs(), {}).error().message,
            "figure 'l2_read_half' cannot be measured: no masks; no contexts");
}

TEST(ScriptedFigures, above_the_bus_of_the_card_end_the_measurement) {
  Script script;
  script.sms = 2;
  script.card = "NVIDIA H200";
  script.sample = {1};
  ScriptedExecutor executor(script);
  const auto set = measure_figures(tiny_card(), executor, few_runs(), {});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(set.error().message,
              HasSubstr("GB/s cannot be right, because NVIDIA H200 has 4814.3 GB/s at most"));
}

TEST(ScriptedFigures, take_time_and_say_how_sure_they_are) {
  Script script;
  script.sms = 2;
  ScriptedExecutor executor(script);
  script.sample = {512};
  const auto set = measure_figures(tiny_card(), executor, few_runs(), {});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(figure(*set, "l1_latency").value, 0.25) << "2048 loads";
  EXPECT_EQ(figure(*set, "l1_latency").spread, 0);
  script.sample = {0};
  EXPECT_EQ(measure_figures(tiny_card(), executor, few_runs(), {}).error().message,
            "figure 'l1_latency' cannot be measured: its runs are too short for the card's clock");
}

}  // namespace
}  // namespace demarc::study
