// The verbs that need a card, run against the stand-in for libcuda.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;
using testing::Not;

class Program : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", test::fresh_folder("program").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_LIBCUDA");
    ::unsetenv("DEMARC_CACHE");
    ::unsetenv("DEMARC_FAKE_GPU");
  }
  // Arguments that run tests/cuda/subject/subject.cpp inside a partition.
  static std::vector<std::string> exec_subject(const std::vector<std::string>& steps) {
    std::vector<std::string> arguments{"exec",
                                       "--tpcs",
                                       "1,3",
                                       "--",
                                       (test::build_dir() / "demarc_exec_subject").string(),
                                       test::fake_libcuda().string(),
                                       "/dev/null"};
    arguments.insert(arguments.end(), steps.begin(), steps.end());
    return arguments;
  }
  std::string demarc = (test::build_dir() / "demarc").string();
};

TEST_F(Program, topo_shows_the_tree_and_remembers_it) {
  const auto first = run_demarc({"topo"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("|- GPC 0: 4 TPCs, 8 SMs, L2 side 0\n"
                                   "|    TPC 0 (SM 0-1, bit 0)  TPC 3 (SM 6-7, bit 1)"));
  EXPECT_THAT(first.out, HasSubstr("which agree"));
  EXPECT_THAT(run_demarc({"topo"}).out, HasSubstr("(remembered; --refresh measures)"));
  EXPECT_THAT(run_demarc({"topo", "--refresh"}).out, Not(HasSubstr("remembered")));
}

TEST_F(Program, an_unknown_driver_is_refused_until_topo_refresh_has_calibrated_it) {
  ::setenv("DEMARC_FAKE_GPU", "version=14020,offset=604", 1);
  const auto refused = run_demarc({"exec", "--tpcs", "1", "--", "true"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("run demarc topo --refresh"));
  EXPECT_THAT(run_demarc({"topo", "--refresh"}).out,
              HasSubstr("CUDA 14.2 is not in the table of drivers; the mask of a stream was found "
                        "at offset 0x25c"));
  const auto confined =
      run_demarc({"exec", "--tpcs", "1,3", "--", demarc, "verify", "--tpcs", "1,3"});
  EXPECT_EQ(confined.exit_code, 0) << confined.err;
}

TEST_F(Program, verify_says_plainly_that_nothing_is_confined) {
  const auto outcome = run_demarc({"verify", "--tpcs", "1,3"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("looking at this process as it is"));
  EXPECT_THAT(outcome.out, HasSubstr("this process is in no partition"));
  EXPECT_THAT(outcome.err, HasSubstr("start it under demarc exec"));
}

TEST_F(Program, a_card_number_that_is_too_large_is_not_card_zero) {
  for (const char* verb : {"isolate", "blocks", "topo", "verify"}) {
    const auto refused = run_demarc({verb, "--device", "cuda:4294967296"});
    EXPECT_EQ(refused.exit_code, 1) << verb;
    EXPECT_THAT(refused.err, HasSubstr("no machine has that many GPUs")) << verb;
  }
}

TEST_F(Program, options_that_cannot_be_followed_are_refused_by_name) {
  struct Case {
    std::vector<std::string> arguments;
    const char* named;
  };
  for (const Case& wrong : {
           Case{{"topo", "--identify", "--device", "sim:h100-sxm"}, "--identify"},
           Case{{"verify", "--tpcs", "1", "--description", "h200"}, "--description"},
           Case{{"verify", "--tpcs", "1", "--color-count", "4"}, "--color-count"},
           Case{{"verify", "--tpcs", "1", "--color-masks", "0xc4000"}, "--color-masks"},
       }) {
    const auto refused = run_demarc(wrong.arguments);
    EXPECT_EQ(refused.exit_code, 1) << wrong.named << ": " << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(wrong.named));
  }
}

TEST_F(Program, verify_proves_a_partition_of_its_own) {
  for (const char* mode : {"mask", "green", "affinity"}) {
    const auto outcome = run_demarc({"verify", "--tpcs", "1,3", "--mode", mode});
    EXPECT_EQ(outcome.exit_code, 0) << mode << ": " << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("the partition HOLDS"));
  }
}

TEST_F(Program, the_tpcs_of_a_client_of_mps_are_told) {
  ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=ca2", 1);
  const auto unknown = run_demarc({"topo"});
  EXPECT_EQ(unknown.exit_code, 3) << unknown.out;
  EXPECT_THAT(unknown.err, HasSubstr("ran on SM 10, but 10 SMs are known of this card; run demarc "
                                     "topo --refresh once, outside MPS"));
  ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=0", 1);
  EXPECT_THAT(run_demarc({"topo", "--identify"}).out,
              HasSubstr("launch 3: 24 SMs, TPCs 0-11 (GPCs 0,1,2,3)\nSM numbers in kernels (%smid) "
                        "name the SMs"));
  ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=ca2", 1);
  EXPECT_THAT(run_demarc({"topo"}).out, HasSubstr("launch 3: 10 SMs, TPCs 1,5,7,10-11"));
  const auto holds = run_demarc({"verify", "--tpcs", "1,5,7,10,11"});
  EXPECT_EQ(holds.exit_code, 0) << holds.err;
  const auto outside = run_demarc({"verify", "--tpcs", "0-5"});
  EXPECT_EQ(outside.exit_code, 3);
  EXPECT_THAT(outside.out, HasSubstr("the partition DOES NOT HOLD"));
  EXPECT_THAT(outside.out, HasSubstr("DOES NOT HOLD"));
  const auto counted = run_demarc({"verify", "--sms", "10"});
  EXPECT_EQ(counted.exit_code, 0) << counted.err;
  EXPECT_THAT(counted.out, HasSubstr("their number was checked"));
}

TEST_F(Program, exec_confines_a_program_that_knows_nothing_of_it) {
  const auto outcome =
      run_demarc({"exec", "--tpcs", "1,3", "--audit", "--", demarc, "verify", "--tpcs", "1,3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("the partition HOLDS"));
  EXPECT_THAT(outcome.err, HasSubstr("TPCs 1,3 (4 SMs); 1 process confined"));
  EXPECT_THAT(outcome.err, HasSubstr("not by where they ran"));
  EXPECT_THAT(outcome.err, HasSubstr("graph"));
}

TEST_F(Program, exec_passes_the_exit_code_on_only_if_what_ran_was_confined) {
  const auto confined = run_demarc(exec_subject({"context", "launch", "exit=7"}));
  EXPECT_EQ(confined.exit_code, 7) << confined.err;
  EXPECT_EQ(confined.err, "");
  const auto nothing = run_demarc(exec_subject({"exit=7"}));
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_EQ(nothing.err,
            "demarc exec: no process of the program reached the GPU: NOTHING WAS CONFINED\n"
            "demarc exec: exit code 3, because something was not confined; the program's own exit "
            "code was 7\n");
  auto dropped = exec_subject({"context", "exit=0"});
  dropped.insert(std::find(dropped.begin(), dropped.end(), "--") + 1, {"env", "-i"});
  const auto kept_off = run_demarc(dropped);
  EXPECT_EQ(kept_off.exit_code, 3);
  EXPECT_THAT(kept_off.err, testing::HasSubstr("demarc exec: process "));
  EXPECT_THAT(kept_off.err, testing::HasSubstr("KEPT OFF GPU fafafafa-"));
  dropped.insert(dropped.begin() + 1, "-q");
  EXPECT_THAT(run_demarc(dropped).err, testing::HasSubstr("KEPT OFF GPU fafafafa-"));
  const auto missing = run_demarc({"exec", "--sms", "2", "--", "/no/such/program"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/program: cannot be started: No such file"));
}

TEST_F(Program, exec_reports_the_audit_as_json) {
  auto arguments = exec_subject({"context", "launch"});
  arguments.insert(arguments.begin() + 1, {"--audit", "--json"});
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("\"schema\": \"demarc.exec/2\""));
  EXPECT_THAT(outcome.err, HasSubstr("\"processes_confined\": 1"));
}

TEST_F(Program, exec_needs_exactly_one_choice) {
  EXPECT_EQ(run_demarc({"exec", "--", "true"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"exec", "--sms", "2", "--tpcs", "1", "--", "true"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"exec", "--tpcs", "99", "--", "true"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"exec", "--observe", "--tpcs", "1", "--", "true"}).exit_code, 1);
}

TEST_F(Program, exec_observes_and_announces_where_its_counters_are) {
  auto arguments = exec_subject({"context", "launch", "exit=5"});
  arguments.erase(arguments.begin() + 1, arguments.begin() + 3);
  arguments.insert(arguments.begin() + 1, {"--observe", "--announce", "1", "--audit"});
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_THAT(outcome.out, testing::MatchesRegex("/proc/[0-9]+/fd/[0-9]+#[0-9a-f]+\n"));
  EXPECT_THAT(outcome.err, HasSubstr("no partition (24 SMs): observed only; 1 process seen"));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  arguments[3] = std::to_string(ends[1]);
  const auto unheard = run_demarc(arguments);
  ::close(ends[1]);
  EXPECT_EQ(unheard.exit_code, 5) << unheard.err;
  EXPECT_THAT(unheard.err, HasSubstr("cannot be written: Broken pipe"));
  const auto closed = run_demarc({"exec", "--observe", "--announce", "99", "--", "true"});
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_THAT(closed.err, HasSubstr("--announce 99: no such open file descriptor"));
}

TEST_F(Program, a_running_program_can_be_given_other_tpcs_from_outside) {
  const std::string folder = test::fresh_folder("moved").string();
  const std::string moves =
      "mkfifo ready go\n"
      "$DEMARC exec --tpcs 1 -- sh -c "
      "'echo $$ > ready; read ignored < go; exec $DEMARC verify --tpcs 4,5' &\n"
      "read pid < ready\n"
      "$DEMARC exec --pid $pid --tpcs 4,5; echo moved $?; echo > go; wait $!";
  ::setenv("DEMARC", demarc.c_str(), 1);
  const auto outcome = test::run_program({"sh", "-c", "cd " + folder + "\n" + moves});
  ::unsetenv("DEMARC");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("TPCs 4-5\nmoved 0"));
  EXPECT_THAT(outcome.out, HasSubstr("the partition HOLDS"));
  EXPECT_EQ(run_demarc({"exec", "--pid", "1", "--tpcs", "0"}).exit_code, 1);
  for (const char* none : {"0", "-3"}) {
    const auto started = run_demarc({"exec", "--pid", none, "--tpcs", "0"});
    EXPECT_EQ(started.exit_code, 1);
    EXPECT_THAT(started.err,
                testing::HasSubstr(fmt::format("--pid {}: give the id of a process", none)));
  }
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--sync-domain", "2"},
                                                {"--audit"},
                                                {"--json"},
                                                {"--observe"},
                                                {"--device", "cuda:0"},
                                                {"--announce", "1"},
                                                {"--preload", "x.so"}}) {
    std::vector<std::string> argv{"exec", "--pid", "1", "--tpcs", "0"};
    argv.insert(argv.end(), other.begin(), other.end());
    const auto refused = run_demarc(argv);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("changes nothing else: leave " + other[0] + " out"));
  }
  for (const char* domain : {"", "-1", "auto", "1.5"}) {
    EXPECT_EQ(run_demarc({"exec", "--tpcs", "0", "--sync-domain", domain, "--", "true"}).exit_code,
              1)
        << domain;
  }
  EXPECT_EQ(run_demarc({"exec", "--tpcs", "0", "--sync-domain", "9", "--", "true"}).exit_code, 2);
}

TEST_F(Program, exec_inside_exec_is_refused_by_name) {
  for (const std::string inner : {" exec --tpcs 1 -- true", " exec --pid $$ --tpcs 1"}) {
    const auto outcome =
        run_demarc({"exec", "--tpcs", "1", "--", "sh", "-c", demarc + inner + "; echo code $?"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.out, "code 1\n");
    EXPECT_THAT(outcome.err, HasSubstr("inside another demarc exec"));
  }
}

TEST_F(Program, run_reports_the_times_and_that_the_outputs_meet_the_reference) {
  const auto outcome = run_demarc({"run", "bundled:vecadd"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("vecadd: 0.001 ms"));
  EXPECT_THAT(outcome.out, HasSubstr("the outputs meet the reference"));
  EXPECT_EQ(run_demarc({"run", "bundled:vecadd", "--device", "sim:h100-sxm"}).exit_code, 1);
}

TEST_F(Program, run_ends_with_three_where_outputs_miss_the_reference) {
  const auto folder = test::fresh_folder("run_misses");
  // A kernel that adds nothing: the outputs stay zero.
  ASSERT_TRUE(write_file((folder / "idle.ptx").string(),
                         ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry vecadd("
                         ".param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }\n"));
  ASSERT_TRUE(write_file((folder / "misses.json").string(),
                         R"({"schema": "demarc.launch/1", "name": "misses", "ptx": "idle.ptx",
    "buffers": [{"name": "a", "bytes": 4096, "element": "f32", "fill": "random"},
                {"name": "b", "bytes": 4096, "element": "f32", "fill": "random"},
                {"name": "c", "bytes": 4096, "element": "f32", "output": true}],
    "launches": [{"kernel": "vecadd", "grid": 4, "block": 256,
                  "args": ["buf:a", "buf:b", "buf:c", "i32:1024"]}],
    "check": {"reference": "vecadd"}})"));
  const auto outcome = run_demarc({"run", "--launch", (folder / "misses.json").string()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("vecadd: 0.001 ms"));
  EXPECT_THAT(outcome.err, HasSubstr("output 'c' (f32): 1024 of 1024 elements differ"));
}

TEST_F(Program, run_refuses_textures_by_name) {
  const auto folder = test::source_dir() / "tests" / "emulate" / "textures";
  const auto outcome = run_demarc({"run", "--launch", (folder / "plane-texels.json").string()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "demarc run: kernel 'fetch_texels_2d': the launch gives it a texture or a surface, "
            "which `demarc run` does not take\n");
}

TEST_F(Program, run_ends_with_three_where_a_kernel_writes_behind_its_buffer) {
  const auto outcome =
      run_demarc({"run", (test::source_dir() / "examples" / "halo.ptx").string(), "--kernel",
                  "halo", "--grid", "8", "--block", "64", "--args", "buf:2052,buf:2044"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST(NoDriver, the_verbs_say_so_and_exit_with_two) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so.1", 1);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"topo"},
                                             {"verify", "--sms", "2"},
                                             {"exec", "--sms", "2", "--", "true"},
                                             {"run", "bundled:vecadd"}}) {
    const auto outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments[0];
    EXPECT_THAT(outcome.err, HasSubstr("no NVIDIA driver")) << arguments[0];
  }
  ::unsetenv("DEMARC_LIBCUDA");
}

}  // namespace
}  // namespace demarc
