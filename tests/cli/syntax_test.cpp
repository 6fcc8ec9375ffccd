// What is wrong with the text of an option is found out before the machine is asked: the same exit
// code with and without a driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A machine without a driver.
class Syntax : public testing::Test {
 protected:
  void SetUp() override { ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1); }
  void TearDown() override { ::unsetenv("DEMARC_LIBCUDA"); }
  static std::string refusal(const std::vector<std::string>& line, int code) {
    const Outcome outcome = run_demarc(line);
    EXPECT_EQ(outcome.exit_code, code) << testing::PrintToString(line) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
};

TEST_F(Syntax, of_exec_is_checked_before_the_machine) {
  for (const auto& [options, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--tpcs", "5-2"}, "--tpcs: '5-2' runs backwards"},
           {{"--tpcs", "128"}, "--tpcs: 128 is above the highest index, 127"},
           {{"--gpcs", "x"}, "--gpcs: 'x' is not a whole number"},
           {{"--sms", "0"}, "--sms: '0': a number of SMs"},
           {{"--sms", "101%"}, "--sms: '101%': a number of SMs"},
           {{"--tpcs", "0", "--sms", "2"}, "give exactly one of --tpcs, --gpcs and --sms"},
           {{"--part", "0/2"}, "--part: '0/2'"},
           {{"--part", "1/2", "--memory", "much"}, "memory: 'much' is not a number of bytes"},
           {{"--part", "1/2", "--description", "h101"}, "there is no device 'h101'"},
           {{"--tpcs", "0", "--device", "cuda:x"}, "--device cuda:N: 'x' is not a whole number"},
           {{"--tpcs", "0", "--sync-domain", "some"}, "--sync-domain some: free, none or"},
           {{"--tenant", "a", "--windows", "often"}, "--windows often: auto, never or always"}}) {
    std::vector<std::string> line{"exec"};
    line.insert(line.end(), options.begin(), options.end());
    line.insert(line.end(), {"--", "true"});
    EXPECT_THAT(refusal(line, 1), HasSubstr(said));
  }
  EXPECT_THAT(refusal({"exec", "--pid", "1", "--tpcs", "5-2"}, 1), HasSubstr("runs backwards"));
  EXPECT_THAT(refusal({"exec", "--tpcs", "0", "--", "true"}, 2), HasSubstr("no NVIDIA driver"));
}

TEST_F(Syntax, of_verbs_that_measure_is_checked_before_the_machine) {
  for (const auto& [line, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"verify", "--tpcs", "5-2"}, "--tpcs: '5-2' runs backwards"},
           {{"verify", "--gpcs", "x"}, "--gpcs: 'x' is not a whole number"},
           {{"verify", "--sms", "x%"}, "--sms: 'x%': a number of SMs"},
           {{"verify", "--tpcs", "0", "--mode", "masc"}, "mode 'masc'"},
           {{"verify", "--tpcs", "0", "--device", "card"}, "--device card"},
           {{"verify", "--colors", "x"}, "--colors: 'x' is not a whole number"},
           {{"verify", "--colours", "0", "--colour-masks", "x"}, "--color-masks: 'x'"},
           {{"verify", "--colors", "0", "--description", "h101"}, "there is no device 'h101'"},
           {{"isolate", "--modes", "masc"}, "--modes: 'masc' is not a mode"},
           {{"isolate", "--victims", "w"}, "there is no bundled workload 'w'"},
           {{"isolate", "--aggressors", "w"}, "there is no bundled workload 'w'"},
           {{"isolate", "--split", "fair"}, "--split: 'fair'"},
           {{"isolate", "--masks", "x"}, "--masks: 'x' is not a whole number"},
           {{"isolate", "--clock", "wall"}, "wall"},
           {{"isolate", "--device", "card"}, "--device card"},
           {{"isolate", "--description", "h101"}, "there is no device 'h101'"},
           {{"attack", "--mode", "masc"}, "--mode: 'masc' is not a mode"},
           {{"attack", "--without", "thought"}, "--without: "},
           {{"calibrate", "--tolerance", "5%%"}, "--tolerance: '5%%' is not a percentage"},
           {{"attack", "--device", "card"}, "--device card"},
           {{"topo", "--device", "card"}, "--device card"},
           {{"probe", "memory", "--device", "card"}, "--device card"},
           {{"probe", "translation", "--peer", "card"}, "card"},
           {{"calibrate", "--device", "card"}, "--device card"},
           {{"calibrate", "--description", "h101"}, "there is no device 'h101'"},
           {{"blocks", "--experiments", "figure-0"}, "figure-0"},
           {{"run", "bundled:w"}, "there is no bundled workload 'w'"},
           {{"doctor", "--device", "card"}, "--device card"}}) {
    EXPECT_THAT(refusal(line, 1), HasSubstr(said));
  }
}

TEST_F(Syntax, of_leases_and_servers_is_checked_before_they_are_asked) {
  const std::string config = fresh_folder("syntax") / "f.toml";
  ASSERT_TRUE(write_file(config, "[tenants.a]\nsms = \"50%\"\ncolours = \"1/2\"\n"));
  for (const auto& [line, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"lease", "grow", "a", "--bytes", "much"}, "--bytes: 'much' is not a number of bytes"},
           {{"lease", "move", "a", "--tpcs", "5-2"}, "--tpcs: '5-2' runs backwards"},
           {{"serve", "--config", config, "--device", "card"}, "--device card"},
           {{"serve", "--config", config, "--mps", "maybe"}, "--mps 'maybe'"},
           {{"serve", "--config", config, "--survivors", "eat"}, "--survivors 'eat'"},
           {{"serve", "--config", config, "--end-when-idle", "x"}, "--end-when-idle: 'x'"}}) {
    EXPECT_THAT(refusal(line, 1), HasSubstr(said));
  }
  EXPECT_THAT(refusal({"serve", "--config", config}, 2), HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(refusal({"lease", "move", "a", "--tpcs", "0-1", "--socket", "/no/such"}, 2),
              HasSubstr("/no/such"));
}

TEST_F(Syntax, a_machine_without_a_driver_is_told_of_simulated_gpus) {
  for (const char* verb : {"isolate", "topo", "attack", "calibrate"}) {
    EXPECT_THAT(refusal({verb}, 2),
                testing::AllOf(StartsWith(std::string("demarc ") + verb +
                                          ": no NVIDIA driver on "
                                          "this machine: "),
                               HasSubstr("; without one, use a simulated GPU, such as --device "
                                         "sim:h100-sxm (demarc list devices shows the names)\n")));
  }
}

// A percentage is a percentage, with its sign and without it.
TEST_F(Syntax, percentages_may_have_their_sign) {
  for (const char* level : {"80", "80%", "80 %"}) {
    const Outcome outcome = run_demarc({"schedule", "generate", "--level", level, "--ticks", "50"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out,
              run_demarc({"schedule", "generate", "--level", "80", "--ticks", "50"}).out);
  }
  EXPECT_NE(run_demarc({"schedule", "generate", "--level", "80", "--ticks", "50"}).out,
            run_demarc({"schedule", "generate", "--level", "8%", "--ticks", "50"}).out);
  EXPECT_THAT(refusal({"schedule", "generate", "--level", "high"}, 1),
              HasSubstr("--level: 'high' is not a percentage; write it as 5% or 5"));
}

}  // namespace
}  // namespace demarc::test
