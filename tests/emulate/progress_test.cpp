// Lanes that part make progress on their own: those that others wait for come, whatever way they
// took, and what PTX leaves undefined is a finding with the threads.
#include <fmt/format.h>

#include <bit>

#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::in_both_sides;
using test::kernel_of;
using test::launch_of;
using test::progress_store;
using test::progress_words;
using test::run_text;
using test::shared_area;

// Lanes below 20 look for an error that none of them has, and leave if they find one. Behind it all
// do the same.
std::string guarded(const std::string& leaving) {
  return "mov.u32 %r3, 1;\nsetp.ge.u32 %p1, %r1, 20;\n@%p1 bra BEHIND;\nsetp.gt.u32 %p2, %r1, "
         "99;\n@%p2 " +
         leaving + ";\nmul.lo.u32 %r3, %r1, 10;\nBEHIND:\n";
}

struct Together {
  const char* text;  // %r3 to %r9
  std::uint64_t (*expected)(unsigned lane);
};
constexpr unsigned guarded_sum = 190 * 10 + 12;

// By each collective: what it gives if all 32 lanes take part.
const Together together[] = {
    {"redux.sync.add.u32 %r9, %r3, -1;", [](unsigned) { return std::uint64_t{guarded_sum}; }},
    {"setp.eq.u32 %p3, %r3, 1;\nvote.sync.ballot.b32 %r9, %p3, -1;",
     [](unsigned) { return std::uint64_t{0xfff00000}; }},
    {"setp.eq.u32 %p3, %r3, 1;\nvote.sync.any.pred %p4, %p3, -1;\nselp.u32 %r9, 1, 0, %p4;",
     [](unsigned) { return std::uint64_t{1}; }},
    {"shfl.sync.bfly.b32 %r9, %r3, 31, 31, -1;",
     [](unsigned lane) { return std::uint64_t{lane > 11 ? (31 - lane) * 10 : 1}; }},
    {"match.any.sync.b32 %r9, %r3, -1;",
     [](unsigned lane) {
       return lane >= 20 ? std::uint64_t{0xfff00000} : std::uint64_t{1} << lane;
     }},
    {"match.all.sync.b32 %r9|%p3, %r3, -1;\n@%p3 mov.u32 %r9, 77;",
     [](unsigned) { return std::uint64_t{0}; }},
    {"elect.sync %r9|%p3, -1;\n@%p3 mov.u32 %r9, 500;",
     [](unsigned lane) { return std::uint64_t{lane == 0 ? 500U : 0U}; }},
    {"mov.u32 %r5, area;\nmad.lo.u32 %r5, %r1, 4, %r5;\nst.shared.u32 [%r5], %r3;\nbar.warp.sync "
     "-1;\n"
     "xor.b32 %r5, %r5, 124;\nld.shared.u32 %r9, [%r5];",
     [](unsigned lane) { return std::uint64_t{lane > 11 ? (31 - lane) * 10 : 1}; }},
    {"setp.eq.u32 %p3, %r3, 1;\nbar.red.popc.u32 %r9, 0, %p3;",
     [](unsigned) { return std::uint64_t{12}; }},
    {"mov.u32 %r5, area;\nmad.lo.u32 %r5, %r1, 4, %r5;\nst.shared.u32 [%r5], %r3;\nbarrier.sync 3, "
     "32;\n"
     "xor.b32 %r5, %r5, 124;\nld.shared.u32 %r9, [%r5];",
     [](unsigned lane) { return std::uint64_t{lane > 11 ? (31 - lane) * 10 : 1}; }},
};

TEST(Progress, an_exit_that_no_lane_takes_keeps_no_lane_from_what_all_do_together) {
  for (const Together& one : together) {
    for (const char* leaving : {"exit", "ret", "trap", "brkpt", "bra LEAVE"}) {
      std::string text = guarded(leaving) + one.text;
      const auto found =
          progress_words(shared_area, text + progress_store + "\nLEAVE:\nmov.u32 %r9, %r9;");
      for (unsigned lane = 0; lane < 32; ++lane)
        EXPECT_EQ(found[lane], one.expected(lane)) << text << " lane " << lane;
    }
  }
}

TEST(Progress, lanes_that_did_exit_are_waited_for_no_more) {
  const std::string leave = "setp.ge.u32 %p1, %r1, 9;\nmov.u32 %r9, 7;\n@%p1 bra STAY;" +
                            std::string(progress_store) + "\nexit;\nSTAY:\n";
  for (const char* text :
       {"redux.sync.add.u32 %r9, 1, -1;",
        "setp.eq.u32 %p2, %r1, %r1;\nvote.sync.ballot.b32 %r9, %p2, -1;\npopc.b32 %r9, %r9;",
        "setp.eq.u32 %p2, %r1, %r1;\nbar.red.popc.u32 %r9, 0, %p2;",
        "setp.eq.u32 %p2, %r1, %r1;\nbarrier.red.popc.u32 %r9, 4, 32, %p2;"}) {
    const auto found = progress_words("", leave + text);
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(found[lane], lane < 9 ? 7U : 23U) << text << " lane " << lane;
  }
}

// Lanes that wait at a collective, while others exit one after the other.
TEST(Progress, an_exit_lets_those_go_on_that_waited) {
  const auto found = progress_words("", R"(
setp.lt.u32 %p1, %r1, 8;
@%p1 bra FEW;
mov.u32 %r4, 0;
AGAIN:
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, %r1;
@%p2 bra AGAIN;
exit;
FEW:
redux.sync.add.u32 %r9, %r1, -1;)");
  for (unsigned lane = 0; lane < 8; ++lane) EXPECT_EQ(found[lane], 28U);
}

TEST(Progress, lanes_on_both_sides_of_a_branch_do_one_collective) {
  const auto value = [](unsigned lane) { return std::uint64_t{lane * (lane % 2 == 0 ? 2 : 3)}; };
  std::uint64_t sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane) sum += value(lane);
  const auto one = [&](const std::string& text) {
    return progress_words(shared_area, in_both_sides(text, text));
  };
  const auto swapped = one("shfl.sync.bfly.b32 %r9, %r4, 1, 31, -1;");
  const auto summed = one("redux.sync.add.u32 %r9, %r4, -1;");
  const auto matched = one("match.any.sync.b32 %r9, %r4, -1;");
  const auto voted = one("setp.gt.u32 %p2, %r4, 30;\nvote.sync.ballot.b32 %r9, %p2, -1;");
  const auto stored =
      one("mov.u32 %r5, area;\nmad.lo.u32 %r5, %r1, 4, %r5;\nst.shared.u32 [%r5], "
          "%r4;\nbar.warp.sync -1;\n"
          "xor.b32 %r5, %r5, 4;\nld.shared.u32 %r9, [%r5];");
  const auto counted = one("setp.gt.u32 %p2, %r4, 30;\nbarrier.red.popc.u32 %r9, 2, %p2;");
  for (unsigned lane = 0; lane < 32; ++lane) {
    std::uint64_t same = 0;
    std::uint64_t above = 0;
    for (unsigned other = 0; other < 32; ++other) {
      same |= std::uint64_t{value(other) == value(lane)} << other;
      above |= std::uint64_t{value(other) > 30} << other;
    }
    EXPECT_EQ(swapped[lane], value(lane ^ 1U));
    EXPECT_EQ(summed[lane], sum);
    EXPECT_EQ(matched[lane], same);
    EXPECT_EQ(voted[lane], above);
    EXPECT_EQ(stored[lane], value(lane ^ 1U));
    EXPECT_EQ(counted[lane], static_cast<unsigned>(std::popcount(above)));
  }
}

// The registers differ from side to side, and one side holds them in one place for all its lanes.
TEST(Progress, the_sides_of_a_collective_need_not_use_the_same_registers) {
  const auto found = progress_words(
      "", in_both_sides("mov.u32 %r5, 1;\nshfl.sync.bfly.b32 %r9|%p3, %r4, %r5, 31, -1;",
                        "shfl.sync.bfly.b32 %r12, 100, 1, 31, -1;\nadd.u32 %r9, %r12, 1000;"));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(found[lane], lane % 2 == 0 ? 100U : 1000 + 2 * (lane - 1));
}

constexpr const char* summing_function = R"(
.func (.param .b32 o) total(.param .b32 a, .param .b32 depth)
{ .reg .pred %q; .reg .b32 %s<9>;
ld.param.b32 %s1, [a]; ld.param.b32 %s2, [depth];
redux.sync.add.u32 %s3, %s1, -1;
setp.eq.u32 %q, %s2, 0;
@%q bra DONE;
sub.u32 %s4, %s2, 1;
{ .param .b32 x; .param .b32 y; .param .b32 r;
st.param.b32 [x], %s1; st.param.b32 [y], %s4;
call (r), total, (x, y);
ld.param.b32 %s5, [r]; }
add.u32 %s3, %s3, %s5;
DONE:
bar.warp.sync -1;
st.param.b32 [o], %s3; ret; }
)";
std::string call_of_total(unsigned depth) {
  return fmt::format(
      "{{ .param .b32 a; .param .b32 n; .param .b32 r;\nst.param.b32 [a], %r4; st.param.b32 [n], "
      "{};\n"
      "call (r), total, (a, n);\nld.param.b32 %r9, [r]; }}\n",
      depth);
}

TEST(Progress, a_function_that_both_sides_call_is_one_place_for_its_collectives) {
  std::uint64_t sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane) sum += lane * (lane % 2 == 0 ? 2 : 3);
  for (const unsigned depth : {0U, 1U, 5U}) {
    const auto found =
        progress_words(summing_function, in_both_sides(call_of_total(depth), call_of_total(depth)));
    for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], sum * (depth + 1));
  }
}

// The same instruction, though not the same call.
TEST(Progress, a_function_that_both_sides_call_is_one_place_for_its_barriers) {
  for (const char* barrier :
       {"bar.red.popc.u32 %s2, 0, %q;", "barrier.red.popc.u32 %s2, 4, 64, %q;"}) {
    const std::string function = fmt::format(
        ".func (.param .b32 o) count(.param .b32 a)\n{{ .reg .pred %q; .reg .b32 %s<9>;\n"
        "ld.param.b32 %s1, [a];\nsetp.gt.u32 %q, %s1, 30;\n{}\nst.param.b32 [o], %s2; ret; }}\n",
        barrier);
    const std::string call =
        "{ .param .b32 a; .param .b32 r;\nst.param.b32 [a], %r4;\ncall (r), count, (a);\n"
        "ld.param.b32 %r9, [r]; }\n";
    unsigned above = 0;
    for (unsigned i = 0; i < 64; ++i) above += i * (i % 2 == 0 ? 2 : 3) > 30 ? 1 : 0;
    const auto found = progress_words(function, in_both_sides(call, call), 64);
    for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(found[i], above) << barrier;
  }
}

TEST(Progress, lanes_that_exit_in_a_function_are_waited_for_no_more) {
  const auto found = progress_words(
      ".func some(.param .b32 a)\n{ .reg .pred %q; .reg .b32 %s<3>;\nld.param.b32 %s1, [a];\n"
      "setp.lt.u32 %q, %s1, 5;\n@%q exit;\nbar.warp.sync -1;\nret; }\n",
      "{ .param .b32 a;\nst.param.b32 [a], %r1;\ncall some, (a); }\nredux.sync.add.u32 %r9, 1, "
      "-1;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], lane < 5 ? 0U : 27U);
}

// Half of the lanes wait in a function, and the others exit in the kernel; either half comes first.
TEST(Progress, an_exit_lets_those_go_on_that_wait_in_a_function) {
  const std::string function =
      ".func (.param .b32 r) some(.param .b32 a)\n{ .reg .b32 %s<3>;\nld.param.b32 %s1, [a];\n"
      "shfl.sync.bfly.b32 %s2, %s1, 1, 31, -1;\nst.param.b32 [r], %s2;\nret; }\n";
  for (const bool first : {true, false}) {
    const auto found = progress_words(
        function, fmt::format("mov.u32 %r9, 0;\nsetp.{}.u32 %p1, %r1, 16;\n@%p1 bra CALL;\nexit;\n"
                              "CALL:\nmul.lo.u32 %r3, %r1, 10;\n{{ .param .b32 a; .param .b32 r;\n"
                              "st.param.b32 [a], %r3;\ncall (r), some, (a);\n"
                              "ld.param.b32 %r9, [r]; }}",
                              first ? "lt" : "ge"));
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(found[lane], (lane < 16) == first ? 10 * (lane ^ 1U) : 0U) << lane;
  }
}

TEST(Progress, the_two_halves_of_a_guarded_collective_are_one) {
  const auto found = progress_words("",
                                    "setp.lt.u32 %p1, %r1, 7;\n@%p1 redux.sync.add.u32 %r9, 1, "
                                    "-1;\n@!%p1 redux.sync.add.u32 %r9, 2, -1;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 7U + 25 * 2);
}

TEST(Progress, lanes_of_one_instruction_may_have_several_member_masks) {
  const std::string halves =
      "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r4, 0xffff, 0xffff0000, %p1;\nsetp.gt.u32 %p2, %r1, "
      "12;\n";
  const auto voted = progress_words("", halves + "vote.sync.ballot.b32 %r9, %p2, %r4;");
  const auto agreed =
      progress_words("", halves + "vote.sync.all.pred %p3, %p2, %r4;\nselp.u32 %r9, 1, 0, %p3;");
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(voted[lane], lane < 16 ? 0xe000U : 0xffff0000U);
    EXPECT_EQ(agreed[lane], lane < 16 ? 0U : 1U);
  }
  // One half is there, the other half comes to another instruction later.
  const auto later = progress_words("", halves +
                                            "setp.lt.u32 %p3, %r1, 24;\n@%p3 bra "
                                            "FIRST;\nredux.sync.add.u32 %r9, %r1, %r4;\nbra END;\n"
                                            "FIRST:\nredux.sync.add.u32 %r9, %r1, %r4;\nEND:");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(later[lane], lane < 16 ? 120U : 376U);
}

TEST(Progress, a_branch_to_the_next_line_keeps_the_lanes_together) {
  const auto found =
      progress_words("", "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra NEXT;\nNEXT:\nactivemask.b32 %r9;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 0xffffffffU);
}

// Half of the threads that are left leave in each round.
TEST(Progress, threads_that_returned_are_no_part_of_the_barrier) {
  const auto found = progress_words(".shared .align 4 .b32 area[256];\n", R"(
mov.u32 %r3, area;
mad.lo.u32 %r3, %r1, 4, %r3;
st.shared.u32 [%r3], %r1;
bar.sync 0;
mov.u32 %r4, 128;
ROUND:
setp.ge.u32 %p1, %r1, %r4;
@%p1 ret;
mad.lo.u32 %r5, %r4, 4, %r3;
ld.shared.u32 %r6, [%r5];
ld.shared.u32 %r7, [%r3];
add.u32 %r9, %r6, %r7;
st.shared.u32 [%r3], %r9;
bar.sync 0;
shr.u32 %r4, %r4, 1;
setp.ne.u32 %p2, %r4, 0;
@%p2 bra ROUND;)",
                                    256);
  EXPECT_EQ(found[0], 255U * 128);
}

// ---- blocks ----

// Thread instructions of the runs in a trace.
struct CountedRuns : TraceSink {
  Result<void> consume(const TraceChunk& chunk) override {
    std::uint32_t warp = 0;
    visit_events(chunk, warp, *this);
    return {};
  }
  void run(const RunEvent& event) {
    threads += std::uint64_t{event.count} * static_cast<unsigned>(std::popcount(event.mask));
  }
  void access(const AccessEvent&) {}
  std::uint64_t threads = 0;
};

TEST(Progress, a_collective_counts_as_another_instruction_whether_lanes_wait_there_or_not) {
  const auto twice = [](const std::string& text) {
    return text + "\nadd.u32 %r9, %r9, 1;\n" + text + "\nadd.u32 %r9, %r9, 2;\n";
  };
  const std::string move = twice("mov.u32 %r9, %r4;");
  const std::string sum = twice("redux.sync.add.u32 %r9, %r4, -1;");
  const gpu::Launch launch = launch_of(1, 64, 1024);
  const auto statistics = [&](const std::string& body, TraceSink* sink = nullptr) {
    return run_text(kernel_of("", body), launch, {}, sink).value().kernels[0];
  };
  for (const bool apart : {false, true}) {
    const auto body = [&](const std::string& text) {
      return apart ? in_both_sides(text, text) : "mov.u32 %r4, %r1;\n" + text;
    };
    const KernelStatistics wanted = statistics(body(move));
    const KernelStatistics plain = statistics(body(sum));
    EXPECT_EQ(plain.thread_instructions, wanted.thread_instructions) << apart;
    EXPECT_EQ(plain.warp_instructions, wanted.warp_instructions) << apart;
    CountedRuns counted;
    EXPECT_EQ(statistics(body(sum), &counted).thread_instructions, wanted.thread_instructions);
    EXPECT_EQ(counted.threads, wanted.thread_instructions) << apart;
  }
}

}  // namespace
}  // namespace demarc::emulate
