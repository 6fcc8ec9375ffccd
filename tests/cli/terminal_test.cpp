// What a user at a terminal sees while the program works.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/process.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;

constexpr std::string_view line_start = "\r\x1b[K";

// What stands on standard error, or on another file, where that is a terminal.
std::string at_a_terminal(std::vector<std::string> arguments, int file = STDERR_FILENO) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(::grantpt(ours) | ::unlockpt(ours), 0);
  const int theirs = ::open(::ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_GE(theirs, 0);
  std::string shown;
  std::thread reader([&] {
    char some[4096];
    for (ssize_t bytes = 0; (bytes = ::read(ours, some, sizeof some)) > 0;) {
      shown.append(some, static_cast<std::size_t>(bytes));
    }
  });
  ProcessOptions options;
  options.own_group = false;
  options.before_exec = [theirs, file] { ::dup2(theirs, file); };
  arguments.insert(arguments.begin(), (build_dir() / "demarc").string());
  const auto ended = run_process(arguments, options);
  ::close(theirs);  // the last: the reader sees the end
  reader.join();
  ::close(ours);
  EXPECT_TRUE(ended && ended->exit_code == 0) << shown;
  return shown;
}

std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// How many bars were drawn, each of which is as full as it says; the most that one says, per cent.
std::pair<std::size_t, int> bars_of(const std::string& shown) {
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
  return {bars, most};
}

TEST(Terminal, a_bar_grows_with_the_work_and_is_gone_at_its_end) {
  const auto folder = fresh_folder("terminal");
  const std::string victim = (folder / "v.txt").string();
  ASSERT_TRUE(write_file(victim, "kernel threads=64\nblock\nwarp\nload +3 0x0/15\n"));
  const std::string shown = at_a_terminal({"isolate", "--device", "sim:gtx1080", "--modes", "mask",
                                           "--aggressors", "va", "--victims", "stream:" + victim});
  EXPECT_GT(bars_of(shown).first, 2U) << shown;
  EXPECT_EQ(bars_of(shown).second, 100) << shown;
  const std::size_t whole = occurrences(shown, "#] 100% ");
  EXPECT_GT(whole, 0U);
  EXPECT_EQ(occurrences(shown, line_start),
            occurrences(shown, std::string(line_start) + "[") + whole)
      << "a whole bar is taken away, no other";
}

TEST(Terminal, kernels_that_are_emulated_have_a_bar) {
  for (const std::vector<std::string>& work :
       {std::vector<std::string>{"emulate", "bundled:backprop", "--threads", "1"},
        {"locality", "bundled:backprop", "--method", "emulated"}}) {
    EXPECT_GT(bars_of(at_a_terminal(work)).first, 0U) << work[0];
  }
}

TEST(Terminal, without_one_nothing_is_shown_of_short_work) {
  EXPECT_EQ(run_demarc({"emulate", "bundled:backprop"}).err, "");
}

TEST(Terminal, quiet_work_has_no_bar) {
  EXPECT_EQ(at_a_terminal({"emulate", "bundled:backprop", "-q", "--threads", "1"}), "");
}

TEST(Terminal, outcomes_have_colours_unless_somebody_wants_none) {
  const std::vector<std::string> work{"isolate",
                                      "--device",
                                      "planted:h100",
                                      "--modes",
                                      "mask",
                                      "--victims",
                                      "va",
                                      "--aggressors",
                                      "mm",
                                      "--samples",
                                      "2",
                                      "--max-samples",
                                      "2",
                                      "--rounds",
                                      "1"};
  const std::string marked = "\x1b[33mA MODEL ANSWERED\x1b[0m: these";
  ::unsetenv("NO_COLOR");
  EXPECT_THAT(at_a_terminal(work, STDOUT_FILENO), HasSubstr(marked));
  EXPECT_THAT(run_demarc(work).out, HasSubstr("\nA MODEL ANSWERED: these")) << "no terminal";
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(at_a_terminal(work, STDOUT_FILENO), HasSubstr("\nA MODEL ANSWERED: these"));
  const auto with = [&](const char* option) {
    std::vector<std::string> line = work;
    line.emplace_back(option);
    return line;
  };
  EXPECT_THAT(run_demarc(with("--color=always")).out, HasSubstr(marked)) << "also with NO_COLOR";
  ::unsetenv("NO_COLOR");
  EXPECT_THAT(at_a_terminal(with("--colour=never"), STDOUT_FILENO),
              HasSubstr("\nA MODEL ANSWERED: these"));
  EXPECT_THAT(at_a_terminal(with("--color=auto"), STDOUT_FILENO), HasSubstr(marked));
  EXPECT_EQ(run_demarc(with("--color=often")).err,
            "demarc isolate: --color: often not in {auto,always,never}\n");
}

TEST(Terminal, a_word_in_another_has_no_colour) {
  const std::string victim = (fresh_folder("terminal_words") / "THRESHOLD").string();
  ASSERT_TRUE(write_file(victim, "kernel threads=64\nblock\nwarp\nload +3 0x0/15\n"));
  const std::string shown = at_a_terminal({"isolate", "--device", "sim:gtx1080", "--modes", "mask",
                                           "--aggressors", "va", "--victims", "stream:" + victim},
                                          STDOUT_FILENO);
  EXPECT_THAT(shown, HasSubstr("THRESHOLD"));
  EXPECT_EQ(shown.find("\x1b[32m"), std::string::npos) << shown;
}

// The command of the result's context, also where its last word is empty.
TEST(Terminal, the_command_line_is_told_as_it_was_given) {
  const Outcome outcome =
      run_demarc({"isolate", "--device", "planted:h100", "--modes", "mask", "--victims", "va",
                  "--aggressors", "mm", "--samples", "2", "--max-samples", "3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["context"]["command"],
            (build_dir() / "demarc").string() +
                " isolate --device planted:h100 --modes mask --victims va --aggressors mm "
                "--samples 2 --max-samples 3 --json");
  EXPECT_EQ(result["plan"]["rounds"], 2);
  EXPECT_EQ(result["plan"]["seed"], 1);
  EXPECT_EQ(result["plan"]["stopping_rule"]["least"], 2);
  EXPECT_EQ(result["plan"]["stopping_rule"]["most"], 3);
}

TEST(Terminal, two_results_may_go_to_one_device_and_not_to_one_new_file) {
  const auto to = [](const std::string& path) {
    return run_demarc({"locality", "bundled:relu", "-o", path, "--html", path});
  };
  EXPECT_EQ(to("/dev/null").exit_code, 0);
  const std::string fresh = (fresh_folder("new_file") / "x").string();
  const Outcome refused = to(fresh);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--output and --html both name " + fresh));
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

}  // namespace
}  // namespace demarc::test
