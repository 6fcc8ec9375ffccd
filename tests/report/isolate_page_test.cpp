// The page of a made-up study: every number that is shown, and what is said of what did not run.
#include "demarc/report/isolate_page.hpp"

#include <gmock/gmock.h>

#include "golden.hpp"
#include "isolate_result.hpp"
#include "made_up.hpp"

namespace demarc::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(IsolatePage, of_a_study_shows_every_number) {
  expect_golden("isolate.json", blocks_of(isolate_page(made_up_study(), "the command")));
}

TEST(IsolatePage, of_a_model_is_said_to_be_one) {
  study::StudyResult result = made_up_study();
  EXPECT_THAT(isolate_page(result, ""), HasSubstr("card in 3 parts\""));
  result.device.measured = false;
  EXPECT_THAT(isolate_page(result, ""), HasSubstr("answers of a model, not measurements"));
}

// Nothing was run: no variation, no seed, and no word of what the figures mean.
TEST(IsolatePage, of_a_forecast_alone_says_that_nothing_was_run) {
  study::StudyResult result = made_up_study();
  result.cells.clear();
  result.modes.clear();
  result.errors.clear();
  expect_golden("isolate_forecast.json", blocks_of(isolate_page(result, "the command")));
}

TEST(IsolatePage, without_a_forecast_says_why) {
  study::StudyResult result = made_up_study();
  result.forecast = {};
  result.forecast.missing = "no description";
  const std::string page = isolate_page(result, "");
  EXPECT_THAT(page, HasSubstr("No forecast: no description."));
  EXPECT_THAT(page, Not(HasSubstr("From PTX, for")));
  result.forecast.missing.clear();
  result.forecast.victims = {forecast_of("va", 0)};
  result.forecast.victims[0].missing = "no PTX";
  const std::string none = isolate_page(result, "");
  EXPECT_THAT(none, HasSubstr("No forecast of `va`: no PTX"));
  EXPECT_THAT(none, Not(HasSubstr("From PTX, for")));
}

TEST(IsolatePage, names_figures_that_cannot_be_right_and_doubts_those_of_a_card) {
  study::StudyResult result = made_up_study();
  EXPECT_THAT(isolate_page(result, ""), Not(HasSubstr("In doubt: ")));
  result.impossible = {"mask: a gain"};
  EXPECT_THAT(isolate_page(result, ""), HasSubstr("In doubt: mask: a gain"));
  result.device.measured = false;
  EXPECT_THAT(isolate_page(result, ""), HasSubstr("Cannot be right: mask: a gain"));
}

// The axis of slowdowns, of which one is far above the others.
TEST(IsolatePage, draws_slowdowns_of_many_sizes_on_a_logarithmic_axis) {
  const auto logarithmic = [](const study::StudyResult& result) {
    for (const Json& block : blocks_in(isolate_page(result, ""))) {
      if (block["kind"] == "chart" && block["title"] == "Slowdown next to the worst neighbour") {
        return block["y"].value("log", false);
      }
    }
    throw std::out_of_range("there is no chart of slowdowns");
  };
  study::StudyResult result = made_up_study();
  EXPECT_FALSE(logarithmic(result));
  result.modes[0].victims[0].mean_percent.value = 5000;
  EXPECT_TRUE(logarithmic(result));
}

// A victim without an idle cell has no slowdown, and not that of another victim.
TEST(IsolatePage, maps_no_slowdown_of_a_victim_that_was_not_measured_next_to_idle_neighbours) {
  // The base64 of four bytes per cell.
  const auto rows = [](const study::StudyResult& result) {
    for (const Json& block : blocks_in(isolate_page(result, ""))) {
      if (block["kind"] == "heat_maps") {
        return block["maps"][0]["r"]["u32"].get<std::string>().size();
      }
    }
    throw std::out_of_range("there are no maps");
  };
  study::StudyResult result = made_up_study();
  EXPECT_EQ(rows(result), 24U) << "four cells";
  std::erase_if(result.cells, [](const study::Cell& cell) {
    return cell.mode == 0 && cell.victim == 0 && !cell.aggressor;
  });
  EXPECT_EQ(rows(result), 12U) << "two cells";
}

TEST(IsolatePage, says_what_a_mode_does_with_launches_and_memory_domains) {
  study::Mode mode{partition::Mode::mask, true};
  const std::string divided = meaning_of_mode(mode);
  EXPECT_THAT(divided, HasSubstr("memory in colours"));
  EXPECT_THAT(divided, Not(HasSubstr("CUDA graph")));
  EXPECT_THAT(divided, Not(HasSubstr("domain")));
  mode.launches = study::Launches::graph;
  mode.common_domain = true;
  EXPECT_EQ(meaning_of_mode(mode),
            divided +
                "; the victim is replayed as a CUDA graph; all parts share one memory "
                "synchronisation domain");
}

TEST(IsolatePage, of_commands_says_what_their_times_are) {
  study::StudyResult result = made_up_study();
  const auto words = HasSubstr("A time of a command is that of a run");
  EXPECT_THAT(isolate_page(result, ""), Not(words));
  result.plan.victims[1].spec = "cmd:make";
  EXPECT_THAT(isolate_page(result, ""), words);
}

TEST(IsolatePage, of_a_study_that_was_ended_early_says_so) {
  study::StudyResult result = made_up_study();
  EXPECT_THAT(isolate_page(result, ""), Not(HasSubstr("Not complete")));
  result.interrupted = "the study measured 3 of 8 cells";
  EXPECT_THAT(isolate_page(result, ""), HasSubstr("**Not complete**: the study measured 3 of 8"));
}

TEST(IsolatePage, of_a_comparison_shows_what_changed_and_names_what_one_study_lacks) {
  study::StudyResult result = made_up_study();
  EXPECT_THAT(isolate_page(result, ""), Not(HasSubstr("Compared with an earlier study")));
  study::Comparison comparison;
  comparison.source = "old.json";
  comparison.differing = {"driver: 1 and 2"};
  comparison.cells = {{"mask", "va", "mm", 1234e3, 2468e3, {2, 1.875, 2.125}, study::Change::worse},
                      {"mask", "gone", "-", 1e3, 1e3, {1, 1, 1}, study::Change::unchanged}};
  comparison.only_before = {"mps: va next to -"};
  comparison.only_now = {"mask: nn next to -"};
  result.comparison = comparison;
  const std::string page = isolate_page(result, "");
  for (const char* words :
       {"`old.json`: Of 2 cells", "(there and now): driver: 1 and 2.", "1234", "2468", "1.875",
        "2.125", "worse", "Only in the earlier study: mps: va next to -.",
        "Only in this one: mask: nn next to -."}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  EXPECT_THAT(page, Not(HasSubstr("gone")));
}

}  // namespace
}  // namespace demarc::report
