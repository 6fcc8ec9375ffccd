// Kernels whose results depend on the order of blocks run them in order, the same on any number of
// threads; all others run on as many threads as they are given.
#include <algorithm>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

// How many threads ran 64 blocks of a kernel with this in it, and whether it was said to be
// ordered.
struct Ran {
  bool ordered = false;
  unsigned threads = 0;
};
Ran ran(const std::string& instruction) {
  Options options;
  options.threads = 3;
  options.check_races = false;
  const auto outcome = run_text(kernel_of(".shared .align 8 .b8 tile[64];\n", instruction),
                                launch_of(64, 32, 256), options);
  EXPECT_TRUE(outcome) << instruction << ": " << outcome.error().message;
  if (!outcome) return {};
  EXPECT_TRUE(outcome->findings.empty()) << instruction;
  const auto& ordered = outcome->ordered_kernels;
  return {std::find(ordered.begin(), ordered.end(), "k") != ordered.end(), outcome->threads};
}

TEST(Order, of_blocks_matters_to_sums_of_floats_to_exchanges_and_to_whoever_asks_for_the_result) {
  for (const std::string instruction :
       {"red.global.add.f32 [%rd1], %f1;", "red.global.add.f64 [%rd1], 0d3ff0000000000000;",
        "red.global.add.noftz.f16x2 [%rd1], %r1;", "red.global.inc.u32 [%rd1], 5;",
        "red.global.dec.u32 [%rd1], 5;", "atom.global.add.u32 %r5, [%rd1], 1;",
        "atom.global.exch.b32 _, [%rd1], %r1;", "atom.global.cas.b32 %r5, [%rd1], 0, %r1;",
        "atom.global.max.s32 %r5, [%rd1], %r1;", "atom.add.u32 %r5, [%rd1], 1;"}) {
    const Ran found = ran("mov.f32 %f1, 0f3f800000;\n" + instruction);
    EXPECT_TRUE(found.ordered) << instruction;
    EXPECT_EQ(found.threads, 1U) << instruction;
  }
}

TEST(Order, of_blocks_does_not_matter_to_sums_of_integers_and_to_what_is_a_blocks_own) {
  for (const std::string instruction :
       {"red.global.add.u32 [%rd1], %r1;", "red.global.max.s32 [%rd1], %r1;",
        "red.global.min.u32 [%rd1], %r1;", "red.global.and.b32 [%rd1], %r1;",
        "red.global.or.b32 [%rd1], %r1;", "red.global.xor.b32 [%rd1], %r1;",
        "red.global.add.u64 [%rd1], %rd2;", "atom.shared.add.u32 %r5, [tile], 1;",
        "red.shared.add.f32 [tile], 0f3f800000;", "ld.global.u32 %r5, [%rd1];"}) {
    const Ran found = ran("st.shared.u32 [tile], 0;\nbar.sync 0;\n" + instruction);
    EXPECT_FALSE(found.ordered) << instruction;
    EXPECT_EQ(found.threads, 3U) << instruction;
  }
}

// As nvcc 13 makes it of cooperative_groups: the first thread of a block adds to a counter of the
// workspace, the first block's so much that its upper bit turns.
std::string grid_barrier(const char* name) {
  return fmt::format(R"(
barrier.sync 0;
@%p2 bra WAITED{0};
atom.add.release.gpu.u32 %r10, [%rd10+4], %r9;
SPIN{0}:
ld.acquire.gpu.u32 %r11, [%rd10+4];
xor.b32 %r11, %r11, %r10;
setp.gt.s32 %p3, %r11, -1;
@%p3 bra SPIN{0};
WAITED{0}:
barrier.sync 0;
)",
                     name);
}

// Every block writes its number and adds those of all others, twice.
Result<Outcome> run_cooperative(std::uint32_t blocks) {
  const std::string body = R"(
mov.u32 %r3, %envreg2;
cvt.u64.u32 %rd10, %r3;
mov.u32 %r4, %envreg1;
cvt.u64.u32 %rd11, %r4;
bfi.b64 %rd10, %rd11, %rd10, 32, 32;
mov.u32 %r5, %nctaid.x;
mov.u32 %r6, %ctaid.x;
sub.u32 %r9, -2147483647, %r5;
setp.eq.u32 %p1, %r6, 0;
selp.b32 %r9, %r9, 1, %p1;
setp.ne.u32 %p2, %r1, 0;
mul.wide.u32 %rd12, %r6, 8;
add.s64 %rd12, %rd12, %rd1;
st.global.u64 [%rd12], %rd12;
)" + grid_barrier("A") + R"(
mov.u64 %rd13, 0;
mov.u64 %rd14, %rd1;
mov.u32 %r7, 0;
ADD:
ld.global.u64 %rd15, [%rd14];
add.s64 %rd13, %rd13, %rd15;
add.s64 %rd14, %rd14, 8;
add.u32 %r7, %r7, 1;
setp.lt.u32 %p4, %r7, %r5;
@%p4 bra ADD;
)" + grid_barrier("B") + "st.global.u64 [%rd12], %rd13;";
  return run_text(kernel_of("", body), launch_of(blocks, 64, std::uint64_t{8} * blocks));
}

TEST(CooperativeLaunches, blocks_wait_for_the_whole_grid) {
  constexpr std::uint32_t blocks = 20;
  const auto outcome = run_cooperative(blocks);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_TRUE(outcome->findings.empty()) << describe(outcome->findings[0], "t.ptx");
  EXPECT_EQ(outcome->ordered_kernels, std::vector<std::string>{"k"});  // they take turns
  const std::uint64_t sum = blocks * gpu::default_base_address + 8 * (blocks * (blocks - 1) / 2);
  for (const std::uint64_t word : words_of(*outcome)) EXPECT_EQ(word, sum);
}

TEST(CooperativeLaunches, of_more_blocks_than_a_card_holds_are_refused) {
  const auto outcome = run_cooperative(8193);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("waits for its whole grid of 8193 blocks"),
            std::string::npos);
}

}  // namespace
}  // namespace demarc::emulate
