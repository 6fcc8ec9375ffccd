// demarc sweep as a user meets it: what is said of a measure that is 0 everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SweepVerb, show_and_export_name_a_measure_that_is_0_at_every_point) {
  const auto folder = fresh_folder("sweep_zeros");
  const std::string plan = (folder / "plan.json").string();
  const std::string database = (folder / "r.db").string();
  std::ofstream(plan) << R"({"schema": "demarc.sweep/1",
      "command": ["topo", "--device", "sim:{card}", "--json"],
      "axes": {"card": ["gtx1080", "titan-v"]},
      "keep": {"reads": "/memory_system/launch_misses", "clock": "/sm_clock_hz"}})";
  const auto ran = run_demarc({"sweep", "run", plan, "--db", database});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto note = HasSubstr("note: reads is 0 at all 2 points, so it does not depend on these");
  const auto shown = run_demarc({"sweep", "show", database});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, note);
  EXPECT_THAT(shown.out, Not(HasSubstr("note: clock")));
  const auto exported = run_demarc({"sweep", "export", database});
  EXPECT_EQ(exported.exit_code, 0);
  EXPECT_THAT(exported.err, note);
  EXPECT_THAT(exported.out, Not(HasSubstr("note")));
  for (const char* const verb : {"show", "export"}) {
    const auto json = run_demarc({"sweep", verb, database, "--json"});
    EXPECT_EQ(Json::parse(json.out)["notes"].size(), 1U) << verb;
  }
}

}  // namespace
}  // namespace demarc::test
