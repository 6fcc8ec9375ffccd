// demarc emulate: what its options choose, and what it tells of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

// A kernel that adds nothing: the outputs stay zero.
std::string idle_adder(const std::string& instructions) {
  const auto folder = test::fresh_folder("emulate_misses");
  EXPECT_TRUE(write_file(folder / "idle.ptx",
                         ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry vecadd("
                         ".param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {\n" +
                             instructions + "ret; }\n"));
  EXPECT_TRUE(write_file(folder / "misses.json",
                         R"({"schema": "demarc.launch/1", "name": "misses", "ptx": "idle.ptx",
    "buffers": [{"name": "a", "bytes": 4096, "element": "f32", "fill": "random"},
                {"name": "b", "bytes": 4096, "element": "f32", "fill": "random"},
                {"name": "c", "bytes": 4096, "element": "f32", "output": true}],
    "launches": [{"kernel": "vecadd", "grid": 4, "block": 256,
                  "args": ["buf:a", "buf:b", "buf:c", "i32:1024"]}],
    "check": {"reference": "vecadd"}})"));
  return (folder / "misses.json").string();
}

TEST(EmulateVerb, outputs_that_miss_their_reference_exit_with_3) {
  const std::string file = idle_adder("");
  const auto outcome = run_demarc({"emulate", "--launch", file});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("meet")));
  EXPECT_THAT(outcome.err, HasSubstr("output 'c' (f32): 1024 of 1024 elements differ"));
  const auto json = run_demarc({"emulate", "--launch", file, "--json"});
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_EQ(Json::parse(json.out)["check"], "failed");
}

TEST(EmulateVerb, outputs_are_not_judged_where_there_are_findings) {
  const std::string file = idle_adder(
      ".reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [a];\n"
      "ld.global.u32 %r1, [%rd1+4096];\nst.global.u32 [%rd1+4100], %r1;\n");
  const auto outcome = run_demarc({"emulate", "--launch", file, "--json"});
  EXPECT_EQ(outcome.exit_code, 3);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["check"], "none");
  EXPECT_EQ(json["kernels"].size(), 1U);
  EXPECT_GT(json["findings"].size(), 0U);
  EXPECT_EQ(static_cast<std::size_t>(std::count(outcome.err.begin(), outcome.err.end(), '\n')),
            json["findings"].size())
      << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("elements differ")));
}

TEST(EmulateVerb, json_tells_how_it_ran) {
  const auto of = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"emulate", "bundled:vecadd", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("{\n  \"schema\": \"demarc.emulate/1\",\n"));
    return Json::parse(outcome.out);
  };
  const Json one = of({"--threads", "1", "--instruction-set", "baseline"});
  EXPECT_EQ(one["threads"], 1);
  EXPECT_EQ(one["instruction_set"], "baseline");
  EXPECT_EQ(one["check"], "passed");
  for (const char* empty : {"approximations", "ordered_kernels", "findings"}) {
    EXPECT_EQ(one[empty], Json::array()) << empty;
  }
  EXPECT_EQ(one["printed"], "");
  EXPECT_EQ(of({})["threads"], of({"--threads", "0"})["threads"]);
}

TEST(EmulateVerb, the_rate_is_instructions_by_time) {
  const auto outcome = run_demarc({"emulate", "bundled:vecadd", "--param", "n=4000000"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  double instructions = 0;
  double seconds = 0;
  double rate = 0;
  const auto after = [&](const char* mark) { return outcome.out.substr(outcome.out.find(mark)); };
  ASSERT_EQ(std::sscanf(after("warps, ").c_str(), "warps, %lf thread", &instructions), 1);
  ASSERT_EQ(
      std::sscanf(after("branches; ").c_str(), "branches; %lf s, %lf million", &seconds, &rate), 2);
  EXPECT_NEAR(rate * seconds * 1e6 / instructions, 1, 0.5) << outcome.out;
}

TEST(EmulateVerb, a_kernel_of_a_launch_and_its_seed_can_be_chosen_and_nothing_else_of_it) {
  const auto chosen =
      run_demarc({"emulate", "--launch", "bundled:backprop", "--kernel", "layer_forward"});
  EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_THAT(chosen.out, HasSubstr("layer_forward: 64 blocks"));
  EXPECT_THAT(chosen.out, testing::Not(HasSubstr("adjust_weights")));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--grid", "2"}, {"--kernel", "layer_forward", "--grid", "2"}}) {
    std::vector<std::string> arguments{"emulate", "--launch", "bundled:backprop"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("already has kernel, grid, block and arguments"));
  }
  // Threads whose word is odd do more.
  const auto folder = test::fresh_folder("emulate_seed");
  ASSERT_TRUE(write_file(folder / "odd.ptx",
                         ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry odd(.param .u64 p) {\n.reg .b64 %rd<4>;\n"
                         ".reg .b32 %r<4>;\n.reg .pred %p<2>;\nld.param.u64 %rd1, [p];\n"
                         "mov.u32 %r1, %tid.x;\nmad.wide.u32 %rd2, %r1, 4, %rd1;\n"
                         "ld.global.u32 %r2, [%rd2];\nand.b32 %r2, %r2, 1;\n"
                         "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\nadd.u32 %r2, %r2, 1;\n"
                         "L: ret;\n}\n"));
  ASSERT_TRUE(write_file(folder / "odd.json",
                         R"({"schema": "demarc.launch/1", "name": "odd", "ptx": "odd.ptx",
    "buffers": [{"name": "a", "bytes": 4096, "element": "u32", "fill": "random"}],
    "launches": [{"kernel": "odd", "grid": 1, "block": 1024, "args": ["buf:a"]}]})"));
  const auto counts = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"emulate", "--launch", (folder / "odd.json").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out.substr(0, outcome.out.find(';'));
  };
  EXPECT_EQ(counts({}), counts({}));
  EXPECT_NE(counts({"--seed", "5"}), counts({}));
  const auto setting = run_demarc({"emulate", "bundled:relu", "--param", "n"});
  EXPECT_EQ(setting.exit_code, 1);
  EXPECT_THAT(setting.err, HasSubstr("--param n: NAME=VALUE was expected"));
}

}  // namespace
}  // namespace demarc
