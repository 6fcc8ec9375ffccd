// The page of a made-up study: every number that is shown, and what is said of what did not run.
#include "demarc/report/isolate_page.hpp"

#include <gmock/gmock.h>

#include "golden.hpp"
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

}  // namespace
}  // namespace demarc::report
