// Which lines the warps of a walk touch, and in which order.
#include "demarc/sim/memory/synthetic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::sim::memory::test {
namespace {

using testing::ElementsAre;

// The lines that one warp of one block touches, by their numbers.
std::vector<std::uint64_t> lines_of(const Walk& walk) {
  const auto source = walk_source(walk);
  EXPECT_TRUE(source->restart());
  KernelShape shape;
  EXPECT_TRUE(source->next_kernel(shape).value());
  EXPECT_EQ(shape.blocks, walk.blocks);
  EXPECT_EQ(shape.threads, walk.threads);
  EXPECT_EQ(shape.shared_bytes, 0U);
  const auto block = source->next_block().value();
  std::vector<std::uint64_t> lines;
  Step step;
  step.shared_rows = 7;  // left by the step before
  step.floats = 7;
  for (block->next(0, step); step.kind != StepKind::end; block->next(0, step)) {
    EXPECT_EQ(step.count, 1);
    EXPECT_EQ(step.shared_rows, 0);
    EXPECT_EQ(step.floats, 0U);
    EXPECT_EQ(step.instructions, walk.instructions);
    lines.push_back((step.lines[0].line() - walk.base) >> line_shift);
  }
  EXPECT_FALSE(source->next_kernel(shape).value()) << "one kernel";
  return lines;
}

TEST(Walk, goes_round_any_number_of_lines) {
  Walk walk;
  walk.threads = 32;
  walk.rounds = 2;
  walk.bytes = 3 * line_bytes;
  EXPECT_THAT(lines_of(walk), ElementsAre(0, 1, 2, 0, 1, 2));
  walk.bytes = 4 * line_bytes;
  EXPECT_THAT(lines_of(walk), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  walk.bytes = line_bytes;
  EXPECT_THAT(lines_of(walk), ElementsAre(0, 0));
}

TEST(Walk, is_shared_by_the_warps_of_its_blocks) {
  Walk walk;
  walk.threads = 64;
  walk.blocks = 2;
  walk.bytes = 8 * line_bytes;
  EXPECT_THAT(lines_of(walk), ElementsAre(0, 4)) << "four warps take turns";
}

}  // namespace
}  // namespace demarc::sim::memory::test
