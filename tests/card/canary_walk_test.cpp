// The kernel of a canary in the stand-in's emulator, whose clock counts instructions.
#include "demarc/card/canary_walk.hpp"

#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

TEST(CanaryWalk, takes_the_same_time_again_while_nothing_changes) {
  const auto canary = CanaryWalk::create(test::fake_gpu()).value();
  const auto first = canary.walk();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->first_cycles, 1) << "at least a load for each line";
  EXPECT_LT(first->first_cycles, 100);
  EXPECT_NEAR(first->again_cycles, first->first_cycles, 0.1) << "as many instructions";
  EXPECT_EQ(canary.walk()->again_cycles, first->again_cycles);
}

}  // namespace
}  // namespace demarc::cuda
