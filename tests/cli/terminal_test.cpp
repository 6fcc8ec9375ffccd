// What a user at a terminal sees while the program works. `script` is the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;

constexpr std::string_view line_start = "\r\x1b[K";

std::string at_a_terminal(const std::string& arguments) {
  const Outcome outcome = run_program(
      {"script", "-qec", (build_dir() / "demarc").string() + " " + arguments, "/dev/null"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  return outcome.out;
}

std::size_t times(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Terminal, a_bar_grows_with_the_work_and_is_gone_at_its_end) {
  for (const char* work :
       {"emulate bundled:backprop", "locality bundled:backprop --method emulated"}) {
    const std::string shown = at_a_terminal(work);
    const std::regex bar("\\[(#*) *\\] +(\\d+)% ");
    std::size_t bars = 0;
    int most = 0;
    for (std::sregex_iterator found(shown.begin(), shown.end(), bar), end; found != end; ++found) {
      const double filled = static_cast<double>((*found)[1].length());
      const int percent = std::stoi((*found)[2]);
      EXPECT_NEAR(filled, 0.3 * percent, 1.15) << found->str();
      EXPECT_EQ(found->str().find(']'), 31U) << found->str();
      most = std::max(most, percent);
      ++bars;
    }
    EXPECT_GT(bars, 2U) << work;
    EXPECT_GT(most, 50) << work;
  }
  const auto folder = fresh_folder("terminal");
  const std::string victim = (folder / "v.txt").string();
  ASSERT_TRUE(write_file(victim, "kernel threads=64\nblock\nwarp\nload +3 0x0/15\n"));
  const std::string shown = at_a_terminal(
      "isolate --device sim:gtx1080 --modes mask --aggressors va --victims stream:" + victim);
  const std::size_t whole = times(shown, "#] 100% ");
  EXPECT_GT(whole, 0U);
  EXPECT_EQ(times(shown, line_start), times(shown, std::string(line_start) + "[") + whole)
      << "a whole bar is taken away, no other";
}

TEST(Terminal, without_one_nothing_is_shown) {
  EXPECT_EQ(run_demarc({"emulate", "bundled:backprop"}).err, "");
}

// The command of the result's context, also where its last word is empty.
TEST(Terminal, the_command_line_is_told_as_it_was_given) {
  const Outcome outcome =
      run_demarc({"isolate", "--device", "planted:h100", "--modes", "mask", "--victims", "va",
                  "--aggressors", "mm", "--samples", "2", "--most-samples", "3", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["context"]["command"],
            (build_dir() / "demarc").string() +
                " isolate --device planted:h100 --modes mask --victims va --aggressors mm "
                "--samples 2 --most-samples 3 --json -");
  EXPECT_EQ(result["plan"]["rounds"], 2);
  EXPECT_EQ(result["plan"]["seed"], 1);
  EXPECT_EQ(result["plan"]["stopping_rule"]["least"], 2);
  EXPECT_EQ(result["plan"]["stopping_rule"]["most"], 3);
}

TEST(Terminal, two_results_may_go_to_one_device_and_not_to_one_new_file) {
  const auto to = [](const std::string& path) {
    return run_demarc({"locality", "bundled:relu", "--out", path, "--html", path});
  };
  EXPECT_EQ(to("/dev/null").exit_code, 0);
  const std::string fresh = (fresh_folder("new_file") / "x").string();
  const Outcome refused = to(fresh);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--out and --html both name " + fresh));
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

}  // namespace
}  // namespace demarc::test
