// Collectives of part of a warp: of the threads that are left, and of both sides of a branch that
// use other registers for the same operation.
#include <bit>

#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::in_both_sides;
using test::progress_words;

// Threads from 20 on leave; what the others get. %r9 is 77 before, %p2 and %p3 are false.
std::vector<std::uint64_t> of_the_first_20(const std::string& body) {
  return progress_words("",
                        "mov.u32 %r9, 77;\nsetp.ge.u32 %p1, %r1, 20;\n@%p1 exit;\nsetp.gt.u32 %p2, "
                        "%r1, 99;\nsetp.gt.u32 %p3, %r1, 99;\n" +
                            body);
}

TEST(CollectivesOfAPart, shuffles_give_0_for_a_thread_that_is_not_there) {
  const auto from = [](unsigned source) {
    return of_the_first_20(
        fmt::format("add.u32 %r3, %r1, 100;\nshfl.sync.idx.b32 %r9|%p2, %r3, {}, 31, 0xfffff;\n"
                    "@%p2 add.u32 %r9, %r9, 1000;",
                    source));
  };
  for (unsigned lane = 0; lane < 20; ++lane) {
    EXPECT_EQ(from(19)[lane], 1119U);
    EXPECT_EQ(from(20)[lane], 1000U);
    EXPECT_EQ(from(31)[lane], 1000U);
  }
  // So does one whose value all threads share.
  EXPECT_EQ(of_the_first_20("mov.u32 %r3, 5;\nshfl.sync.idx.b32 %r9, %r3, 25, 31, 0xfffff;")[3],
            0U);
  EXPECT_EQ(of_the_first_20("mov.u32 %r3, 5;\nshfl.sync.idx.b32 %r9, %r3, 15, 31, 0xfffff;")[3],
            5U);
}

TEST(CollectivesOfAPart, votes_and_matches_are_of_the_threads_that_are_left) {
  const std::string all = "setp.lt.u32 %p4, %r1, 20;\n";
  const std::string none = "setp.lt.u32 %p4, %r1, 0;\n";
  const std::string some = "setp.lt.u32 %p4, %r1, 3;\n";
  const auto vote = [](const std::string& which, const std::string& mode) {
    return of_the_first_20(which + "vote.sync." + mode +
                           ".pred %p2, %p4, -1;\nselp.u32 %r9, 1, 0, %p2;")[7];
  };
  EXPECT_EQ(vote(all, "all"), 1U);
  EXPECT_EQ(vote(some, "all"), 0U);
  EXPECT_EQ(vote(some, "any"), 1U);
  EXPECT_EQ(vote(none, "any"), 0U);
  EXPECT_EQ(vote(all, "uni"), 1U);
  EXPECT_EQ(vote(none, "uni"), 1U);
  EXPECT_EQ(vote(some, "uni"), 0U);
  EXPECT_EQ(of_the_first_20(all + "vote.sync.ballot.b32 %r9, %p4, -1;")[7], 0xfffffU);
  EXPECT_EQ(of_the_first_20(some + "vote.sync.ballot.b32 %r9, !%p4, -1;")[7], 0xffff8U);
  EXPECT_EQ(of_the_first_20("and.b32 %r3, %r1, 8;\nmatch.any.sync.b32 %r9, %r3, -1;")[1], 0xf00ffU);
  EXPECT_EQ(of_the_first_20("and.b32 %r3, %r1, 32;\nmatch.all.sync.b32 %r9|%p2, %r3, -1;\n@!%p2 "
                            "mov.u32 %r9, 5;")[1],
            0xfffffU);
  EXPECT_EQ(of_the_first_20("and.b32 %r3, %r1, 16;\nmatch.all.sync.b32 %r9|%p2, %r3, -1;\n@!%p2 "
                            "add.u32 %r9, %r9, 5;")[1],
            5U);
  EXPECT_EQ(of_the_first_20("redux.sync.min.u32 %r9, %r1, -1;")[7], 0U);
  EXPECT_EQ(of_the_first_20("redux.sync.max.u32 %r9, %r1, -1;")[7], 19U);
}

// The lanes that a mask names are the members; those of another mask are on their own.
TEST(CollectivesOfAPart, each_member_mask_has_its_own_leader_and_its_own_matches) {
  const std::string masks = "setp.lt.u32 %p1, %r1, 12;\nselp.b32 %r4, 0xfff, 0xfffff000, %p1;\n";
  const auto elected =
      progress_words("", masks + "elect.sync %r9|%p2, %r4;\n@%p2 add.u32 %r9, %r9, 500;");
  const auto matched =
      progress_words("", masks + "and.b32 %r5, %r1, 1;\nmatch.any.sync.b32 %r9, %r5, %r4;");
  const auto agreed = progress_words(
      "", masks +
              "max.u32 %r5, %r1, 11;\nmatch.all.sync.b32 %r9|%p2, %r5, %r4;\n@%p2 add.u32 %r9, "
              "%r9, 1;");
  for (unsigned lane = 0; lane < 32; ++lane) {
    const bool first = lane < 12;
    EXPECT_EQ(elected[lane], first ? (lane == 0 ? 500U : 0U) : (lane == 12 ? 512U : 12U));
    EXPECT_EQ(matched[lane],
              (lane % 2 == 0 ? 0x55555555U : 0xaaaaaaaaU) & (first ? 0xfffU : 0xfffff000U));
    EXPECT_EQ(agreed[lane], first ? 0x1000U : 0U);
  }
}

// All go on together behind it, whichever members come last.
TEST(CollectivesOfAPart, threads_of_several_member_masks_are_together_again_behind_it) {
  for (const char* mask : {"setp.lt.u32 %p1, %r1, 12;\nselp.b32 %r4, 0xfff, 0xfffff000, %p1;\n",
                           "and.b32 %r4, %r1, 3;\nshl.b32 %r4, 0x11111111, %r4;\n"}) {
    const auto found = progress_words(
        "", std::string(mask) + "redux.sync.add.u32 %r5, 1, %r4;\nactivemask.b32 %r9;");
    for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 0xffffffffU) << mask;
  }
}

// The others have another predicate, and keep it.
TEST(CollectivesOfAPart, give_predicates_to_the_threads_that_take_part_and_to_no_others) {
  for (const char* exchange :
       {"shfl.sync.idx.b32 %r5|%p2, %r1, 0, 31, 0x55555555;", "elect.sync %r5|%p2, 0x55555555;",
        "match.all.sync.b32 %r5|%p2, 7, 0x55555555;", "vote.sync.any.pred %p2, %p1, 0x55555555;"}) {
    for (const char* before : {"setp.lt.u32 %p2, %r1, 0;\n", "setp.lt.u32 %p2, %r1, 32;\n"}) {
      const auto found = progress_words(
          "", std::string(before) +
                  "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@!%p1 bra ODD;\n" + exchange +
                  "\nODD:\nselp.u32 %r9, 1, 0, %p2;");
      const bool was = std::string(before).find("32;") != std::string::npos;
      for (unsigned lane = 1; lane < 32; lane += 2)
        EXPECT_EQ(found[lane], was ? 1U : 0U) << exchange;
      EXPECT_EQ(found[0], 1U) << exchange;
    }
  }
}

// Lane 0 has left, and its predicate counts no more.
TEST(CollectivesOfAPart, of_lanes_that_come_one_after_the_other_are_of_no_lane_that_has_left) {
  const auto found = progress_words("", R"(
setp.lt.u32 %p4, %r1, 32;
setp.eq.u32 %p1, %r1, 0;
@%p1 exit;
setp.ne.u32 %p1, %r1, 1;
@%p1 bra OVER;
LOOK:
ld.volatile.global.u32 %r4, [%rd1+256];
setp.eq.u32 %p2, %r4, 0;
@%p2 bra LOOK;
OVER:
setp.eq.u32 %p3, %r1, 2;
@%p3 st.volatile.global.u32 [%rd1+256], 1;
vote.sync.ballot.b32 %r9, %p4, 0xfffffffe;)");
  for (unsigned lane = 1; lane < 32; ++lane) EXPECT_EQ(found[lane], 0xfffffffeU);
}

// Lane 1 waits at its side of a branch for what lane 0 stores behind the place where both meet.
TEST(CollectivesOfAPart, of_lanes_that_come_one_after_the_other_are_carried_out_once) {
  const auto found = progress_words("", R"(
mov.u32 %r9, %r1;
setp.ne.u32 %p1, %r1, 1;
@%p1 bra OVER;
LOOK:
ld.volatile.global.u32 %r4, [%rd1+256];
setp.eq.u32 %p2, %r4, 0;
@%p2 bra LOOK;
OVER:
setp.eq.u32 %p3, %r1, 0;
@%p3 st.volatile.global.u32 [%rd1+256], 1;
redux.sync.add.u32 %r9, %r9, -1;)");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 496U);
}

TEST(CollectivesOfAPart, a_leader_may_be_elected_for_its_predicate_alone) {
  const auto found = of_the_first_20("elect.sync _|%p2, 0xfffff;\nselp.u32 %r9, 3, 4, %p2;");
  for (unsigned lane = 0; lane < 20; ++lane) EXPECT_EQ(found[lane], lane == 0 ? 3U : 4U);
}

// Each side has its own registers and its own way to say the same.
TEST(CollectivesOfBothSides, take_and_give_what_each_side_names) {
  // Even lanes: %r4 is twice their number; odd lanes: three times.
  const auto value = [](unsigned lane) { return lane * (lane % 2 == 0 ? 2 : 3); };
  std::uint32_t above = 0;
  for (unsigned lane = 0; lane < 32; ++lane) above |= (value(lane) > 30 ? 1U : 0U) << lane;
  const auto ballots = progress_words(
      "", in_both_sides("setp.gt.u32 %p2, %r4, 30;\nvote.sync.ballot.b32 %r9, %p2, -1;",
                        "setp.le.u32 %p3, %r4, 30;\nvote.sync.ballot.b32 %r12, !%p3, -1;\nmov.u32 "
                        "%r9, %r12;"));
  const auto any = progress_words(
      "",
      in_both_sides("setp.gt.u32 %p2, %r4, 92;\nvote.sync.any.pred %p4, %p2, -1;\nselp.u32 %r9, "
                    "1, 0, %p4;",
                    "setp.le.u32 %p3, %r4, 92;\nvote.sync.any.pred %p5, !%p3, -1;\nselp.u32 "
                    "%r9, 1, 0, %p5;"));
  const auto moved = progress_words(
      "",
      in_both_sides("shfl.sync.up.b32 %r9|%p2, %r4, 1, 0, -1;\n@!%p2 mov.u32 %r9, 5000;",
                    "mov.u32 %r13, 1;\nmov.u32 %r12, %r4;\nshfl.sync.up.b32 %r9, %r12, %r13, 0, "
                    "-1;"));
  const auto matched = progress_words(
      "", in_both_sides("cvt.u64.u32 %rd5, %r1;\nshr.u64 %rd5, %rd5, 2;\nshl.b64 %rd5, %rd5, "
                        "40;\nmatch.any.sync.b64 %r9, %rd5, -1;",
                        "shr.u32 %r12, %r1, 2;\ncvt.u64.u32 %rd6, %r12;\nshl.b64 %rd6, %rd6, "
                        "40;\nmatch.any.sync.b64 %r9, %rd6, -1;"));
  const auto agreed = progress_words(
      "",
      in_both_sides("mov.u32 %r12, 8;\nmatch.all.sync.b32 %r9|%p2, %r12, -1;\n@%p2 add.u32 %r9, "
                    "%r9, 1;",
                    "shr.u32 %r13, %r1, 5;\nadd.u32 %r13, %r13, 8;\nmatch.all.sync.b32 %r9|%p3, "
                    "%r13, -1;\n@!%p3 mov.u32 %r9, 3;"));
  const auto least = progress_words(
      "", in_both_sides("sub.s32 %r12, %r4, 40;\nredux.sync.min.s32 %r9, %r12, -1;\nadd.s32 %r9, "
                        "%r9, 100;",
                        "sub.s32 %r13, %r4, 40;\nredux.sync.min.s32 %r14, %r13, -1;\nadd.s32 %r9, "
                        "%r14, 100;"));
  const auto leaders = progress_words(
      "",
      in_both_sides("elect.sync %r9|%p2, -1;\n@%p2 mov.u32 %r9, 500;",
                    "elect.sync %r12|%p3, -1;\nadd.u32 %r9, %r12, 20;\n@%p3 mov.u32 %r9, 600;"));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const bool even = lane % 2 == 0;
    EXPECT_EQ(ballots[lane], above);
    EXPECT_EQ(any[lane], 1U) << "lane 31 alone";
    EXPECT_EQ(moved[lane], lane == 0 ? 5000U : value(lane - 1));
    EXPECT_EQ(matched[lane], 0xfU << (lane & ~3U));
    EXPECT_EQ(agreed[lane], even ? 0U : 0xffffffffU) << "all ones, and one more";
    EXPECT_EQ(least[lane], 60U);
    EXPECT_EQ(leaders[lane], lane == 0 ? 500U : even ? 0U : 20U);
  }
}

// Words of 32 and of 64 bits are not the same operation, nor are those of another sign.
TEST(CollectivesOfBothSides, of_other_widths_do_not_wait_for_each_other) {
  EXPECT_NE(test::progress_finding(
                "", in_both_sides("match.any.sync.b32 %r9, %r4, -1;",
                                  "cvt.u64.u32 %rd5, %r4;\nmatch.any.sync.b64 %r9, %rd5, -1;"))
                .find("16 threads of the warp do not arrive"),
            std::string::npos);
}

}  // namespace
}  // namespace demarc::emulate
