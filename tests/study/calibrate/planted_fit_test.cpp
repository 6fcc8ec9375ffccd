// A planted truth: a description whose parameters were changed is found again from its figures.
#include "calibrate/calibrate_fixture.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

gpu::Device planted() {
  gpu::Device card = tiny_card();
  gpu::MemorySystem& system = *card.memory_system;
  card.l1.latency_cycles = 60;
  card.l2.latency_cycles = 300;
  card.dram.latency_cycles = 700;
  system.issue_per_cycle = 3.1;
  system.block_start_cycles = 300;
  system.launch_misses = 2;
  system.l1_miss_registers = 70;
  system.store_registers = 40;
  system.port_bytes = 16;
  system.port_write_bytes = 12;
  system.port_atomic_bytes = 4;
  return card;
}

Calibration fitted(const gpu::Device& start, const FigureSet& figures, FitOptions options = {}) {
  auto found = calibrate(start, figures, options, {});
  EXPECT_TRUE(found) << found.error().message;
  return std::move(*found);
}

TEST(PlantedFit, finds_the_parameters_that_were_changed_and_explains_every_figure) {
  const gpu::Device truth = planted();
  const Calibration found = fitted(tiny_card(), figures_of(truth));
  EXPECT_THAT(unexplained(found), IsEmpty()) << calibration_text(found);
  const gpu::MemorySystem& system = *found.device.memory_system;
  EXPECT_NEAR(found.device.l1.latency_cycles, 60, 2);
  EXPECT_NEAR(found.device.l2.latency_cycles, 300, 5);
  EXPECT_NEAR(found.device.dram.latency_cycles, 700, 12);
  EXPECT_NEAR(system.issue_per_cycle, 3.1, 0.1);
  EXPECT_NEAR(system.block_start_cycles, 300, 15);
  EXPECT_EQ(system.launch_misses, 2U);
  EXPECT_NEAR(system.l1_miss_registers, 70, 2);
  EXPECT_NEAR(system.store_registers, 40, 1);
  EXPECT_NEAR(system.port_bytes, 16, 0.5);
  EXPECT_NEAR(system.port_write_bytes, 12, 0.4);
  EXPECT_NEAR(system.port_atomic_bytes, 4, 0.12);
  EXPECT_GT(found.residuals.size(), 20U);
}

TEST(PlantedFit, leaves_a_description_that_explains_all_as_it_is) {
  const gpu::Device card = tiny_card();
  const Calibration found = fitted(card, figures_of(card));
  EXPECT_EQ(found.device, card);
  for (const Residual& residual : found.residuals) {
    EXPECT_EQ(residual.before, residual.figure.value) << residual.figure.name;
    EXPECT_EQ(residual.error(), 0) << residual.figure.name;
  }
}

TEST(PlantedFit, fits_what_the_figures_speak_of_and_says_what_was_left) {
  gpu::Device truth = tiny_card();
  truth.l2.latency_cycles = 400;
  const Calibration found = fitted(tiny_card(), only(figures_of(truth), {"l2_latency"}));
  ASSERT_EQ(found.fitted.size(), 1U);
  EXPECT_NEAR(found.device.l2.latency_cycles, 400, 5);
  EXPECT_EQ(parameter(found, "l2.latency_cycles").before, 216);
  EXPECT_EQ(parameter(found, "l2.latency_cycles").figure, "l2_latency");
  EXPECT_NEAR(found.device.dram.latency_cycles - found.device.l2.latency_cycles, 505 - 216, 1e-6)
      << "what DRAM takes beyond a hit stays";
  const std::string text = calibration_text(found);
  EXPECT_THAT(text,
              HasSubstr("not fitted: memory_system.refresh_ns: the description has no refresh"));
  EXPECT_THAT(text, HasSubstr("not fitted: memory_system.write_queue: no figure 'dram_write' or "
                              "'add' was given"));
}

TEST(PlantedFit, takes_another_figure_of_a_parameter_where_the_first_was_not_measured) {
  gpu::Device truth = tiny_card();
  truth.memory_system->store_registers = 40;
  const Calibration found = fitted(tiny_card(), only(figures_of(truth), {"l2_write_half"}));
  EXPECT_EQ(parameter(found, "memory_system.store_registers").figure, "l2_write_half");
  EXPECT_NEAR(found.device.memory_system->store_registers, 40, 1);
}

// Narrow ports slow one SM, too: its link is widened for nothing before they are.
TEST(PlantedFit, puts_a_number_back_that_its_figure_does_not_need) {
  gpu::Device start = tiny_card();
  start.memory_system->port_bytes = 8;
  gpu::Device truth = tiny_card();
  truth.memory_system->port_bytes = 40;
  const FigureSet figures = only(figures_of(truth), {"l2_read_one_sm", "l2_read"});
  const Calibration found = fitted(start, figures);
  EXPECT_THAT(unexplained(found), IsEmpty());
  EXPECT_NEAR(found.device.memory_system->port_bytes, 40, 1);
  EXPECT_GT(parameter(found, "memory_system.sm_link_bytes").evaluations, 5U);
  EXPECT_EQ(found.device.memory_system->sm_link_bytes, start.memory_system->sm_link_bytes);
}

TEST(PlantedFit, puts_a_number_back_that_hardly_helps_a_figure_which_stays_unexplained) {
  FigureSet figures = only(figures_of(tiny_card()), {"l2_read_one_sm"});
  figures.figures.front().value *= 8;  // more than the L1's miss registers ask for
  const Calibration found = fitted(tiny_card(), figures);
  EXPECT_GT(parameter(found, "memory_system.sm_link_bytes").evaluations, 5U);
  EXPECT_EQ(found.device, tiny_card());
  EXPECT_THAT(unexplained(found), ElementsAre("l2_read_one_sm"));
}

// With four or more instructions per cycle, the lanes limit the multiply-adds.
TEST(PlantedFit, leaves_a_number_that_the_figure_does_not_determine_and_says_so) {
  gpu::Device start = tiny_card();
  start.memory_system->float_per_cycle = 3;
  start.memory_system->issue_per_cycle = 2;
  gpu::Device truth = start;
  truth.memory_system->issue_per_cycle = 16;
  const Calibration found = fitted(start, only(figures_of(truth), {"compute"}));
  EXPECT_EQ(found.device, start);
  const FittedParameter& issue = parameter(found, "memory_system.issue_per_cycle");
  EXPECT_EQ(issue.after, 2);
  EXPECT_THAT(issue.undetermined, testing::StartsWith("'compute' is the same with "));
  EXPECT_THAT(unexplained(found), ElementsAre("compute"));
  EXPECT_THAT(calibration_text(found),
              HasSubstr("left at 2: memory_system.issue_per_cycle: 'compute' is the same with "));
  EXPECT_EQ(Json::parse(calibration_json(found, ""))["parameters"][0]["undetermined"],
            issue.undetermined);
  truth.memory_system->issue_per_cycle = 2.5;  // below the lanes
  const Calibration determined = fitted(start, only(figures_of(truth), {"compute"}));
  EXPECT_NEAR(determined.device.memory_system->issue_per_cycle, 2.5, 0.05);
  EXPECT_EQ(parameter(determined, "memory_system.issue_per_cycle").undetermined, "");
}

TEST(PlantedFit, names_a_figure_that_no_parameter_explains) {
  FigureSet figures = only(figures_of(tiny_card()), {"l2_latency", "l2_read_narrow"});
  figures.figures[1].value *= 2;
  const Calibration found = fitted(tiny_card(), figures);
  EXPECT_THAT(unexplained(found), ElementsAre("l2_read_narrow"));
  EXPECT_THAT(calibration_text(found), HasSubstr("not explained within 5 %: l2_read_narrow\n"));
  FitOptions wide;
  wide.tolerance = 0.6;
  EXPECT_THAT(unexplained(fitted(tiny_card(), figures, wide)), IsEmpty());
}

TEST(PlantedFit, does_not_depend_on_the_number_of_threads) {
  gpu::Device truth = tiny_card();
  truth.memory_system->store_registers = 40;
  const FigureSet figures = only(figures_of(truth), {"l2_write_one_sm", "l2_write"});
  FitOptions one;
  one.figures.threads = 1;
  FitOptions three;
  three.figures.threads = 3;
  EXPECT_EQ(fitted(tiny_card(), figures, one).device, fitted(tiny_card(), figures, three).device);
}

TEST(PlantedFit, gives_a_device_whose_source_says_what_was_fitted_to_what) {
  gpu::Device truth = tiny_card();
  truth.l1.latency_cycles = 50;
  FigureSet figures = only(figures_of(truth), {"l1_latency"});
  figures.device.name = "Some Card";
  figures.device.device = "cuda:3";
  figures.device.driver = "580.1";
  figures.source = "a page";
  const gpu::Device device = calibrated_device(fitted(tiny_card(), figures));
  EXPECT_THAT(device.memory_system->source,
              HasSubstr("to figures of Some Card (cuda:3, driver 580.1) alone, 2026-11-25, figures "
                        "from a page: l1.latency_cycles to l1_latency; the rest as in 'tiny'"));
  EXPECT_THAT(device.source, HasSubstr("fitted to figures of Some Card (cuda:3, driver 580.1)"));
  const auto read = gpu::parse_device(gpu::device_to_json(device), "twin.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_NEAR(read->l1.latency_cycles, 50, 2);
}

TEST(PlantedFit, refuses_what_it_cannot_fit) {
  const gpu::Device card = tiny_card();
  const FigureSet figures = only(figures_of(card), {"l1_latency"});
  const auto refusal = [&](const gpu::Device& start, const FigureSet& set,
                           FitOptions options = {}) {
    const auto found = calibrate(start, set, options, {});
    return found ? "fitted" : found.error().message;
  };
  EXPECT_EQ(refusal(card, {}), "there is no figure to fit to");
  FitOptions none;
  none.tolerance = 0;
  EXPECT_EQ(refusal(card, figures, none), "a tolerance of 0 is not between 0 and 1");
  EXPECT_THAT(refusal(tiny_card(6), figures),
              HasSubstr("tiny (simulated) has 2 SMs, but the description 'tiny' has 6: give a "
                        "description of this"));
  gpu::Device bare = card;
  bare.memory_system.reset();
  EXPECT_THAT(refusal(bare, figures),
              HasSubstr("has no memory_system, so its memory cannot be simulated; give a "
                        "--description that can be simulated"));
  FigureSet wrong = figures;
  wrong.figures.front().value = 0;
  EXPECT_EQ(refusal(card, wrong), "figure 'l1_latency': 0 is not above 0");
  wrong.figures.front().name = "l4_latency";
  EXPECT_THAT(refusal(card, wrong),
              HasSubstr("there is no figure 'l4_latency'; the figures are l1_lat"));
  wrong = figures;
  wrong.figures.push_back(wrong.figures.front());
  EXPECT_EQ(refusal(card, wrong), "figure 'l1_latency' is given twice");
}

TEST(SimulatedFigures, are_refused_of_a_device_with_other_sms_than_described) {
  const auto figures = simulate_figures(tiny_card(4), tiny_card(6), {}, {});
  ASSERT_FALSE(figures);
  EXPECT_EQ(figures.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(figures.error().message, HasSubstr("has 4 SMs, but the description 'tiny' has 6"));
}

}  // namespace
}  // namespace demarc::study
