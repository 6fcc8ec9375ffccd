// Tests by ptxas that PTX kept in the tree, and Triton's, gives the same machine code.
#include <gtest/gtest.h>

#include "paths.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

TEST(Written, modules_of_rare_instructions_keep_their_machine_code) {
  const auto trips = modules_in(demarc::test::source_dir() / "tests" / "ptx" / "corpus");
  ASSERT_GE(trips.size(), 9U);
  EXPECT_EQ(failures_of(trips), "");
}

// What Triton 3.6 makes of the kernels in kernels.py: warp-group and Ampere `mma`, bulk waits, fp8,
// inline assembly, debugging sections.
TEST(Written, modules_of_triton_keep_their_machine_code) {
  const auto trips = modules_in(demarc::test::source_dir() / "tests" / "ptx" / "corpus" / "triton");
  ASSERT_GE(trips.size(), 8U);
  EXPECT_EQ(failures_of(trips), "");
}

TEST(Written, the_ptx_kept_in_the_tree_keeps_its_machine_code) {
  const auto trips = modules_in(demarc::test::source_dir() / "kernels" / "ptx");
  ASSERT_GE(trips.size(), 9U);
  EXPECT_EQ(failures_of(trips), "");
}

}  // namespace
}  // namespace demarc::ptx::test
