// Values of options that say nothing or are no numbers, for every verb alike.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

void expect_refusal(std::vector<std::string> arguments, const std::string& value,
                    const std::string& said) {
  const std::string option = arguments.back();
  arguments.push_back(value);
  const Outcome outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 1) << arguments[0] << " " << option << " " << value;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(option + ": " + said), std::string::npos) << outcome.err;
}

// One of each kind of declaration: plain, with a range, of a subcommand.
TEST(Values, what_is_no_finite_number_of_0_or_more_is_refused) {
  for (const std::string value :
       {"nan", "-nan", "inf", "-inf", "infinity", "-0.5", "1e999", "x", "0.1x", " 1", "0x1p3"}) {
    expect_refusal({"isolate", "--device", "sim:gtx1080", "--precision"}, value,
                   "'" + value + "' is not a finite number of 0 or more");
  }
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"isolate", "--device", "sim:gtx1080", "--longest"},
                                             {"run", "bundled:vecadd", "--limit"},
                                             {"verify", "--max-slowdown"},
                                             {"probe", "memory", "--memory-gib"}}) {
    expect_refusal(option, "nan", "'nan' is not a finite number of 0 or more");
  }
}

TEST(Values, what_is_no_whole_number_is_refused) {
  for (const std::string value :
       {"-5", "-1", "1e3", "18446744073709551616", "1.5", "x", "+5", " 7", "7 ", "0x"}) {
    expect_refusal({"schedule", "generate", "--seed"}, value,
                   "'" + value + "' is not a whole number from 0 to 2^64 - 1");
  }
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"isolate", "--device", "sim:gtx1080", "--seed"},
                                             {"emulate", "bundled:vecadd", "--seed"},
                                             {"emulate", "bundled:vecadd", "--limit"},
                                             {"schedule", "study", "--seeds"},
                                             {"schedule", "compare", "--sms"},
                                             {"rewrite", "x.ptx", "--color"}}) {
    expect_refusal(option, "-5", "'-5' is not a whole number from 0 to 2^64 - 1");
  }
  expect_refusal({"isolate", "--device", "cuda:0", "--victim-priority"}, "1e1",
                 "'1e1' is not a whole number of 64 bits");
}

TEST(Values, a_number_that_the_option_cannot_hold_is_refused) {
  const Outcome outcome = run_demarc({"isolate", "--rounds", "4294967296"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("--rounds = 4294967296"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("out of the option's range"), std::string::npos) << outcome.err;
}

TEST(Values, a_leading_0_makes_no_number_octal) {
  const Outcome ten = run_demarc({"schedule", "generate", "--seed", "10", "--ticks", "50"});
  EXPECT_EQ(ten.exit_code, 0) << ten.err;
  EXPECT_EQ(run_demarc({"schedule", "generate", "--seed", "010", "--ticks", "50"}).out, ten.out);
  EXPECT_EQ(run_demarc({"schedule", "generate", "--seed", "0xa", "--ticks", "50"}).out, ten.out);
  EXPECT_NE(run_demarc({"schedule", "generate", "--seed", "8", "--ticks", "50"}).out, ten.out);
}

TEST(Values, help_that_cannot_be_written_is_an_error) {
  const Outcome outcome = run_program(
      {"/bin/sh", "-c", "exec \"$0\" --help >/dev/full", (build_dir() / "demarc").string()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("standard output: cannot be written"), std::string::npos);
}

TEST(Values, an_empty_value_is_refused_by_every_verb) {
  const std::string said = "the value is empty; give one or leave the option out";
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"translate", "--app"},
                                             {"translate", "study", "--app"},
                                             {"translate", "-o"},
                                             {"topo", "--device"},
                                             {"isolate", "--modes"},
                                             {"isolate", "--masks"},
                                             {"isolate", "--aggressor-cmd"},
                                             {"isolate", "--html"},
                                             {"emulate", "--trace"},
                                             {"emulate", "--kernel"},
                                             {"exec", "--tpcs"},
                                             {"ptx", "x.ptx", "--cfg"},
                                             {"schedule", "--policy"},
                                             {"rewrite", "x.ptx", "--color-mask"}}) {
    const std::string name = option.back();
    std::vector<std::string> arguments = option;
    arguments.push_back("");
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments[0] << " " << name;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  }
  EXPECT_NE(run_demarc({"ptx", ""}).err.find("file: " + said), std::string::npos);
}

}  // namespace
}  // namespace demarc::test
