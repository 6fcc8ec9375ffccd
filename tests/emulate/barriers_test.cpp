// Barriers of a block: which numbers and counts there are, what reductions give, who is waited for,
// and what the finding says where a barrier is never completed.
#include <gmock/gmock.h>

#include <memory>

#include "groups.hpp"
#include "ops/control.hpp"
#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::in_both_sides;
using test::kernel_of;
using test::launch_of;
using test::progress_words;
using test::run_text;
using test::shared_area;
using test::words_of;
using testing::Each;
using testing::HasSubstr;

// The only finding of a kernel of `threads` threads.
Finding barrier_finding(const std::string& body, std::uint32_t threads) {
  const auto outcome = run_text(kernel_of("", body), launch_of(1, threads, 8 * threads));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return {};
  EXPECT_EQ(outcome->findings.size(), 1U) << body;
  return outcome->findings.empty() ? Finding{} : outcome->findings[0];
}

// The line of kernel_of(), declarations aside, on which the `number`th line of its body stands.
std::string line_of(unsigned number) {
  return std::to_string(14 + number);
}

TEST(Barriers, there_are_16_and_threads_come_to_them_by_whole_warps) {
  for (const auto& [id, threads] : std::vector<std::pair<unsigned, unsigned>>{
           {16, 32}, {4000000000U, 32}, {1, 48}, {15, 33}, {2, 31}}) {
    const auto outcome = run_text(
        kernel_of("", fmt::format("mov.u32 %r3, {};\nmov.u32 %r4, {};\nbar.sync %r3, %r4;\n"
                                  "st.global.u64 [%rd2], %rd1;",
                                  id, threads)),
        launch_of(1, 32, 256));
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->findings.size(), 1U);
    EXPECT_EQ(outcome->findings[0].kind, FindingKind::limit);
    EXPECT_EQ(outcome->findings[0].count, 1U);
    EXPECT_EQ(outcome->findings[0].detail,
              fmt::format("barrier {} with {} threads: there are 16 barriers, counts are multiples "
                          "of 32",
                          id, threads));
    EXPECT_THAT(words_of(*outcome), Each(0U)) << "the block ends there";
  }
}

// The first thread, which has left, holds other numbers.
TEST(Barriers, number_and_count_are_those_of_the_threads_that_come) {
  const auto found = progress_words("",
                                    "setp.eq.u32 %p1, %r1, 0;\nselp.u32 %r3, 99, 15, %p1;\n"
                                    "selp.u32 %r4, 5, 32, %p1;\n@%p1 exit;\nbar.sync %r3, %r4;\n"
                                    "mov.u32 %r9, 7;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], lane == 0 ? 0U : 7U);
}

TEST(Barriers, each_of_the_16_lets_go_its_own_warps) {
  const auto found = progress_words("",
                                    "shr.u32 %r3, %r1, 6;\nmov.u32 %r4, 64;\nbar.sync %r3, %r4;\n"
                                    "mov.u32 %r9, 7;",
                                    1024);
  for (unsigned thread = 0; thread < 1024; ++thread) EXPECT_EQ(found[thread], 7U);
}

// Each behind one of other threads that gave something else.
TEST(Barriers, a_reduction_begins_anew_each_time) {
  const auto second_of = [](const std::string& operation, unsigned first_below,
                            unsigned second_below) {
    const bool counts = operation == "popc.u32";
    const auto reduce = [&](unsigned below) {
      return fmt::format("setp.lt.u32 %p1, %r1, {};\nbar.red.{} {}, 3, %p1;\n", below, operation,
                         counts ? "%r9" : "%p2");
    };
    return progress_words(
        "", reduce(first_below) + reduce(second_below) + (counts ? "" : "selp.u32 %r9, 1, 0, %p2;"),
        64)[50];
  };
  EXPECT_EQ(second_of("popc.u32", 40, 24), 24U);
  EXPECT_EQ(second_of("and.pred", 40, 64), 1U);
  EXPECT_EQ(second_of("and.pred", 64, 40), 0U);
  EXPECT_EQ(second_of("or.pred", 40, 0), 0U);
  EXPECT_EQ(second_of("or.pred", 0, 40), 1U);
}

// The threads that have left hold what would change the result.
TEST(Barriers, a_reduction_is_of_the_threads_that_have_not_left) {
  const auto reduced = [](const std::string& before, const std::string& reduce) {
    return progress_words("", before + "setp.lt.u32 %p3, %r1, 5;\n@%p3 exit;\n" + reduce, 64)[40];
  };
  const std::string result = "selp.u32 %r9, 1, 0, %p2;";
  const std::string stayed = "setp.ge.u32 %p1, %r1, 5;\n";
  EXPECT_EQ(reduced(stayed, "bar.red.and.pred %p2, 0, %p1;\n" + result), 1U);
  EXPECT_EQ(reduced(stayed, "bar.red.or.pred %p2, 0, !%p1;\n" + result), 0U);
  EXPECT_EQ(reduced(stayed, "bar.red.popc.u32 %r9, 0, %p1;"), 59U);
  EXPECT_EQ(reduced(stayed, "bar.red.popc.u32 %r9, 0, !%p1;"), 0U);
  EXPECT_EQ(reduced("setp.ge.u32 %p1, %r1, 6;\n", "bar.red.and.pred %p2, 0, %p1;\n" + result), 0U);
}

// Each thread gets the result in its own register, whichever side of a branch it comes from.
TEST(Barriers, a_reduction_by_both_sides_of_a_branch_gives_each_side_its_predicate) {
  const std::string tell = "selp.u32 %r9, 1, 0, %p2;\n@%p4 add.u32 %r9, %r9, 10;";
  for (const auto& [operation, wanted] :
       std::vector<std::pair<std::string, unsigned>>{{"and", 0U}, {"or", 11U}}) {
    const auto reduce = [&, &name = operation](const char* d) {
      return fmt::format("setp.gt.u32 %p3, %r4, 30;\nbarrier.red.{}.pred {}, 2, %p3;\n", name, d);
    };
    const auto found = progress_words("", "setp.gt.u32 %p2, %r1, 99;\nsetp.gt.u32 %p4, %r1, 99;\n" +
                                              in_both_sides(reduce("%p2") + "mov.pred %p4, %p2;",
                                                            reduce("%p4") + "mov.pred %p2, %p4;") +
                                              tell);
    for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], wanted) << operation;
  }
}

// Whatever the registers of these hold.
TEST(Barriers,
     a_reduction_is_of_the_threads_that_give_it_a_predicate_and_not_of_those_that_arrive) {
  const auto reduced = [](const std::string& reduce) {
    return progress_words("",
                          "setp.ge.u32 %p1, %r1, 32;\nsetp.ge.u32 %p3, %r1, 40;\n@%p1 bra WAITS;\n"
                          "barrier.arrive 3, 64;\nbra OVER;\nWAITS:\n" +
                              reduce + "\nOVER:",
                          64)[50];
  };
  const std::string result = "\nselp.u32 %r9, 1, 0, %p2;";
  EXPECT_EQ(reduced("barrier.red.popc.u32 %r9, 3, 64, %p3;"), 24U);
  EXPECT_EQ(reduced("barrier.red.and.pred %p2, 3, 64, %p1;" + result), 1U);
  EXPECT_EQ(reduced("barrier.red.or.pred %p2, 3, 64, !%p1;" + result), 0U);
}

// A warp has arrived once all of its threads have, wherever they do.
TEST(Barriers, threads_that_only_arrive_may_do_so_on_both_sides_of_a_branch) {
  const std::string write =
      "mov.u32 %r5, area;\nmad.lo.u32 %r5, %r1, 4, %r5;\nst.shared.u32 [%r5], %r1;\n";
  const std::string text =
      "setp.ge.u32 %p4, %r1, 32;\nmov.u32 %r9, 5;\n@%p4 bra WAITS;\n" +
      in_both_sides(write + "barrier.arrive 3, 64;", write + "barrier.arrive 3, 64;") +
      "bra OVER;\nWAITS:\nbarrier.sync 3, 64;\nsub.u32 %r6, %r1, 32;\n"
      "mov.u32 %r5, area;\nmad.lo.u32 %r5, %r6, 4, %r5;\nld.shared.u32 %r9, [%r5];\nOVER:\n";
  const auto found = progress_words(shared_area, text, 64);
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(found[lane], 5U);
    EXPECT_EQ(found[32 + lane], lane);
  }
  // Half of a warp is not a warp.
  const Finding half = barrier_finding(
      "setp.ge.u32 %p4, %r1, 32;\n@%p4 bra WAITS;\nsetp.ge.u32 %p1, %r1, 16;\n@%p1 bra OVER;\n"
      "barrier.arrive 3, 64;\nbra OVER;\nWAITS:\nbarrier.sync 3, 64;\nOVER: bar.sync 4, 64;",
      64);
  EXPECT_EQ(half.kind, FindingKind::barrier_divergence);
}

TEST(Barriers, a_warp_that_ends_lets_go_those_that_wait_for_all) {
  const auto found = progress_words("",
                                    "setp.lt.u32 %p1, %r1, 64;\n@%p1 bar.sync 0;\n@%p1 mov.u32 "
                                    "%r9, 3;\n@!%p1 mov.u32 %r9, 4;",
                                    128);
  for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(found[i], i < 64 ? 3U : 4U);
}

TEST(Barriers, that_are_never_completed_are_told_with_where_the_other_warps_are) {
  const Finding three = barrier_finding(
      "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra FIRST;\nsetp.lt.u32 %p1, %r1, 64;\n@%p1 bra GONE;\n"
      "bar.sync 2, 96;\nbra GONE;\nFIRST:\nbar.sync 1, 64;\nGONE:",
      96);
  EXPECT_EQ(three.kind, FindingKind::barrier_divergence);
  EXPECT_EQ(three.instruction, "bar.sync 1, 64;");
  EXPECT_EQ(three.thread[0], 0U);
  EXPECT_EQ(three.detail,
            "the barrier is never completed: warp 1 has ended, warp 2 waits at line " + line_of(5));
  const Finding alone = barrier_finding("bar.sync 1, 128;", 96);
  EXPECT_EQ(alone.detail, "the barrier is never completed: too few threads take part");
}

TEST(Barriers, of_many_warps_that_are_elsewhere_the_first_are_told) {
  const Finding many = barrier_finding(
      "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra FIRST;\nbar.sync 2;\nbra OVER;\nFIRST:\nbar.sync "
      "1;\nOVER:",
      1024);
  EXPECT_THAT(many.detail, HasSubstr("never completed: warp 1 waits at line " + line_of(3) +
                                     ", warp 2 waits at line " + line_of(3) + ", "));
  EXPECT_THAT(many.detail, HasSubstr(", …"));
  EXPECT_LT(many.detail.size(), 250U);
  EXPECT_GT(many.detail.size(), 190U);
}

// Threads of two rows: thread 16 of the warp is (0,1,0).
TEST(Barriers, a_warp_of_which_some_do_not_arrive_is_told_with_the_place_where_they_wait) {
  gpu::Launch launch = launch_of(1, 16, 512);
  launch.kernels[0].block.y = 2;
  const std::string parts = "mov.u32 %r3, %tid.y;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 bra UPPER;\n";
  const auto detail = [&](const std::string& body) {
    const auto outcome = run_text(kernel_of("", parts + body), launch);
    EXPECT_TRUE(outcome) << outcome.error().message;
    if (!outcome || outcome->findings.empty()) return std::string();
    EXPECT_EQ(outcome->findings[0].kind, FindingKind::barrier_divergence);
    return outcome->findings[0].detail;
  };
  EXPECT_EQ(detail("barrier.sync 1, 32;\nbra OVER;\nUPPER:\nbarrier.sync 2, 32;\nOVER:"),
            "16 threads of the warp do not arrive, among them thread (0,1,0): thread (0,1,0) waits "
            "at line " +
                line_of(7));
  // Those who have left are not missing; the others wait at two places.
  EXPECT_EQ(detail("setp.gt.u32 %p2, %r1, 7;\n@%p2 exit;\nbarrier.sync 1, 32;\nbra OVER;\nUPPER:\n"
                   "setp.gt.u32 %p2, %r1, 7;\n@%p2 bra LAST;\nbar.warp.sync -1;\nbra OVER;\n"
                   "LAST: barrier.sync 3, 32;\nOVER:")
                .substr(0, 36),
            "16 threads of the warp do not arrive");
}

TEST(Barriers, arrivals_of_warps_are_counted) {
  const auto statistics = [](const std::string& body, std::uint32_t threads) {
    const auto outcome = run_text(kernel_of("", body), launch_of(2, threads, 8 * threads));
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->kernels[0] : KernelStatistics{};
  };
  EXPECT_EQ(statistics("bar.sync 0;\nbar.sync 1;\nbar.arrive 2, 128;", 96).barriers, 2U * 3 * 3);
  EXPECT_EQ(statistics("", 96).barriers, 0U);
}

// Two warps that no other thread lets go on. Micro-op i is of line 100 + i.
class StuckWarps : public testing::Test {
 protected:
  StuckWarps() {
    program.block = {64, 1, 1};
    program.functions.resize(1);
    program.functions[0].frame_bytes = sizeof frame;
    for (unsigned i = 0; i < 2 * 3 * warp_size; ++i)
      program.tids.push_back(i / warp_size == 0 ? i : i / warp_size == 3 ? i - 2 * warp_size : 0);
    program.code.resize(20);
    program.instructions.resize(20);
    for (std::uint32_t i = 0; i < 20; ++i) {
      program.code[i].instruction = i;
      program.instructions[i].trace.line = 100 + i;
    }
    block = std::make_unique<Block>(program, pool);
    begin();
  }

  void begin() {
    block->start(0, false, false);
    for (Warp& warp : block->warps) {
      warp.frame = frame;
      warp.mask = 0;
      warp.state = WarpState::done;
    }
    block->warps[0].state = WarpState::waiting;
  }
  // Lanes of a warp arrive at a barrier and wait there.
  void wait(unsigned warp, std::uint32_t place, Mask lanes, std::uint32_t id,
            std::uint32_t threads = 0) {
    Warp& w = block->warps[warp];
    w.mask = lanes;
    w.state = WarpState::ready;
    park(w, place, lanes, Wait::barrier).barrier = id;
    block->arrive(w, &program.code[place], id, threads);
    w.mask = 0;
    w.state = WarpState::waiting;
  }
  // The thread, the line and the words of the finding.
  std::string stuck() {
    block->report_stuck();
    EXPECT_TRUE(block->stopped);
    EXPECT_EQ(block->findings.size(), 1U);
    if (block->findings.empty()) return "none";
    const Finding& found = block->findings[0].finding;
    EXPECT_EQ(found.kind, FindingKind::barrier_divergence);
    return fmt::format("{} at {}: {}", found.thread[0], found.line, found.detail);
  }

  alignas(64) std::byte frame[64] = {};
  Program program;
  FramePool pool;
  std::unique_ptr<Block> block;
};

TEST_F(StuckWarps, lack_lanes_that_wait_for_something_else) {
  wait(0, 3, 0xffff0000, 0);
  park(block->warps[0], 5, 0xfff0, Wait::step);
  park(block->warps[0], 6, 0xf, Wait::step);
  EXPECT_EQ(stuck(),
            "16 at 103: 16 threads of the warp do not arrive, among them thread (0,0,0): thread "
            "(4,0,0) waits at line 105, thread (0,0,0) waits at line 106");
}

TEST_F(StuckWarps, lack_lanes_at_another_barrier) {
  wait(0, 3, 0xffff0000, 1);
  wait(0, 5, 0xffff, 2);
  EXPECT_EQ(stuck(),
            "16 at 103: 16 threads of the warp do not arrive, among them thread (0,0,0): thread "
            "(0,0,0) waits at line 105");
}

// Those that have exited are lacked by none.
TEST_F(StuckWarps, lack_lanes_of_their_member_mask_that_name_others_or_are_elsewhere) {
  Warp& w = block->warps[0];
  w.live = 0xffff;
  park(w, 3, 0xf, Wait::members).members = 0xff00ff;
  park(w, 3, 0xf0, Wait::members).members = 0xf0f0;
  park(w, 3, 0xff00, Wait::members).members = 0xff00;
  EXPECT_EQ(stuck(),
            "0 at 103: 4 threads of the warp do not arrive, among them thread (4,0,0): thread "
            "(4,0,0) waits at line 103");
  begin();
  w.live = 0xff;
  park(w, 3, 0xf, Wait::members).members = 0xff;
  park(w, 4, 0xf0, Wait::members).members = 0xff;
  EXPECT_EQ(stuck(),
            "0 at 103: 4 threads of the warp do not arrive, among them thread (4,0,0): thread "
            "(4,0,0) waits at line 104");
}

// All of a warp are there, whether they came together or not; those of the other one are not.
TEST_F(StuckWarps, say_where_the_other_warps_are) {
  wait(0, 3, 0xffff0000, 1, 96);
  wait(0, 3, 0xffff, 1, 96);
  wait(1, 7, full_mask, 2, 96);
  EXPECT_EQ(stuck(), "16 at 103: the barrier is never completed: warp 1 waits at line 107");
  begin();
  wait(1, 7, full_mask, 2, 96);
  block->warps[0].state = WarpState::done;
  EXPECT_EQ(stuck(), "32 at 107: the barrier is never completed: warp 0 has ended");
  begin();
  // The warp stays in place where it waits as a whole.
  Warp& whole = block->warps[1];
  whole.mask = full_mask;
  whole.resume = 8;
  whole.state = WarpState::waiting;
  block->arrive(whole, &program.code[8], 4, 96);
  EXPECT_EQ(stuck(), "32 at 108: the barrier is never completed: warp 0 has ended");
  ASSERT_EQ(whole.groups.size(), 1U);
  EXPECT_EQ(whole.groups[0].barrier, 4U);
  begin();
  wait(0, 8, full_mask, 4, 96);
  wait(1, 8, full_mask, 4, 96);
  EXPECT_EQ(stuck(), "0 at 108: the barrier is never completed: too few threads take part");
}

TEST_F(StuckWarps, that_wait_for_their_cluster_are_not_told_first) {
  Warp& w = block->warps[0];
  park(w, 3, 0xffff, Wait::cluster);
  park(w, 4, 0xffff0000, Wait::step);
  EXPECT_EQ(stuck(),
            "16 at 104: 16 threads of the warp do not arrive, among them thread (0,0,0): thread "
            "(0,0,0) waits at line 103");
  begin();
  park(w, 3, 0xffff, Wait::cluster);
  EXPECT_EQ(stuck(), "0 at 103: the barrier is never completed: warp 1 has ended");
}

TEST_F(StuckWarps, that_go_on_for_ever_hang_where_their_first_lane_is) {
  Warp& w = block->warps[1];
  w.state = WarpState::ready;
  w.mask = 0xff00;
  w.resume = 9;
  block->report_hang("so long");
  EXPECT_TRUE(block->stopped);
  ASSERT_EQ(block->findings.size(), 1U);
  const Finding first = block->findings[0].finding;
  EXPECT_EQ(first.kind, FindingKind::hang);
  EXPECT_EQ(first.thread[0], 40U);
  EXPECT_EQ(first.line, 109U);
  EXPECT_EQ(first.detail, "so long");
  begin();
  w.mask = 0;
  w.live = 0xf0;
  w.resume = 10;
  block->report_hang(w, "where no lane runs");
  ASSERT_EQ(block->findings.size(), 1U);
  EXPECT_EQ(block->findings[0].finding.thread[0], 36U);
  EXPECT_EQ(block->findings[0].finding.line, 110U);
}

// Some have arrived at the barrier and wait elsewhere.
TEST_F(StuckWarps, lack_no_lanes_that_have_only_arrived) {
  wait(0, 3, 0xff, 1);
  wait(0, 5, 0xff00, 1);
  block->warps[0].groups[1].barrier = 2;
  wait(0, 6, 0xffff0000, 2);
  EXPECT_EQ(stuck(),
            "0 at 103: 16 threads of the warp do not arrive, among them thread (16,0,0): thread "
            "(16,0,0) waits at line 106");
}

// Here they are not stuck.
TEST_F(StuckWarps, stay_in_place_at_a_barrier_where_all_lanes_come_at_once_unless_they_were_apart) {
  Warp& w = block->warps[0];
  block->warps[1].state = WarpState::ready;
  program.code[5].a = 8;
  program.code[5].uniform = uniform_a;
  *reinterpret_cast<std::uint32_t*>(frame + 8) = 3;
  for (const bool torn : {false, true}) {
    begin();
    block->running = 2;
    w.state = WarpState::ready;
    w.mask = full_mask;
    w.torn = torn;
    EXPECT_EQ(control::barrier(w, &program.code[5]), nullptr);
    EXPECT_EQ(w.state, WarpState::waiting);
    ASSERT_TRUE(block->barriers[3].in_use);
    EXPECT_EQ(block->barriers[3].arrived, 1U);
    EXPECT_EQ(w.waits_whole(), !torn);
    EXPECT_EQ(w.groups.size(), torn ? 1U : 0U);
    if (!torn) {
      EXPECT_EQ(w.resume, 5U);
    }
  }
}

TEST_F(StuckWarps, stay_where_they_are_when_the_barrier_of_others_is_completed) {
  Warp& whole = block->warps[1];
  whole.mask = full_mask;
  whole.resume = 8;
  whole.state = WarpState::waiting;
  block->arrive(whole, &program.code[8], 4, 96);
  wait(0, 3, full_mask, 2, 32);
  EXPECT_EQ(block->warps[0].groups[0].pc, 4U);
  EXPECT_EQ(whole.state, WarpState::waiting);
  EXPECT_EQ(whole.resume, 8U);
}

TEST_F(StuckWarps, go_on_at_once_where_they_only_arrive) {
  Warp& w = block->warps[0];
  MicroOp& arrive = program.code[5];
  arrive.a = 8;
  arrive.b = 12;
  arrive.uniform = uniform_a | uniform_b;
  arrive.flags = control::barrier_arrive_only | control::barrier_has_count;
  *reinterpret_cast<std::uint32_t*>(frame + 8) = 3;
  *reinterpret_cast<std::uint32_t*>(frame + 12) = 64;
  w.state = WarpState::ready;
  w.mask = full_mask;
  EXPECT_EQ(control::barrier(w, &arrive), &program.code[6]);
  EXPECT_EQ(w.state, WarpState::ready);
  EXPECT_EQ(block->barriers[3].arrived, 1U);
  EXPECT_EQ(block->barriers[3].expected, 64U);
}

TEST_F(StuckWarps, wait_on_at_another_barrier_and_for_other_things_when_one_is_completed) {
  Warp& w = block->warps[0];
  wait(0, 3, 0xff, 2, 32);
  wait(0, 5, 0xff00, 2, 32);
  wait(0, 6, 0xff0000, 2, 32);
  w.groups[1].barrier = 4;
  w.groups[2].wait = Wait::step;
  wait(0, 3, 0xff000000, 2, 32);
  std::vector<std::pair<std::uint32_t, Wait>> left;
  for (const Group& group : w.groups) left.emplace_back(group.pc, group.wait);
  EXPECT_EQ(left, (std::vector<std::pair<std::uint32_t, Wait>>{
                      {4, Wait::nothing}, {5, Wait::barrier}, {6, Wait::step}}));
}

// Here they are not stuck.
TEST_F(StuckWarps, go_on_together_behind_a_barrier_to_which_they_came_one_by_one) {
  wait(0, 3, 0xff, 2, 32);
  wait(0, 5, 0xff00, 2, 32);
  Warp& w = block->warps[0];
  ASSERT_EQ(w.groups.size(), 2U);
  EXPECT_EQ(w.groups[0].wait, Wait::barrier);
  EXPECT_TRUE(block->barriers[2].in_use);
  wait(0, 3, 0xffff0000, 2, 32);
  ASSERT_EQ(w.groups.size(), 2U);
  EXPECT_EQ(w.groups[0].pc, 4U);
  EXPECT_EQ(w.groups[0].mask, 0xffff00ffU);
  EXPECT_EQ(w.groups[0].wait, Wait::nothing);
  EXPECT_EQ(w.groups[1].pc, 6U);
  EXPECT_EQ(w.groups[1].mask, 0xff00U);
  EXPECT_FALSE(block->barriers[2].in_use);
  EXPECT_EQ(block->barriers[2].arrived, 0U);
}

}  // namespace
}  // namespace demarc::emulate
