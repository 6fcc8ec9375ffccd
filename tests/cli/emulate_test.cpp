// demarc emulate, as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

constexpr const char* halo = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry halo(.param .u64 in, .param .u64 out)
{
.reg .b32 %r<5>;
.reg .b64 %rd<7>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r1, %r1, %r2, %r3;
mad.wide.u32 %rd3, %r1, 4, %rd1;
mad.wide.u32 %rd4, %r1, 4, %rd2;
ld.global.u32 %r4, [%rd3+4];
st.global.u32 [%rd4], %r4;
ret;
}
)";

std::string file_with(const std::string& text) {
  const auto path = test::fresh_folder("emulate_verb") / "k.ptx";
  EXPECT_TRUE(write_file(path, text));
  return path.string();
}

std::vector<std::string> launch(const std::string& file, const char* bytes) {
  return {"emulate", file,      "--kernel", "halo",   "--grid",
          "2",       "--block", "64",       "--args", std::string("buf:") + bytes + ",buf:512"};
}

TEST(EmulateVerb, a_clean_kernel_exits_with_0_and_counts_what_it_did) {
  const auto outcome = run_demarc(launch(file_with(halo), "516"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("halo: 2 blocks, 4 warps, 1408 thread instructions, 44 warp instructions"));
}

TEST(EmulateVerb, a_finding_exits_with_3_and_names_line_block_and_thread) {
  const std::string file = file_with(halo);
  const auto outcome = run_demarc(launch(file, "512"));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("out-of-bounds access: "));
  EXPECT_THAT(outcome.err, HasSubstr("k.ptx:16: ld.global.u32 %r4, [%rd3+4];"));
  EXPECT_THAT(outcome.err, HasSubstr("kernel halo, block (1,0,0), thread (63,0,0)"));
}

TEST(EmulateVerb, json_carries_the_statistics_and_the_findings) {
  auto arguments = launch(file_with(halo), "512");
  arguments.emplace_back("--json");
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("\"schema\": \"demarc-emulate-1\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"kind\": \"out-of-bounds access\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"line\": 16"));
}

TEST(EmulateVerb, a_bundled_launch_meets_its_reference) {
  const auto outcome = run_demarc({"emulate", "bundled:vecadd"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the outputs meet the reference"));
}

TEST(EmulateVerb, a_trace_is_written_and_begins_with_its_mark) {
  const auto path = test::fresh_folder("emulate_trace") / "vecadd.trace";
  const auto outcome = run_demarc({"emulate", "bundled:vecadd", "--trace", path.string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto bytes = read_file(path);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->substr(0, 8), "DMRCTRC1");
}

TEST(EmulateVerb, what_is_wrong_with_the_input_exits_with_1) {
  const std::string file = file_with(halo);
  const auto nobody = run_demarc(
      {"emulate", file, "--kernel", "nobody", "--grid", "1", "--block", "1", "--args", "buf:4"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("nobody"));
  const auto arguments = run_demarc(
      {"emulate", file, "--kernel", "halo", "--grid", "1", "--block", "1", "--args", "buf:4"});
  EXPECT_EQ(arguments.exit_code, 1);
  EXPECT_THAT(arguments.err, HasSubstr("takes 2 arguments, the launch gives 1"));
  std::string text = halo;
  text.insert(text.find("ret;"), "wgmma.fence.sync.aligned;\n");
  const auto uncovered = run_demarc(launch(file_with(text), "516"));
  EXPECT_EQ(uncovered.exit_code, 1);
  EXPECT_THAT(uncovered.err, HasSubstr("k.ptx:18: "));
  EXPECT_THAT(uncovered.err, HasSubstr("wgmma.fence.sync.aligned;"));
}

TEST(EmulateVerb, without_checks_a_race_passes) {
  std::string text = halo;
  text.insert(text.find("ret;"), "st.shared.u32 [word], %r3;\n");
  text.insert(text.find(".visible"), ".shared .align 4 .b32 word;\n");
  const std::string file = file_with(text);
  auto arguments = launch(file, "516");
  const auto checked = run_demarc(arguments);
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_THAT(checked.err, HasSubstr("k.ptx:19: st.shared.u32 [word], %r3;"));
  arguments.emplace_back("--no-checks");
  EXPECT_EQ(run_demarc(arguments).exit_code, 0);
}

}  // namespace
}  // namespace demarc
