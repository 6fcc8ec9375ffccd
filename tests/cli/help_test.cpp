// What --help and the refusals of the program itself say: verbs, defaults, ranges.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "demarc/base/version.hpp"
#include "help_pages.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Help, shows_the_product_first_and_the_verbs_in_groups) {
  const Outcome help = run_demarc({"-h"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_THAT(help.out,
              StartsWith("Demarc: let several workloads share one GPU without sharing each "
                         "other's slowdowns.\n"
                         "\n"
                         "  demarc exec --part 1/2 -- ./detector &\n"
                         "  demarc exec --part 2/2 -- ./trainer\n"));
  std::size_t last = 0;
  for (const std::string line :
       {"Share a card:", "  exec ",  "  serve ",    "  lease ",     "  doctor ",    "  topo ",
        "  verify ",     "Measure:", "  isolate ",  "  attack ",    "  probe ",     "  calibrate ",
        "  blocks ",     "  demo ",  "Laboratory:", "  emulate ",   "  locality ",  "  ptx ",
        "  rewrite ",    "  run ",   "  capture ",  "  schedule ",  "  translate ", "  sweep ",
        "Help:",         "  list ",  "  help ",     "  completion "}) {
    const std::size_t at = help.out.find("\n" + line);
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_GT(at, last) << line;
    last = at;
  }
  EXPECT_EQ(run_demarc({}).out, help.out) << "the program alone says the same";
  EXPECT_EQ(run_demarc({}).exit_code, 0);
  EXPECT_EQ(run_demarc({"-q"}).out, help.out);
  EXPECT_EQ(run_demarc({"--help", "isolate"}).out, run_demarc({"isolate", "--help"}).out);
}

TEST(Help, options_of_the_program_stand_before_the_verb_too) {
  const std::string tree = run_demarc({"topo", "--device", "sim:gtx1080"}).out;
  for (const std::vector<std::string>& before :
       {std::vector<std::string>{"-q"}, {"--color", "never"}, {"--colour=never", "--quiet"}}) {
    std::vector<std::string> line = before;
    line.insert(line.end(), {"topo", "--device", "sim:gtx1080"});
    const Outcome outcome = run_demarc(line);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, tree);
  }
  EXPECT_EQ(run_demarc({"-q", "bogus"}).err,
            "demarc: there is no verb 'bogus'; demarc --help shows all\n");
}

TEST(Help, the_version_is_told) {
  const Outcome version_told = run_demarc({"--version"});
  EXPECT_EQ(version_told.exit_code, 0);
  EXPECT_EQ(version_told.out, fmt::format("demarc {}\n", version()));
}

TEST(Help, a_subcommand_is_needed) {
  for (const std::vector<std::string>& none :
       {std::vector<std::string>{"probe"}, {"probe", "--json"}}) {
    const Outcome outcome = run_demarc(none);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Help, options_name_the_defaults_that_they_have) {
  const std::pair<std::vector<std::string>, std::vector<std::string>> verbs[] = {
      {{"verify"}, {"--color-count UINT=2 ", "--max-slowdown FLOAT=1.15 "}},
      {{"probe", "memory"}, {" in [0.25 - 4096]=8\n", "--seed UINT=1 "}},
      {{"probe", "translation"}, {" in [0.25 - 100]=100\n", " in [0.25 - 64]=4\n", "TEXT=cuda:0"}},
      {{"run"}, {" in [0.001 - 86400]=60\n"}},
      {{"attack"}, {"--longest FLOAT=2 "}},
      {{"locality"}, {" in [1 - 64]=1 "}},
      {{"rewrite"}, {"--color UINT=0 "}},
      {{"isolate"},
       {"--parts UINT=2 ", "--seed UINT=1 ", "--masks TEXT ... ", "--clock TEXT=gpu "}},
      {{"exec"}, {"--announce INT ", "--sync-domain TEXT=free "}}};
  for (const auto& [verb, defaults] : verbs) {
    std::vector<std::string> arguments = verb;
    arguments.emplace_back("--help");
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    for (const std::string& told : defaults) EXPECT_THAT(outcome.out, HasSubstr(told)) << verb[0];
  }
}

TEST(Help, a_number_outside_an_options_range_is_refused_with_the_range) {
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"probe", "memory", "--memory-gib", "0.2"},
       "--memory-gib: Value 0.2 not in range 0.250000 to 4096.000000"},
      {{"run", "--limit", "0"}, "--limit: Value 0 not in range 0.001000 to 86400.000000"},
      {{"exec", "--announce", "-1"}, "--announce: Value -1 not in range 0 to 2147483647\n"},
      {{"locality", "--gpus", "0"}, "--gpus: Value 0 not in range 1 to 64"},
      {{"emulate", "--limit", "0"}, "--limit: Value 0 not in range 1 to 4611686018427387904"}};
  for (const auto& [arguments, told] : wrong) {
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << told;
    EXPECT_THAT(outcome.err, HasSubstr(told));
  }
}

TEST(Help, a_result_that_cannot_be_written_is_an_error) {
  const Outcome outcome =
      run_program({"/bin/sh", "-c", "exec \"$0\" topo --device sim:gtx1080 >/dev/full",
                   (build_dir() / "demarc").string()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("demarc topo: standard output: cannot be written"));
}

// Among these a number chooses one of several, and without them nothing is chosen.
const std::set<std::string>& numbers_without_default() {
  static const std::set<std::string> names{"--pid", "--announce", "--local-threads"};
  return names;
}

// Words that begin with a capital letter wherever they stand: PTX, TPCs, GiB.
bool is_acronym(const std::string& word) {
  return std::count_if(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c); }) >
         1;
}

// A line that says what something is for, as all of them are written.
void expect_well_written(const std::string& text, const std::string& where) {
  constexpr std::size_t longest = 120;
  ASSERT_FALSE(text.empty()) << where << " says nothing";
  EXPECT_LE(text.size(), longest) << where << ": " << text;
  const std::string first = text.substr(0, text.find_first_of(" ,;:"));
  EXPECT_TRUE(std::islower(static_cast<unsigned char>(first.front())) || is_acronym(first) ||
              first.find_first_of("-0123456789*[") == 0)
      << where << ": " << text;
  EXPECT_FALSE(text.ends_with(".")) << where << ": " << text;
}

TEST(Help, every_option_and_verb_says_in_one_line_of_lower_case_what_it_is_for) {
  EXPECT_GT(help_pages().size(), 30U);
  for (const HelpPage& page : help_pages()) {
    if (!page.verb.empty()) expect_well_written(page.summary, page.name());
    for (const auto& [name, what] : page.subcommands)
      expect_well_written(what, page.name() + " " + name);
    for (const HelpOption& option : page.options) {
      if (option.names == "-h,--help" || option.names == "--version") continue;  // CLI11's words
      expect_well_written(option.description, page.name() + " " + option.names);
    }
  }
}

// "UINT=2", or "(default: none)" where a number that is not given means something else.
TEST(Help, every_number_shows_its_default_or_says_what_happens_without) {
  std::size_t numbers = 0;
  for (const HelpPage& page : help_pages()) {
    for (const HelpOption& option : page.options) {
      if (!option.values.starts_with("UINT") && !option.values.starts_with("INT") &&
          !option.values.starts_with("FLOAT")) {
        continue;
      }
      ++numbers;
      const bool told = option.values.find('=') != std::string::npos ||
                        option.values.find("REQUIRED") != std::string::npos ||
                        option.description.find("(default: ") != std::string::npos ||
                        numbers_without_default().contains(option.names);
      EXPECT_TRUE(told) << page.name() << " " << option.names << " " << option.values << ": "
                        << option.description;
    }
  }
  EXPECT_GT(numbers, 40U);
}

TEST(Help, no_heading_has_more_options_than_a_reader_looks_through) {
  constexpr std::ptrdiff_t most = 12;
  for (const HelpPage& page : help_pages()) {
    for (const HelpOption& one : page.options) {
      EXPECT_LE(std::count_if(page.options.begin(), page.options.end(),
                              [&](const HelpOption& other) { return other.group == one.group; }),
                most + 1)  // with --help
          << page.name() << ", " << one.group;
    }
  }
}

}  // namespace
}  // namespace demarc::test
