// Options of the verbs that need a card, against the stand-in for libcuda.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CardOptions : public testing::Test {
 protected:
  void SetUp() override {
    folder = fresh_folder("card_options");
    std::filesystem::create_directories(folder / "cache");
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name :
         {"DEMARC_LIBCUDA", "DEMARC_CACHE", "DEMARC_FAKE_GPU", "DEMARC_FAKE_DEVICES"}) {
      ::unsetenv(name);
    }
  }
  static void expect_refused(const std::vector<std::string>& arguments, const std::string& told,
                             int code = 1) {
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, code) << told;
    EXPECT_THAT(outcome.err, HasSubstr(told));
    EXPECT_EQ(outcome.out, "");
  }
  // A shell in `folder`, where $DEMARC is the program.
  [[nodiscard]] Outcome in_shell(const std::string& text) const {
    ::setenv("DEMARC", (build_dir() / "demarc").c_str(), 1);
    const Outcome outcome = run_program({"sh", "-c", "cd " + folder.string() + "\n" + text});
    ::unsetenv("DEMARC");
    return outcome;
  }
  std::filesystem::path folder;
};

TEST_F(CardOptions, of_the_colours_to_prove_each_is_checked_by_name) {
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--tpcs", "1"},
                                                {"--gpcs", "0"},
                                                {"--sms", "2"},
                                                {"--sms", "10%"}}) {
    std::vector<std::string> arguments{"verify", "--colors", "0"};
    arguments.insert(arguments.end(), other.begin(), other.end());
    expect_refused(arguments, "--colors proves memory; prove TPCs in a separate run");
  }
  expect_refused({"verify", "--colors", "64"}, "64 is above the highest index, 63");
  expect_refused({"verify", "--colors", "63", "--description", "h100-sxm"},
                 "give some, but not all, of the colours 0 to 1");
  expect_refused({"verify", "--colors", "1,0", "--description", "h100-sxm"},
                 "give some, but not all, of the colours 0 to 1");
  expect_refused({"verify", "--colors", "0", "--description", "h100-sxm", "--color-count", "64"},
                 "64", 2);
  expect_refused({"verify", "--colors", "0", "--description", "nosuch"},
                 "there is no device 'nosuch'");
  expect_refused({"verify", "--colors", "0", "--device", "cuda:7"}, "there is no GPU cuda:7", 2);
}

// Nothing is as fast beside a neighbour as in half the time that it takes alone.
TEST_F(CardOptions, colours_that_are_not_kept_apart_end_with_3_and_say_so) {
  const Outcome outcome = run_demarc(
      {"verify", "--colors", "1", "--description", "h100-sxm", "--max-slowdown", "0.5", "--json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the colours 1 are not kept apart"));
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["expected_colors"], 2) << "a bit a colour";
  EXPECT_EQ(report["chunks_of_color"].size(), 2U);
  EXPECT_EQ(report["max_slowdown"], 0.5);
  EXPECT_EQ(report["holds"], false);
}

TEST_F(CardOptions, verify_is_of_real_cards_and_gives_its_verdict_as_json) {
  expect_refused({"verify", "--device", "sim:h100-sxm"},
                 "--device sim:h100-sxm: only a real GPU can be verified; give cuda:N");
  expect_refused({"verify", "--tpcs", "1", "--device", "cuda:7"}, "there is no GPU cuda:7", 2);
  const Outcome outcome = run_demarc({"verify", "--gpcs", "3", "--mode", "mask", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["expected_tpcs"], "11");
  EXPECT_EQ(report["holds"], true);
  EXPECT_EQ(
      Json::parse(
          run_demarc({"verify", "--sms", "10%", "--mode", "mask", "--json"}).out)["expected_tpcs"],
      "0,3");
}

TEST_F(CardOptions, exec_takes_its_tpcs_by_gpc_share_and_number_of_sms) {
  const auto confined = [](const std::string& option, const std::string& value) {
    return run_demarc({"exec", option, value, "--audit", "--", "true"}).err;
  };
  EXPECT_THAT(confined("--gpcs", "0"), HasSubstr("partition: TPCs 0,3,6,9 (8 SMs);"));
  EXPECT_THAT(confined("--sms", "10%"), HasSubstr("partition: TPCs 0,3 (4 SMs);"));
  EXPECT_THAT(confined("--sms", "3"), HasSubstr("partition: TPCs 0,3 (4 SMs);"));
}

TEST_F(CardOptions, exec_is_on_the_card_that_was_named_and_on_real_ones_only) {
  expect_refused({"exec", "--device", "sim:h100-sxm", "--tpcs", "1", "--", "true"},
                 "programs run on real GPUs only; give cuda:N");
  expect_refused({"exec", "--device", "cuda:7", "--tpcs", "1", "--", "true"},
                 "there is no GPU cuda:7", 2);
  expect_refused({"exec", "--preload", "/no/such.so", "--tpcs", "1", "--", "true"},
                 "/no/such.so: this library does not exist");
}

TEST_F(CardOptions, a_running_program_is_named_alone_and_its_new_tpcs_in_any_way) {
  expect_refused({"exec", "--pid", "1", "--tpcs", "0", "--", "true"},
                 "--pid moves a running program; give no command with it");
  for (const std::vector<std::string>& choice : {std::vector<std::string>{"--tpcs", "0"},
                                                 {"--gpcs", "0"},
                                                 {"--sms", "2"},
                                                 {"--sms", "10%"}}) {
    std::vector<std::string> arguments{"exec", "--pid", "999999999"};
    arguments.insert(arguments.end(), choice.begin(), choice.end());
    expect_refused(arguments, "--pid 999999999: no such process");
  }
  const Outcome first = run_demarc({"exec", "--pid", "1", "--tpcs", "0"});
  EXPECT_THAT(first.err, Not(HasSubstr("give the id of a process")));
}

// What stands behind the program's name is the program's, with and without --.
TEST_F(CardOptions, exec_gives_a_program_its_own_options) {
  for (const char* divider : {"", "-- "}) {
    const Outcome outcome = in_shell(std::string("$DEMARC exec --tpcs 1,3 ") + divider +
                                     "sh -c 'echo \"$# [$1] [$2]\"' name --json ''");
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    EXPECT_EQ(outcome.out, "2 [--json] []\n");
  }
}

TEST_F(CardOptions,
       the_descriptor_of_an_announcement_stays_out_of_the_program_unless_it_is_its_own) {
  const Outcome kept = in_shell(
      "$DEMARC exec --observe --announce 5 -- sh -c 'test -e /proc/self/fd/5 && echo open' 5>told; "
      "wc -l < told");
  EXPECT_EQ(kept.out, "1\n");
  const Outcome own = in_shell(
      "$DEMARC exec --observe --announce 2 -- sh -c 'test -e /proc/self/fd/2 && echo open'");
  EXPECT_EQ(own.out, "open\n");
  EXPECT_THAT(own.err, HasSubstr("/proc/"));
}

TEST_F(CardOptions, run_reports_as_json_and_needs_a_real_card) {
  const Outcome outcome = run_demarc({"run", "bundled:vecadd", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("{\n  \"schema\": \"demarc.run/1\",\n")) << outcome.out;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["check"], "passed");
  EXPECT_EQ(report["kernels"][0]["kernel"], "vecadd");
  expect_refused({"run", "bundled:vecadd", "--device", "sim:h100-sxm"},
                 "run needs a real GPU, cuda:N; demarc emulate runs on the CPU");
  const Outcome unchecked =
      run_demarc({"run", (source_dir() / "examples" / "halo.ptx").string(), "--kernel", "halo",
                  "--grid", "8", "--block", "64", "--args", "buf:2052,buf:2048"});
  EXPECT_EQ(unchecked.exit_code, 0) << unchecked.err;
  EXPECT_THAT(unchecked.out, HasSubstr("halo: "));
  EXPECT_THAT(unchecked.out, Not(HasSubstr("reference")));
}

TEST_F(CardOptions, run_sets_variables_and_writes_and_prints_buffers) {
  ASSERT_TRUE(write_file(folder / "step.ptx", R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .u32 step;
.visible .entry _Z4takePj(.param .u64 out) {
.reg .u32 %r<2>; .reg .u64 %rd<2>;
ld.param.u64 %rd1, [out];
ld.const.u32 %r1, [step];
st.global.u32 [%rd1], %r1;
ret; })"));
  const std::string ptx = (folder / "step.ptx").string();
  const Outcome unset = run_demarc({"run", ptx, "--kernel", "take", "--args", "buf:8", "--json"});
  EXPECT_EQ(unset.exit_code, 0) << unset.err;
  EXPECT_THAT(unset.err, HasSubstr("demarc run: warning: kernel '_Z4takePj' reads the __constant__ "
                                   "variable 'step', which has not been set"));
  EXPECT_EQ(Json::parse(unset.out)["warnings"][0]["variable"], "step");
  const Outcome set =
      run_demarc({"run", ptx, "--args", "buf:8", "--variable", "step=u32:9", "--print", "arg0",
                  "--save", "arg0=" + (folder / "out.bin").string()});
  EXPECT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(set.err, "");
  EXPECT_THAT(set.out, HasSubstr("arg0 (u32, 2 of 2): 9 0\n"));
  EXPECT_EQ(read_file(folder / "out.bin").value(), std::string("\x09\0\0\0\0\0\0\0", 8));
  expect_refused({"run", ptx, "--args", "buf:8", "--print", "arg1"}, "there is no buffer 'arg1'");
}

TEST_F(CardOptions, a_study_divides_the_card_and_its_memory_as_the_options_say) {
  ASSERT_TRUE(write_file(folder / "tick.json", R"({"schema": "demarc.launch/1", "name": "tick",
    "ptx": "tick.ptx", "buffers": [],
    "launches": [{"kernel": "tick", "grid": 1, "block": 32, "args": ["i32:5"]}]})"));
  ASSERT_TRUE(write_file(folder / "tick.ptx",
                         ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry tick(.param .u32 p) { ret; }\n"));
  const std::string tick = "launch:" + (folder / "tick.json").string();
  const auto study = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "isolate", "--clock",   "events", "--victims",     tick, "--aggressors", tick, "--rounds",
        "1",       "--warm-up", "0",      "--max-samples", "2",  "--samples",    "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_demarc(arguments);
  };
  EXPECT_THAT(study({"--modes", "mask", "--split", "packed"}).out,
              HasSubstr("part 1/2: SMs 0-3, 6-9, 12-13, 18-19;"));
  EXPECT_THAT(study({"--modes", "mask", "--split", "distributed"}).out,
              HasSubstr("part 1/2: SMs 0-5, 12-17;"));
  const Outcome colored = study(
      {"--modes", "mask+color", "--masks", "0xc4000", "--colors", "1,0", "--memory-gib", "0.25"});
  EXPECT_EQ(colored.exit_code, 0) << colored.err;
  EXPECT_THAT(colored.out, HasSubstr("; 128 pages measured, "));
  EXPECT_THAT(colored.out, HasSubstr("the parts have the colours 1, 0;"));
  const Outcome unknown = study({"--modes", "mask+color", "--description", "nosuch"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("there is no device 'nosuch'"));
}

TEST_F(CardOptions, topo_writes_the_description_of_a_card_and_says_what_it_lacks) {
  const std::string file = (folder / "card.json").string();
  const Outcome tree = run_demarc({"topo"});
  EXPECT_THAT(tree.out, HasSubstr("\nGPCs found from task descriptors and from cluster "
                                  "co-location, which agree\n"));
  EXPECT_EQ(tree.out.back(), '\n');
  const Outcome written = run_demarc({"topo", "-o", file});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(Json::parse(read_file(file).value())["name"], "Fake GPU");
  EXPECT_EQ(Json::parse(run_demarc({"topo", "--json"}).out)["schema"], "demarc.topo/2");
  EXPECT_EQ(run_demarc({"topo", "--device", "sim:h100-sxm", "-o", file}).out, "");
  EXPECT_EQ(Json::parse(read_file(file).value())["name"], "H100 SXM 80GB");
  EXPECT_EQ(Json::parse(run_demarc({"topo", "--device", "sim:h100-sxm", "--json"}).out)["schema"],
            "demarc.device/1");
  EXPECT_THAT(run_demarc({"topo", "--device", "sim:h100-sxm"}).out, HasSubstr("|- GPC 0"));
}

TEST_F(CardOptions, sms_of_the_process_stand_beside_the_tree_as_json_and_as_a_file) {
  ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=0", 1);
  const std::string file = (folder / "told.json").string();
  EXPECT_EQ(run_demarc({"topo", "--refresh"}).exit_code, 0);
  const Outcome told = run_demarc({"topo", "--identify", "-o", file});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("|- GPC 0"));
  EXPECT_THAT(told.out, HasSubstr("launch 1: 24 SMs, TPCs 0-11"));
  EXPECT_EQ(Json::parse(read_file(file).value())["schema"], "demarc.device/1");
  const Json json = Json::parse(run_demarc({"topo", "--identify", "--json"}).out);
  EXPECT_TRUE(json.is_object());
}

TEST_F(CardOptions, blocks_writes_a_picture_a_run_and_one_trace_of_all) {
  const std::string json = (folder / "x.json").string();
  const Outcome outcome = run_demarc(
      {"blocks", "--experiments", "figure-4,figure-11", "-o", folder.string(), "--json=" + json});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(read_file(json).value());
  const Json trace = Json::parse(read_file(folder / "blocks.trace.json").value());
  std::vector<std::string> names;
  std::size_t blocks = 0;
  double held_us = 0;
  for (const Json& run : result["runs"]) {
    names.push_back(run["name"]);
    EXPECT_TRUE(std::filesystem::exists(folder / (names.back() + ".svg"))) << names.back();
    EXPECT_THAT(outcome.out, HasSubstr(fmt::format("{:<24} {}\n", names.back(),
                                                   run["finding"].get<std::string>())));
    blocks += run["blocks"].size();
  }
  EXPECT_THAT(names, ElementsAre("figure-4", "figure-11-K1-first", "figure-11-K2-first"));
  std::vector<std::string> processes;
  std::size_t slices = 0;
  double longest = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      ++slices;
      held_us += event["dur"].get<double>();
      longest = std::max(longest, event["dur"].get<double>());
    } else if (event["name"] == "process_name") {
      processes.push_back(event["args"]["name"]);
    }
  }
  EXPECT_EQ(slices, blocks);
  EXPECT_EQ(processes, names);
  EXPECT_GT(held_us, 0);
  EXPECT_LE(longest, 250) << "no block of these holds its SM longer";
}

TEST_F(CardOptions, blocks_without_a_folder_writes_no_file_and_with_json_no_text) {
  const Outcome outcome = in_shell(
      "mkdir empty; cd empty; $DEMARC blocks --experiments figure-4 "
      "--json; ls");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["schema"], "demarc.blocks/2")
      << "nothing else stands behind it";
  const Outcome text = run_demarc({"blocks", "--experiments", "figure-4"});
  EXPECT_TRUE(text.out.starts_with("figure-4  ")) << text.out;
  expect_refused({"blocks", "--device", "sim:h100-sxm"}, "--device sim:h100-sxm: write cuda:N");
  expect_refused({"blocks", "--device", "cuda:7"}, "there is no GPU cuda:7", 2);
}

}  // namespace
}  // namespace demarc::test
