// Instructions between the lanes of a warp.
#include "ops/warp.hpp"

#include <memory>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

constexpr const char* warp_store = "\ncvt.u64.u32 %rd3, %r9;\nst.global.u64 [%rd2], %rd3;";

// What %r9 holds in each of 32 threads after `body`.
std::vector<std::uint64_t> warp_words(const std::string& body) {
  const auto outcome =
      run_text(kernel_of("", "mov.u32 %r9, 77;\n" + body + warp_store), launch_of(1, 32, 256));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return {};
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return words_of(*outcome);
}

// The manual's pseudo code of shfl.
struct Shuffled {
  unsigned from;
  bool valid;
};
Shuffled shuffled(const std::string& mode, unsigned lane, unsigned b, unsigned c) {
  const unsigned clamp = c & 31U;
  const unsigned mask = (c >> 8) & 31U;
  const int most = static_cast<int>((lane & mask) | (clamp & ~mask & 31U));
  const int least = static_cast<int>(lane & mask);
  int j = 0;
  bool valid = false;
  const int l = static_cast<int>(lane);
  const int by = static_cast<int>(b & 31U);
  if (mode == "up") {
    j = l - by;
    valid = j >= most;
  } else if (mode == "down") {
    j = l + by;
    valid = j <= most;
  } else if (mode == "bfly") {
    j = l ^ by;
    valid = j <= most;
  } else {
    j = least | (by & ~static_cast<int>(mask) & 31);
    valid = j <= most;
  }
  return {static_cast<unsigned>(valid ? j : l), valid};
}

TEST(Shuffles, every_mode_distance_and_segment_takes_the_lane_that_the_manual_says) {
  for (const char* mode : {"up", "down", "bfly", "idx"}) {
    for (const unsigned b : {0U, 1U, 3U, 8U, 16U, 31U}) {
      for (const unsigned c : {0U, 31U, 7U, 0x1c1fU, 0x181fU, 0x1800U, 0x1c00U}) {
        const auto words = warp_words(
            fmt::format("mul.lo.u32 %r3, %r1, 3;\nshfl.sync.{}.b32 %r4|%p1, %r3, {}, {}, -1;\n"
                        "selp.u32 %r5, 1000, 0, %p1;\nadd.u32 %r9, %r4, %r5;",
                        mode, b, c));
        ASSERT_EQ(words.size(), 32U);
        for (unsigned lane = 0; lane < 32; ++lane) {
          const Shuffled want = shuffled(mode, lane, b, c);
          EXPECT_EQ(words[lane], want.from * 3 + (want.valid ? 1000 : 0))
              << mode << " lane " << lane << " b " << b << " c " << c;
        }
      }
    }
  }
}

TEST(Shuffles, a_shared_source_and_lanewise_distances_work) {
  const auto words =
      warp_words("and.b32 %r3, %r1, 7;\nshfl.sync.idx.b32 %r9, %r1, %r3, 0x181f, -1;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], (lane & 24U) | (lane & 7U));
  const auto same = warp_words("mov.u32 %r3, 5;\nshfl.sync.bfly.b32 %r9, %r3, 1, 31, -1;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(same[lane], 5U);
}

TEST(Votes, all_any_uni_and_ballot_look_at_the_lanes_that_take_part) {
  const std::string third = "rem.u32 %r3, %r1, 3;\nsetp.eq.u32 %p1, %r3, 0;\n";
  std::uint32_t thirds = 0;
  for (unsigned lane = 0; lane < 32; lane += 3) thirds |= 1U << lane;
  EXPECT_EQ(warp_words(third + "vote.sync.ballot.b32 %r9, %p1, -1;")[4], thirds);
  EXPECT_EQ(warp_words(third + "vote.sync.ballot.b32 %r9, !%p1, -1;")[4], ~thirds);
  const auto flag = [&](const std::string& vote) {
    return warp_words(vote + "\nselp.u32 %r9, 1, 0, %p2;")[9];
  };
  EXPECT_EQ(flag(third + "vote.sync.any.pred %p2, %p1, -1;"), 1U);
  EXPECT_EQ(flag(third + "vote.sync.all.pred %p2, %p1, -1;"), 0U);
  EXPECT_EQ(flag(third + "vote.sync.uni.pred %p2, %p1, -1;"), 0U);
  const std::string none = "setp.gt.u32 %p1, %r1, 99;\n";
  EXPECT_EQ(flag(none + "vote.sync.any.pred %p2, %p1, -1;"), 0U);
  EXPECT_EQ(flag(none + "vote.sync.uni.pred %p2, %p1, -1;"), 1U);
  EXPECT_EQ(flag(none + "vote.sync.all.pred %p2, !%p1, -1;"), 1U);
}

TEST(Votes, activemask_and_elect_see_the_lanes_on_this_side_of_a_branch) {
  const std::string odd = "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra EVEN;\n";
  const auto mask = warp_words(odd + "activemask.b32 %r9;\nEVEN:");
  EXPECT_EQ(mask[3], 0xaaaaaaaaU);
  EXPECT_EQ(mask[2], 77U);
  const auto leader =
      warp_words(odd + "elect.sync %r9|%p2, 0xaaaaaaaa;\n@%p2 mov.u32 %r9, 500;\nEVEN:");
  EXPECT_EQ(leader[1], 500U);
  EXPECT_EQ(leader[3], 1U);
  EXPECT_EQ(leader[0], 77U);
}

TEST(Matches, any_gives_the_lanes_with_the_same_value_and_all_whether_they_agree) {
  const auto any = warp_words("shr.u32 %r3, %r1, 2;\nmatch.any.sync.b32 %r9, %r3, -1;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(any[lane], 0xfU << (lane & ~3U));
  const auto wide = warp_words(
      "cvt.u64.u32 %rd5, %r1;\nshl.b64 %rd5, %rd5, 40;\nand.b64 %rd5, %rd5, 0x10000000000;\n"
      "match.any.sync.b64 %r9, %rd5, -1;");
  EXPECT_EQ(wide[0], 0x55555555U);
  EXPECT_EQ(wide[7], 0xaaaaaaaaU);
  EXPECT_EQ(warp_words("match.all.sync.b32 %r9|%p1, %r1, -1;\n@%p1 mov.u32 %r9, 1;")[5], 0U);
  EXPECT_EQ(
      warp_words(
          "shr.u32 %r3, %r1, 5;\nmatch.all.sync.b32 %r9|%p1, %r3, -1;\n@!%p1 mov.u32 %r9, 1;")[5],
      0xffffffffU);
}

TEST(Reductions, redux_combines_the_lanes_of_the_mask) {
  std::int64_t sum = 0;
  std::uint32_t both = ~0U;
  std::uint32_t either = 0;
  std::uint32_t odd = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const std::uint32_t value = lane * 2654435761U;
    sum += value;
    both &= value | 0x10000U;
    either |= value;
    odd ^= value;
  }
  const std::string value = "mul.lo.u32 %r3, %r1, 2654435761;\n";
  EXPECT_EQ(warp_words(value + "redux.sync.add.u32 %r9, %r3, -1;")[8],
            static_cast<std::uint32_t>(sum));
  EXPECT_EQ(warp_words(value + "redux.sync.or.b32 %r9, %r3, -1;")[8], either);
  EXPECT_EQ(warp_words(value + "redux.sync.xor.b32 %r9, %r3, -1;")[8], odd);
  EXPECT_EQ(warp_words(value + "or.b32 %r3, %r3, 0x10000;\nredux.sync.and.b32 %r9, %r3, -1;")[8],
            both);
  const std::string centred = "sub.s32 %r3, %r1, 16;\n";
  EXPECT_EQ(warp_words(centred + "redux.sync.min.s32 %r9, %r3, -1;")[8], 0xfffffff0U);
  EXPECT_EQ(warp_words(centred + "redux.sync.max.s32 %r9, %r3, -1;")[8], 15U);
  EXPECT_EQ(warp_words(centred + "redux.sync.min.u32 %r9, %r3, -1;")[8], 0U);
  EXPECT_EQ(warp_words(centred + "redux.sync.max.u32 %r9, %r3, -1;")[8], 0xffffffffU);
  // Lanes 0-15 among themselves, and 16-31.
  const auto halves = warp_words(
      "shr.u32 %r4, %r1, 4;\nsetp.eq.u32 %p1, %r4, 0;\nselp.b32 %r4, 0xffff, 0xffff0000, %p1;\n"
      "redux.sync.add.s32 %r9, %r1, %r4;");
  EXPECT_EQ(halves[3], 120U);
  EXPECT_EQ(halves[20], 376U);
}

TEST(SpecialRegisters, lane_masks_and_numbers_are_those_of_the_lane) {
  for (const auto& [name, expected] :
       std::vector<std::pair<std::string, std::uint32_t (*)(unsigned)>>{
           {"laneid", [](unsigned l) { return l; }},
           {"lanemask_eq", [](unsigned l) { return 1U << l; }},
           {"lanemask_lt", [](unsigned l) { return (1U << l) - 1; }},
           {"lanemask_le", [](unsigned l) { return (2U << l) - 1; }},
           {"lanemask_gt", [](unsigned l) { return ~((2U << l) - 1); }},
           {"lanemask_ge", [](unsigned l) { return ~((1U << l) - 1); }},
           {"ntid.x", [](unsigned) { return 32U; }},
           {"nctaid.y", [](unsigned) { return 1U; }},
           {"ctaid.z", [](unsigned) { return 0U; }},
           {"tid.y", [](unsigned) { return 0U; }},
           {"warpid", [](unsigned) { return 0U; }},
           {"nwarpid", [](unsigned) { return 1U; }},
           {"WARP_SZ", [](unsigned) { return 32U; }}}) {
    const auto words =
        warp_words((name == "WARP_SZ" ? "mov.u32 %r9, " : "mov.u32 %r9, %") + name + ";");
    for (unsigned lane = 0; lane < 32 && !words.empty(); ++lane)
      EXPECT_EQ(words[lane], expected(lane)) << name << " lane " << lane;
  }
}

// Micro-op 2 is a vote of the lanes in a mask, within a run of which 5 instructions are left.
class CountedExchange : public testing::Test {
 protected:
  CountedExchange() {
    program.block = {32, 1, 1};
    program.functions.resize(1);
    program.functions[0].frame_bytes = sizeof frame;
    program.tids.resize(std::size_t{3} * warp_size);
    program.instructions.resize(1);
    program.code.resize(8);
    program.code[2].aux = &details;
    program.code[2].flags = warp_ops::within_run;
    program.code[3].imm = 5;
    details.operation = WarpOperation::synchronize;
    block = std::make_unique<Block>(program, pool);
    block->start(0, false, false);
    warp = &block->warps[0];
    warp->frame = frame;
    warp->budget = 100;
    warp->warp_instructions = 50;
    warp->thread_instructions = 1000;
  }

  const MicroOp* exchange(Mask members) {
    std::memcpy(frame, &members, sizeof members);
    return warp_ops::exchange(*warp, program.code.data() + 2);
  }
  [[nodiscard]] const MicroOp* at(std::size_t place) const { return program.code.data() + place; }

  alignas(64) std::byte frame[128] = {};
  WarpDetails details;
  Program program;
  FramePool pool;
  std::unique_ptr<Block> block;
  Warp* warp = nullptr;
};

TEST_F(CountedExchange, goes_on_in_its_run_where_all_lanes_are_there) {
  details.members = 0;
  details.one_mask = true;
  details.uniform[0] = true;
  EXPECT_EQ(exchange(full_mask), at(4)) << "behind the header of the run's rest";
  EXPECT_EQ(warp->warp_instructions, 50U);
  warp->live = warp->mask = 0xff;
  EXPECT_EQ(exchange(full_mask), at(4)) << "those that have exited are waited for no more";
  EXPECT_EQ(warp->budget, 100);
  warp->trace_runs = true;
  EXPECT_EQ(exchange(0xff), at(3)) << "which traces the rest";
  EXPECT_EQ(warp->budget, 105);
  EXPECT_EQ(warp->warp_instructions, 45U);
  EXPECT_EQ(warp->thread_instructions, 1000U - 5 * 8);
  program.code[2].flags = 0;
  EXPECT_EQ(exchange(0xff), at(3));
  EXPECT_EQ(warp->warp_instructions, 45U) << "it is the last of its run";
}

TEST_F(CountedExchange, counts_the_rest_of_its_run_later_where_lanes_wait) {
  details.members = 0;
  details.one_mask = true;
  details.uniform[0] = true;
  program.code[6].instruction = 0;
  warp->mask = 0xffff;
  warp->groups.emplace_back(*warp, 0xffff0000, 6, Wait::nothing);
  ASSERT_EQ(exchange(full_mask), at(6)) << "the others come";
  EXPECT_EQ(warp->budget, 105);
  EXPECT_EQ(warp->warp_instructions, 45U);
  EXPECT_EQ(warp->thread_instructions, 1000U - 5 * 16);
  ASSERT_EQ(warp->groups.size(), 1U);
  EXPECT_EQ(warp->groups[0].wait, Wait::members);
  EXPECT_EQ(warp->groups[0].members, full_mask);
  EXPECT_EQ(warp->groups[0].pc, 2U);
  ASSERT_EQ(exchange(full_mask), at(3)) << "all are there";
  EXPECT_EQ(warp->mask, full_mask);
  EXPECT_TRUE(warp->groups.empty());
}

TEST_F(CountedExchange, ends_the_block_at_a_lane_that_is_not_among_its_members) {
  details.members = 0;
  details.one_mask = true;
  details.uniform[0] = true;
  EXPECT_EQ(exchange(0xfffffeff), nullptr);
  EXPECT_TRUE(block->stopped);
  ASSERT_EQ(block->findings.size(), 1U);
  EXPECT_EQ(block->findings[0].finding.count, 1U);
}

TEST(Exchanges, are_the_same_if_they_do_the_same_to_numbers_of_one_kind) {
  WarpDetails one;
  one.operation = WarpOperation::match_any;
  WarpDetails other = one;
  MicroOp a;
  MicroOp b;
  a.aux = &one;
  b.aux = &other;
  EXPECT_TRUE(warp_ops::is_same(&a, &b));
  other.width = 8;
  EXPECT_FALSE(warp_ops::is_same(&a, &b));
  other = one;
  other.operation = WarpOperation::match_all;
  EXPECT_FALSE(warp_ops::is_same(&a, &b));
  other = one;
  other.is_signed = true;
  EXPECT_FALSE(warp_ops::is_same(&a, &b));
  // Where the operand's width is that of every such instruction, it does not matter.
  one.operation = other.operation = WarpOperation::vote_any;
  one.is_signed = other.is_signed = false;
  other.width = 8;
  EXPECT_TRUE(warp_ops::is_same(&a, &b));
}

}  // namespace
}  // namespace demarc::emulate
