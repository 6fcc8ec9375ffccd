// Kernels whose results depend on the order of blocks run them in order, the same on any number of
// threads; all others run on as many threads as they are given.
#include <algorithm>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

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

}  // namespace
}  // namespace demarc::emulate
