// Lanes, warps and blocks that wait through memory for each other: flags, locks, mbarriers and
// barriers of the grid.
#include <gmock/gmock.h>

#include <algorithm>

#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::progress_finding;
using test::progress_words;
using test::run_text;
using test::words_of;
using testing::HasSubstr;

// Lane 1 waits for lane 0, which comes after it in the text.
std::string flag_kernel(const std::string& look, const std::string& set) {
  return "mov.u32 %r9, 3;\nmov.u32 %r5, area;\nadd.s64 %rd5, %rd1, 256;\nsetp.eq.u32 %p1, %r1, "
         "40;\n"
         "@%p1 st.shared.u32 [%r5], 0;\nbar.sync 0;\nsetp.ne.u32 %p1, %r1, 1;\n@%p1 bra "
         "OVER;\nLOOK:\n" +
         look +
         "\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra LOOK;\nmov.u32 %r9, 5;\nOVER:\n"
         "setp.ne.u32 %p3, %r1, 0;\n@%p3 bra END;\nmov.u32 %r9, 4;\nmembar.gl;\n" +
         set + "\nEND:";
}

TEST(WaitingLanes, a_lane_may_wait_for_a_lane_of_its_own_warp) {
  for (const auto& [look, set] : std::vector<std::pair<std::string, std::string>>{
           {"ld.volatile.global.u32 %r4, [%rd5];", "st.volatile.global.u32 [%rd5], 1;"},
           {"ld.acquire.gpu.global.u32 %r4, [%rd5];", "st.release.gpu.global.u32 [%rd5], 1;"},
           {"ld.relaxed.sys.u32 %r4, [%rd5];", "st.relaxed.sys.u32 [%rd5], 1;"},
           {"ld.global.u32 %r4, [%rd5];", "st.global.u32 [%rd5], 1;"},
           {"atom.global.add.u32 %r4, [%rd5], 0;", "atom.global.exch.b32 %r8, [%rd5], 1;"},
           {"atom.global.cas.b32 %r4, [%rd5], 7, 8;", "red.global.add.u32 [%rd5], 1;"},
           {"nanosleep.u32 100;\nld.volatile.global.u32 %r4, [%rd5];",
            "st.volatile.global.u32 [%rd5], 1;"}}) {
    const auto found = progress_words(".shared .align 4 .b32 area[1];\n", flag_kernel(look, set));
    EXPECT_EQ(found[0], 4U) << look;
    EXPECT_EQ(found[1], 5U) << look;
    EXPECT_EQ(found[2], 3U) << look;
  }
}

// The upper half of the first warp waits at a barrier, most of the lower half behind the first
// vote.
TEST(WaitingLanes, lanes_at_a_meeting_go_on_where_another_warp_looks_for_what_they_store) {
  const auto found = progress_words("", R"(
add.s64 %rd5, %rd1, 512;
mov.u32 %r9, 3;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra LOOK;
setp.ge.u32 %p1, %r1, 16;
@%p1 bra UPPER;
and.b32 %r5, %r1, 3;
setp.eq.u32 %p2, %r5, 3;
@%p2 vote.sync.any.pred %p3, %p2, 0xffff;
@!%p2 vote.sync.any.pred %p3, %p2, 0xffff;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra MEET;
st.volatile.global.u32 [%rd5], 1;
bra MEET;
UPPER:
setp.gt.u32 %p1, %r1, 99;
@%p1 bra GONE;
bra MEET;
GONE:
exit;
LOOK:
ld.volatile.global.u32 %r9, [%rd5];
setp.eq.u32 %p1, %r9, 0;
@%p1 bra LOOK;
MEET:
barrier.sync 2;)",
                                    64);
  EXPECT_EQ(found[0], 3U);
  EXPECT_EQ(found[63], 1U);
}

std::string lock_kernel(const std::string& space, const std::string& place) {
  return fmt::format(R"(
LOOK:
atom.{0}.cas.b32 %r4, [{1}], 0, 1;
setp.ne.u32 %p1, %r4, 0;
@%p1 bra LOOK;
ld.volatile.{0}.u32 %r5, [{1}+4];
add.u32 %r9, %r5, 1;
st.volatile.{0}.u32 [{1}+4], %r9;
membar.gl;
atom.{0}.exch.b32 %r4, [{1}], 0;
)",
                     space, place);
}

TEST(WaitingLanes, every_lane_of_many_warps_gets_a_lock_once) {
  for (const std::uint32_t threads : {32U, 256U}) {
    const auto global = progress_words(
        "", fmt::format("add.s64 %rd5, %rd1, {};\n", 8 * threads) + lock_kernel("global", "%rd5"),
        threads);
    EXPECT_EQ(global[threads], std::uint64_t{threads} << 32U);
    auto turns = std::vector<std::uint64_t>(global.begin(), global.begin() + threads);
    std::sort(turns.begin(), turns.end());
    for (std::uint32_t i = 0; i < threads; ++i) EXPECT_EQ(turns[i], i + 1);
    const auto shared = progress_words(".shared .align 4 .b32 area[2];\n",
                                       "mov.u32 %r6, area;\nst.volatile.shared.u32 [%r6], "
                                       "0;\nst.volatile.shared.u32 [%r6+4], 0;\nbar.sync 0;\n" +
                                           lock_kernel("shared", "%r6") +
                                           "bar.sync 0;\nld.volatile.shared.u32 %r9, [%r6+4];",
                                       threads);
    EXPECT_EQ(shared[5], threads);
  }
}

// The counter of the loop is one for all lanes of the warp, which leave the lock one by one.
TEST(WaitingLanes, what_all_lanes_count_is_counted_once_by_each_that_goes_on_alone) {
  const auto found = progress_words(
      "",
      "add.s64 %rd5, %rd1, 256;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;\nROUND:\nshl.b32 %r8, %r6, 4;\n" +
          lock_kernel("global", "%rd5") +
          "add.u32 %r7, %r7, %r8;\nadd.u32 %r7, %r7, 1;\nadd.u32 %r6, %r6, 1;\n"
          "setp.lt.u32 %p2, %r6, 3;\n@%p2 bra ROUND;\nmov.u32 %r9, %r7;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 3U + 16 + 32);
  EXPECT_EQ(found[32], std::uint64_t{96} << 32U);
}

// The same where they take the lock in a function: the counters are the caller's, and the
// function's own.
TEST(WaitingLanes, what_callers_count_is_counted_once_by_each_lane_that_leaves_a_function_alone) {
  std::string more;
  for (int i = 0; i < 40; ++i)
    more += fmt::format("mov.u32 %u{0}, {0};\nadd.u32 %sum, %sum, %u{0};\n", i);
  const std::string function =
      ".func (.param .b32 r) take(.param .b64 place, .param .b32 n)\n{ .reg .pred %p<3>; .reg .b32 "
      "%r<10>, %u<40>, %sum; .reg .b64 %rd<6>;\nld.param.b64 %rd5, [place];\nld.param.b32 %r3, "
      "[n];\nmov.u32 %sum, 0;\nmov.u32 %r6, 0;\nROUND:\n" +
      lock_kernel("global", "%rd5") + more +
      "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 2;\n@%p2 bra ROUND;\n"
      "add.u32 %r3, %r3, %sum;\nst.param.b32 [r], %r3; ret; }\n";
  const auto found = progress_words(
      function,
      "add.s64 %rd5, %rd1, 256;\nmov.u32 %r6, 0;\nmov.u32 %r9, 0;\nAGAIN:\n{ .param .b64 a; .param "
      ".b32 n; .param .b32 r;\nst.param.b64 [a], %rd5; st.param.b32 [n], %r6;\ncall (r), take, (a, "
      "n);\nld.param.b32 %r8, [r]; }\nadd.u32 %r9, %r9, %r8;\nadd.u32 %r6, %r6, 1;\n"
      "setp.lt.u32 %p2, %r6, 3;\n@%p2 bra AGAIN;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 3U + 3 * 2 * 780);
  EXPECT_EQ(found[32], std::uint64_t{2 * 3 * 32} << 32U);
}

// Lane 0 is behind the others and waits for lane 31, which exits. The others still count 5 rounds.
TEST(WaitingLanes, an_exit_that_lets_others_go_on_leaves_the_counters_of_those_that_stay) {
  const auto found = progress_words("", R"(
add.s64 %rd5, %rd1, 256;
mov.u32 %r6, 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra OVER;
LOOK:
ld.volatile.global.u32 %r4, [%rd5];
setp.eq.u32 %p2, %r4, 0;
@%p2 bra LOOK;
bar.warp.sync 0x80000001;
OVER:
add.u32 %r6, %r6, 1;
st.volatile.global.u32 [%rd5], 9;
nanosleep.u32 50;
setp.lt.u32 %p3, %r6, 5;
@%p3 bra OVER;
setp.eq.u32 %p4, %r1, 31;
@%p4 exit;
mov.u32 %r9, %r6;)");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], lane == 31 ? 0U : 5U);
}

// On the way one of them wrote a register that is one for all its lanes.
TEST(WaitingLanes, lanes_that_went_on_early_are_together_again_behind_a_barrier) {
  const auto found = progress_words("", R"(
add.s64 %rd5, %rd1, 256;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra OVER;
LOOK:
ld.volatile.global.u32 %r4, [%rd5];
setp.eq.u32 %p2, %r4, 0;
@%p2 bra LOOK;
mov.u32 %r8, 5;
st.global.u32 [%rd5], %r8;
OVER:
setp.ne.u32 %p3, %r1, 7;
@%p3 bra END;
st.volatile.global.u32 [%rd5], 9;
END:
bar.sync 0;
activemask.b32 %r9;)");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 0xffffffffU);
}

TEST(WaitingLanes, lanes_wait_at_an_mbarrier_for_lanes_of_their_own_warp) {
  const auto found = progress_words(".shared .align 8 .b64 bar;\n", R"(
mov.u32 %r5, bar;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [%r5], 16;
bar.sync 0;
mov.u32 %r9, 1;
setp.lt.u32 %p1, %r1, 16;
@%p1 bra ARRIVE;
LOOK:
mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0;
@!%p2 bra LOOK;
mov.u32 %r9, 2;
ARRIVE:
@!%p1 bra END;
mbarrier.arrive.shared.b64 _, [%r5];
END:)");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], lane < 16 ? 1U : 2U);
}

std::string grid_wait(const std::string& count) {
  return "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra MEET;\nmembar.gl;\natom.global.add.u32 %r4, "
         "[%rd1+1016], 1;\n"
         "LOOK:\nld.volatile.global.u32 %r5, [%rd1+1016];\nsetp.lt.u32 %p2, %r5, " +
         count + ";\n@%p2 bra LOOK;\nMEET:\nbar.sync 0;\n";
}

TEST(WaitingLanes, blocks_that_wait_for_each_other_through_memory_are_there_together) {
  const std::string body =
      "mov.u32 %r3, %ctaid.x;\nmul.wide.u32 %rd5, %r3, 8;\nadd.s64 %rd5, %rd1, %rd5;\n"
      "st.volatile.global.u32 [%rd5], %r3;\n" +
      grid_wait("20") +
      "xor.b32 %r3, %r3, 3;\nmul.wide.u32 %rd6, %r3, 8;\nadd.s64 %rd6, %rd1, %rd6;\n"
      "ld.volatile.global.u32 %r9, [%rd6];\nst.volatile.global.u32 [%rd5+4], %r9;";
  const auto outcome = run_text(kernel_of("", body), launch_of(20, 64, 1024));
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  const auto words = words_of(*outcome);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(words[i], i | (i ^ 3U) << 32U);
}

TEST(WaitingLanes,
     blocks_that_wait_for_more_than_are_there_hang_and_the_finding_says_how_many_are) {
  Options options;
  options.resident_blocks = 3;
  options.instruction_limit = 200000;
  EXPECT_THAT(
      progress_finding("", grid_wait("4"), 32, options, 5),
      AllOf(HasSubstr("hang"), HasSubstr("3 blocks of 5 are there"), HasSubstr("--resident")));
  EXPECT_EQ(progress_finding("", grid_wait("3"), 32, options, 5), "none");
}

}  // namespace
}  // namespace demarc::emulate
