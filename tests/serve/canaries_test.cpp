// Canaries as programs: what they print becomes a gauge, and what ends is started again. Scripts
// stand in for the program that launches the kernel.
#include "canaries.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::serve {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class CanariesTest : public testing::Test {
 protected:
  void SetUp() override { set_tpcs({0, 1}); }
  void set_tpcs(const gpu::TpcSet& tpcs) {
    Terms terms{.name = "a", .tpcs = tpcs, .colors = {1, 2}};
    terms.share_bytes = terms.bytes = std::uint64_t{8} << 21U;
    ASSERT_TRUE(ledger.replace({terms}));
  }
  // A look each second, until this is so.
  void look_until(const std::function<bool()>& done, bool quiet = true) {
    for (int looks = 0; looks < 5000 && !done(); ++looks) {
      canaries.look(now += seconds(1), quiet, ledger);
      ::usleep(1000);
    }
    ASSERT_TRUE(done());
  }
  // So many programs have begun.
  [[nodiscard]] std::size_t begun() const {
    const std::string text = read_file(folder / "begun").value_or("");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  [[nodiscard]] CanaryReading reading() const { return canaries.reading("a", now); }

  std::filesystem::path folder = test::fresh_folder("canaries");
  std::string script = "while sleep 0.002; do echo 200.5; done";
  std::vector<std::string> told;
  Ledger ledger;
  CanaryGauge::Clock::time_point now{};
  Canaries canaries{{[this](const std::string& tenant) {
                       return std::vector<std::string>{
                           "/bin/sh", "-c",
                           "echo " + tenant + " >> " + (folder / "begun").string() + "; " + script};
                     },
                     [this](const std::string& line) { told.push_back(line); }}};
};

TEST_F(CanariesTest, are_programs_whose_numbers_become_a_gauge) {
  canaries.look(now, true, ledger);
  EXPECT_EQ(begun(), 0U) << "none is wanted";
  canaries.want({{"a"}});
  look_until([&] { return reading().slowdown.has_value(); });
  EXPECT_EQ(reading(), (CanaryReading{1.0, 200.5}));
  EXPECT_EQ(read_file(folder / "begun").value(), "a\n");
  EXPECT_EQ(canaries.reading("b", now), CanaryReading());
  EXPECT_TRUE(told.empty()) << told.front();
}

TEST_F(CanariesTest, take_no_baseline_while_programs_have_leases) {
  canaries.want({{"a"}});
  for (int i = 0; i < 100; ++i) {
    canaries.look(now += seconds(1), i % 2 == 0, ledger);
    ::usleep(1000);
  }
  EXPECT_EQ(reading(), CanaryReading()) << "between two looks, one of which is not quiet";
  canaries.want({{"a", 401.0}});
  look_until([&] { return reading().slowdown.has_value(); }, false);
  EXPECT_EQ(reading(), (CanaryReading{0.5, 401.0}));
}

TEST_F(CanariesTest, stay_as_they_are_while_the_same_is_wanted) {
  canaries.want({{"a"}});
  look_until([&] { return reading().slowdown.has_value(); });
  canaries.want({{"a"}});
  EXPECT_EQ(reading(), (CanaryReading{1.0, 200.5}));
  canaries.want({});
  EXPECT_EQ(reading(), CanaryReading());
  EXPECT_TRUE(canaries.ended());
  EXPECT_EQ(begun(), 1U);
}

TEST_F(CanariesTest, of_unknown_tenants_do_not_run) {
  canaries.want({{"b"}});
  canaries.look(now, true, ledger);
  EXPECT_TRUE(canaries.ended());
}

TEST_F(CanariesTest, find_their_baseline_anew_on_other_TPCs) {
  canaries.want({{"a"}});
  look_until([&] { return reading().slowdown.has_value(); });
  set_tpcs({0, 1});
  canaries.look(now, false, ledger);
  EXPECT_EQ(reading().baseline_cycles, 200.5) << "nothing has changed";
  set_tpcs({0, 2});
  canaries.look(now, false, ledger);
  EXPECT_EQ(reading().baseline_cycles, std::nullopt);
  EXPECT_EQ(begun(), 1U);
}

TEST_F(CanariesTest, are_started_again_some_time_after_they_ended_and_say_why_once) {
  script = "echo 300; echo first >&2; echo reason >&2; exit 2";
  canaries.want({{"a"}});
  look_until([&] { return begun() == 1 && canaries.ended(); });
  look_until([&] { return begun() == 3; });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(),
            "the canary of tenant 'a' has ended, so its slowdown is not known until it runs again: "
            "exit code 2: reason");
}

TEST_F(CanariesTest, that_cannot_be_started_are_named_once) {
  Canaries none({[](const std::string&) { return std::vector<std::string>{"/no/such/program"}; },
                 [this](const std::string& line) { told.push_back(line); }});
  none.want({{"a"}});
  for (int i = 0; i < 100; ++i) none.look(now += seconds(1), true, ledger);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told.front(), HasSubstr("/no/such/program"));
}

TEST_F(CanariesTest, wait_before_they_are_started_again) {
  script = "exit 2";
  canaries.want({{"a"}});
  look_until([&] { return !told.empty(); });
  ASSERT_EQ(begun(), 1U);
  canaries.look(now + seconds(29), true, ledger);
  EXPECT_TRUE(canaries.ended());
  canaries.look(now + seconds(30), true, ledger);
  for (int i = 0; i < 5000 && begun() < 2; ++i) ::usleep(1000);
  EXPECT_EQ(begun(), 2U);
}

TEST_F(CanariesTest, end_when_they_are_told_and_begin_at_the_next_look) {
  canaries.want({{"a"}});
  canaries.look(now, true, ledger);
  for (int i = 0; i < 5000 && begun() == 0; ++i) ::usleep(1000);
  EXPECT_FALSE(canaries.ended());
  canaries.ask_to_end();
  for (int i = 0; i < 5000 && !canaries.ended(); ++i) ::usleep(1000);
  EXPECT_TRUE(canaries.ended());
  canaries.look(now, true, ledger);
  EXPECT_FALSE(canaries.ended());
  EXPECT_TRUE(told.empty());
}

TEST_F(CanariesTest, are_known_by_their_processes) {
  EXPECT_FALSE(canaries.has(::getpid()));
  script = "echo $$ > " + (folder / "pid").string() + "; exec sleep 100";
  canaries.want({{"a"}});
  canaries.look(now, true, ledger);
  pid_t process = 0;
  for (int i = 0; i < 5000 && process == 0; ++i) {
    std::ifstream(folder / "pid") >> process;
    ::usleep(1000);
  }
  EXPECT_TRUE(canaries.has(process));
  EXPECT_FALSE(canaries.has(::getpid()));
}

TEST(CanaryProgram, gives_whole_lines_that_are_numbers) {
  auto program = CanaryProgram::start({"/bin/sh", "-c",
                                       "echo 1.5; echo words; echo 2 3; printf 25; sleep 0.05; "
                                       "echo 0.5; printf 7"})
                     .value();
  std::vector<double> all;
  for (int i = 0; i < 5000 && !program.end(); ++i) {
    for (const double number : program.take()) all.push_back(number);
    ::usleep(1000);
  }
  for (const double number : program.take()) all.push_back(number);
  EXPECT_THAT(all, ElementsAre(1.5, 250.5));
  EXPECT_TRUE(program.take().empty());
}

// What a program prints without an end of line, and then a line more.
std::vector<double> numbers_after(int digits) {
  const auto folder = test::fresh_folder("canary_line");
  const std::string go = folder / "go";
  auto program =
      CanaryProgram::start(
          {"/bin/sh", "-c",
           fmt::format("printf '%0{}d' 1; touch {}; while [ -e {} ]; do sleep 0.01; done; "
                       "echo; echo 5; sleep 100",
                       digits, go, go)})
          .value();
  while (!std::filesystem::exists(go)) ::usleep(1000);
  EXPECT_TRUE(program.take().empty());
  std::filesystem::remove(go);
  std::vector<double> all;
  for (int i = 0; i < 20'000 && (all.empty() || all.back() != 5); ++i) {
    for (const double number : program.take()) all.push_back(number);
    ::usleep(1000);
  }
  return all;
}

TEST(CanaryProgram, forgets_a_line_that_does_not_end) {
  EXPECT_THAT(numbers_after(4096), ElementsAre(1, 5));
  EXPECT_THAT(numbers_after(4097), ElementsAre(5));
}

}  // namespace
}  // namespace demarc::serve
