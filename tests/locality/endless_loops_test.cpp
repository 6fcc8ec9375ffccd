// Kernels that do not end: what is kept of them until this is known, and that it is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/emulate/emulate.hpp"
#include "follow/run_collector.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using testing::HasSubstr;

// A load in each of so many turns.
ptx::Module loop_of(const char* turns) {
  return module_of(
      fmt::format("ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 0;\nagain:\nld.global.u32 %r2, [%rd1];\n"
                  "add.u32 %r1, %r1, 1;\nadd.u32 %r1, %r1, %r2;\nsetp.ne.u32 %p1, %r1, {};\n"
                  "@%p1 bra again;\n",
                  turns),
      one_pointer);
}
gpu::Launch one_warp() {
  return launch_of("1", "32", "buf:64:zero,i32:0");
}

TEST(EndlessLoops, leave_no_runs_behind_once_a_block_has_made_more_than_are_kept) {
  const ptx::Module module = loop_of("300");
  for (const bool too_many : {false, true}) {
    Effort effort;
    effort.max_runs_of_block = too_many ? 299 : 300;
    const std::vector<std::size_t> wanted{0};
    const std::vector<Access> none;
    RunCollector collector(wanted, none, effort, {});
    ASSERT_TRUE(emulate::run(module, one_warp(), {}, &collector));
    EXPECT_EQ(collector.gave_up(), too_many);
    EXPECT_EQ(collector.take().runs.runs.size(), too_many ? 0U : 300U);
  }
}

// 33 million turns make as many runs without a limit.
TEST(EndlessLoops, that_hang_keep_no_more_runs_than_are_allowed) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nagain:\nld.global.u32 %r2, [%rd1];\nbra again;\n", one_pointer);
  emulate::Options options;
  options.instruction_limit = 1'000'000;
  Effort effort;
  effort.max_runs_of_block = 1000;
  const std::vector<std::size_t> wanted{0};
  const std::vector<Access> none;
  RunCollector collector(wanted, none, effort, {});
  const auto outcome = emulate::run(module, one_warp(), options, &collector);
  ASSERT_TRUE(outcome);
  ASSERT_FALSE(outcome->findings.empty());
  EXPECT_EQ(outcome->findings.back().kind, emulate::FindingKind::hang);
  EXPECT_TRUE(collector.gave_up());
  EXPECT_EQ(collector.kept_runs(), 0U);
}

TEST(EndlessLoops, that_end_after_all_have_the_same_runs_as_without_the_limit) {
  const ptx::Module module = loop_of("300");
  const auto at_once = collect_runs(module, one_warp(), 0, Force::emulated);
  const auto again =
      collect_runs(module, one_warp(), 0, Force::emulated, 0, {}, {.max_runs_of_block = 10});
  ASSERT_TRUE(at_once && again);
  EXPECT_EQ(at_once->runs.runs.size(), 300U);
  EXPECT_EQ(again->runs.runs.size(), 300U);
}

// Closed forms give up and the emulator has to say whether the kernel ends, whatever is asked for.
TEST(EndlessLoops, of_accesses_that_are_not_asked_for_are_hangs) {
  const ptx::Module module =
      module_of("ld.param.u64 %rd1, [p0];\nagain:\nst.global.u32 [%rd1+4096], %r2;\nbra again;\n",
                one_pointer);
  Options options;
  options.instruction_limit = 10'000;
  for (const AccessKind kind : {AccessKind::load, AccessKind::store}) {
    options.kind = kind;
    const auto analysis = analyse(module, one_warp(), options);
    ASSERT_FALSE(analysis);
    EXPECT_EQ(analysis.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(analysis.error().message,
                testing::AllOf(HasSubstr("does not run to its end: hang: k.ptx:"),
                               HasSubstr("the block executed more than 10000 warp instructions")));
  }
}

TEST(EndlessLoops, have_no_closed_form_because_they_execute_too_much) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nagain:\nld.global.u32 %r2, [%rd1];\nbra again;\n", one_pointer);
  const auto runs =
      collect_runs(module, one_warp(), 0, Force::symbolic, 0, {}, {.max_of_row = 10'000});
  ASSERT_FALSE(runs);
  EXPECT_THAT(runs.error().message,
              HasSubstr("kernel 'k': its threads execute too much to be followed one by one"));
}

// Once the emulator has found that it ends, a row is followed however long it takes.
TEST(EndlessLoops, are_told_from_long_ones_by_the_emulator) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 1;\nagain:\nst.global.u32 [%rd1], %r1;\n"
      "mul.lo.u32 %r1, %r1, 3;\nsetp.lt.u32 %p1, %r1, 50000;\n@%p1 bra again;\n",
      one_pointer);
  const auto closed = collect_runs(module, one_warp(), 0, Force::automatic);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->method, Method::symbolic);
  for (const Force force : {Force::automatic, Force::symbolic}) {
    const auto later = collect_runs(module, one_warp(), 0, force, 0, {}, {.max_of_row = 20});
    ASSERT_TRUE(later);
    EXPECT_EQ(later->method, Method::symbolic);
    EXPECT_EQ(later->runs.runs.size(), closed->runs.runs.size());
    EXPECT_EQ(later->runs.accesses[0].access_class, closed->runs.accesses[0].access_class);
  }
}

}  // namespace
}  // namespace demarc::locality
