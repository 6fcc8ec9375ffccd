// Rows of threads that take too long to be followed, by the operations that are spent on them.
#include <gtest/gtest.h>

#include <algorithm>

#include "../written_kernel.hpp"
#include "demarc/ptx/cfg.hpp"
#include "follow/row_executor.hpp"

namespace demarc::locality {
namespace {

// A kernel with %rd1 = p0, %r8 = tid.x and %rd3 = p0 + 4 tid.x, in one block.
ClosedForm followed(const std::string& body, std::uint32_t threads, const RowLimits& limits) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r8, %tid.x;\nmul.wide.u32 %rd2, %r8, 4;\n"
      "add.s64 %rd3, %rd1, %rd2;\nmov.u32 %r1, 0;\n" +
          body,
      one_pointer);
  const ptx::Function& kernel = *module.kernels().front();
  const ptx::Cfg cfg(kernel.body);
  LeafValues leaves;
  const std::vector<std::uint64_t> addresses{std::uint64_t{1} << 40U};
  const gpu::Launch launch = launch_of("1", "32", "buf:4096,i32:0");
  for (const gpu::Argument& argument : launch.kernels[0].arguments)
    leaves.parameters.push_back(gpu::pack_argument(argument, addresses));
  const Slice slice = slice_kernel(module, kernel, cfg, leaves);
  return follow_rows(slice, {1, 1, 1}, {threads, 1, 1}, limits, {});
}

RowLimits limits_of(std::uint64_t operations, std::uint64_t words = 1U << 30U) {
  RowLimits limits;
  limits.all = 1'000'000'000;
  limits.max_of_row = operations;
  limits.max_words_of_row = words;
  return limits;
}

constexpr const char* endless_loops[] = {
    "L:\nld.global.u32 %r2, [%rd3];\nadd.s64 %rd3, %rd3, 4096;\nbra L;\n",
    "L:\nst.global.u32 [%rd1], %r8;\nadd.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, %r1;\n"
    "@!%p1 bra L;\n",
    // The bound is passed by.
    "add.u32 %r1, %r1, 1;\nL:\nld.global.u32 %r2, [%rd3];\nadd.u32 %r1, %r1, 2;\n"
    "setp.ne.u32 %p1, %r1, 100;\n@%p1 bra L;\n",
    // One thread of many.
    "setp.ne.u32 %p2, %r8, 17;\n@%p2 bra done;\nL:\nld.global.u32 %r2, [%rd3];\nbra L;\ndone:\n",
    // The loop within is followed at once.
    "M:\nmov.u32 %r1, 0;\nL:\nld.global.u32 %r2, [%rd3];\nadd.u32 %r1, %r1, 1;\n"
    "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nbra M;\n",
    // No register is linear in the trip, or is in a thread.
    "add.u32 %r1, %r8, 1;\nL:\nmul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
    "ld.global.u32 %r2, [%rd5];\nmad.lo.u32 %r1, %r1, %r1, 1013904223;\nbra L;\n"};

TEST(LongRows, of_endless_loops_are_given_up_after_the_operations_allowed) {
  for (const char* const body : endless_loops) {
    for (const std::uint64_t allowed : {std::uint64_t{1000}, std::uint64_t{20'000}}) {
      const ClosedForm form = followed(body, 32, limits_of(allowed));
      EXPECT_TRUE(form.too_long) << body;
      EXPECT_EQ(std::count(form.closed.begin(), form.closed.end(), true), 0) << body;
      EXPECT_TRUE(form.runs.runs.empty()) << body;
      EXPECT_GE(form.operations, allowed) << body;
      EXPECT_LE(form.operations, 3 * allowed) << body << "a row may be followed anew";
    }
  }
}

TEST(LongRows, that_keep_too_many_words_are_given_up) {
  const ClosedForm runs = followed(endless_loops[0], 32, limits_of(20'000, 6000));
  EXPECT_TRUE(runs.too_long);
  EXPECT_GE(runs.operations, 1000U);
  EXPECT_LT(runs.operations, 20'000U);
  const ClosedForm lanes = followed(endless_loops[5], 1024, limits_of(20'000, 100 * 1024));
  EXPECT_TRUE(lanes.too_long);
  EXPECT_LT(lanes.operations, 400U);
  // A register with a number for each thread, which is in no access until the loop ends.
  const ClosedForm vectors = followed(
      "mov.u32 %r7, 0;\nmad.lo.u32 %r1, %r8, %r8, 7;\nL:\n"
      "mad.lo.u32 %r1, %r1, %r1, 1013904223;\nadd.u32 %r7, %r7, 1;\n"
      "setp.ne.u32 %p1, %r7, 0;\n@%p1 bra L;\nmul.wide.u32 %rd4, %r1, 4;\n"
      "add.s64 %rd5, %rd1, %rd4;\nld.global.u32 %r2, [%rd5];\n",
      1024, limits_of(20'000, 100 * 1024));
  EXPECT_TRUE(vectors.too_long);
  EXPECT_LT(vectors.operations, 1000U);
}

// A kernel that ends keeps its closed forms up to the last operation.
TEST(LongRows, that_end_within_what_is_allowed_have_closed_forms) {
  const std::string body =
      "add.u32 %r1, %r1, 1;\nL:\nmul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd3, %rd4;\n"
      "ld.global.u32 %r2, [%rd5];\nmul.lo.u32 %r1, %r1, 3;\nsetp.lt.u32 %p1, %r1, 5000;\n"
      "@%p1 bra L;\n";
  const ClosedForm whole = followed(body, 32, limits_of(1'000'000));
  ASSERT_FALSE(whole.too_long);
  ASSERT_EQ(whole.closed, std::vector<bool>{true});
  const std::size_t runs = whole.runs.runs.size();
  EXPECT_GT(runs, 5U);
  EXPECT_FALSE(followed(body, 32, limits_of(whole.operations)).too_long);
  EXPECT_TRUE(followed(body, 32, limits_of(whole.operations / 2)).too_long);
  EXPECT_FALSE(followed(body, 32, limits_of(1'000'000, 7 * runs)).too_long);
  EXPECT_TRUE(followed(body, 32, limits_of(1'000'000, 3 * runs)).too_long);
}

TEST(LongRows, are_not_what_a_launch_of_many_rows_is_given_up_for) {
  RowLimits limits = limits_of(1'000'000);
  limits.all = 10'000;
  EXPECT_FALSE(followed(endless_loops[0], 32, limits).too_long);
}

}  // namespace
}  // namespace demarc::locality
