// How addresses are written, and which class they are of.
#include <gtest/gtest.h>

#include "demarc/locality/analyse.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

// For the last access of a kernel with %rd1 = p0, %r1 = p1, %r2 = tid.x and %r3 = ctaid.x.
std::string written(const std::string& body) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nld.param.u32 %r1, [p1];\nmov.u32 %r2, %tid.x;\n"
      "mov.u32 %r3, %ctaid.x;\n" +
          body,
      one_pointer);
  const auto runs =
      collect_runs(module, launch_of("2", "32", "buf:65536,i32:3"), 0, Force::automatic);
  if (!runs) return runs.error().message;
  const Access& access = runs->runs.accesses.back();
  return access.expression + ": " + to_string(access.access_class);
}

// `computed` gives %r9.
std::string at_4_times(const std::string& computed) {
  return written(computed +
                 "mul.wide.s32 %rd2, %r9, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                 "ld.global.u32 %r8, [%rd3];\n");
}

TEST(Expression, sums_and_products_are_written_with_their_common_factor_in_front) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mov.u32 %r9, %r2;\n", "param0 + 4*tid.x: affine"},
      {"add.s32 %r9, %r2, %r3;\n", "param0 + 4*(tid.x + ctaid.x): affine"},
      {"sub.s32 %r9, %r3, %r2;\nadd.s32 %r9, %r9, 40;\n",
       "param0 + 4*(-tid.x + ctaid.x + 40): affine"},
      {"sub.s32 %r9, 40, %r2;\n", "param0 + 4*(-tid.x + 40): affine"},
      {"sub.s32 %r9, %r2, %r2;\n", "param0: affine"},
      {"mad.lo.s32 %r9, %r2, %r1, %r3;\n", "param0 + 4*(param1*tid.x + ctaid.x): affine"},
      {"mul.lo.s32 %r9, %r2, %r3;\nadd.s32 %r9, %r9, 7;\n",
       "param0 + 4*(tid.x*ctaid.x + 7): affine"},
      {"shl.b32 %r9, %r2, 3;\n", "param0 + 32*tid.x: affine"},
      {"shl.b32 %r9, %r2, %r3;\n", "param0 + 4*(tid.x << ctaid.x): affine"},
      {"shr.u32 %r9, %r2, 1;\n", "param0 + 4*(tid.x >> 1): affine"},
      {"div.u32 %r9, %r2, 3;\n", "param0 + 4*(tid.x / 3): affine"},
      {"add.s32 %r9, %r2, 5;\nrem.u32 %r9, %r9, 3;\n", "param0 + 4*((tid.x + 5) % 3): affine"},
      {"and.b32 %r9, %r2, 6;\n", "param0 + 4*(tid.x & 6): affine"},
      {"or.b32 %r9, %r2, 6;\n", "param0 + 4*(tid.x | 6): affine"},
      {"xor.b32 %r9, %r2, 6;\n", "param0 + 4*(tid.x ^ 6): affine"},
      {"mul.hi.u32 %r9, %r2, 6;\n", "param0 + 4*mul(tid.x, 6): affine"},
      {"min.s32 %r9, %r2, 6;\n", "param0 + 4*min(tid.x, 6): affine"},
      {"neg.s32 %r9, %r2;\nadd.s32 %r9, %r9, 64;\n", "param0 + 4*(-tid.x + 64): affine"},
      {"mov.u32 %r4, %ntid.x;\nmad.lo.s32 %r9, %r3, %r4, %r2;\n",
       "param0 + 4*(tid.x + ctaid.x*ntid.x): affine"},
      {"mov.u32 %r4, %laneid;\nadd.s32 %r9, %r4, %r2;\n", "param0 + 4*(tid.x + laneid): affine"},
  };
  for (const auto& [computed, expected] : cases)
    EXPECT_EQ(at_4_times(computed), expected) << computed;
  EXPECT_EQ(written("ld.global.u32 %r8, [%rd1+12];\n"), "param0 + 12: affine");
  EXPECT_EQ(written("mul.wide.u32 %rd2, %r2, 4;\nsub.s64 %rd3, %rd1, %rd2;\n"
                    "setp.eq.u32 %p1, %r2, 0;\n@%p1 ld.global.u32 %r8, [%rd3];\n"),
            "param0 - 4*tid.x: affine under a guard");
  EXPECT_EQ(written("ld.global.u32 %r8, [%rd1];\n"), "param0: affine");
}

// Three times its inverse modulo 2^64 is one, and more than a signed number holds on the way.
TEST(Expression, coefficients_wrap_as_the_card_wraps_them) {
  EXPECT_EQ(written("mul.wide.u32 %rd2, %r2, 4;\nmul.lo.s64 %rd2, %rd2, 3;\n"
                    "mul.lo.s64 %rd2, %rd2, -6148914691236517205;\nadd.s64 %rd3, %rd1, %rd2;\n"
                    "ld.global.u32 %r8, [%rd3];\n"),
            "param0 + 4*tid.x: affine");
}

TEST(Expression, the_one_number_without_an_opposite_is_written) {
  const std::string scaled =
      "mul.wide.u32 %rd2, %r2, 4;\nmul.lo.s64 %rd2, %rd2, 2305843009213693952;\n";
  EXPECT_EQ(written(scaled + "and.b64 %rd2, %rd2, 0;\nadd.s64 %rd3, %rd1, %rd2;\n"
                             "ld.global.u32 %r8, [%rd3];\n"),
            "param0 + (-9223372036854775808*tid.x & 0): affine");
  EXPECT_EQ(written(scaled + "add.s64 %rd3, %rd1, %rd2;\nsetp.eq.u32 %p1, %r2, 0;\n"
                             "@%p1 ld.global.u32 %r8, [%rd3];\n"),
            "param0 - 9223372036854775808*tid.x: affine under a guard");
}

TEST(Expression, a_loop_counts_in_i1_whatever_it_adds) {
  const auto first_access = [](const std::string& body) {
    const ptx::Module module = module_of(
        "ld.param.u64 %rd1, [p0];\nld.param.u32 %r1, [p1];\nmov.u32 %r2, %tid.x;\n" + body,
        one_pointer);
    const auto runs =
        collect_runs(module, launch_of("2", "32", "buf:65536,i32:3"), 0, Force::automatic);
    if (!runs) return runs.error().message;
    const Access& access = runs->runs.accesses.front();
    return access.expression + ": " + to_string(access.access_class);
  };
  const auto in_loop = [&](const std::string& start, const std::string& step) {
    return first_access("mov.u32 %r9, " + start +
                        ";\nmov.u32 %r5, 0;\nagain:\n"
                        "mul.wide.s32 %rd2, %r9, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                        "ld.global.u32 %r8, [%rd3];\n" +
                        step + "add.s32 %r5, %r5, 1;\nsetp.lt.s32 %p1, %r5, 3;\n@%p1 bra again;\n");
  };
  EXPECT_EQ(in_loop("%r2", "add.s32 %r9, %r9, 32;\n"), "param0 + 4*(tid.x + 32*i1): loop-affine");
  EXPECT_EQ(in_loop("%r2", "add.s32 %r9, %r1, %r9;\n"),
            "param0 + 4*(tid.x + param1*i1): loop-affine");
  EXPECT_EQ(in_loop("100", "sub.s32 %r9, %r9, 2;\n"), "param0 + 8*(-i1 + 50): loop-affine");
  EXPECT_EQ(in_loop("%r2", "add.s32 %r9, %r9, 1;\nadd.s32 %r9, %r9, 2;\n"),
            "param0 + 4*(tid.x + 3*i1): loop-affine");
  EXPECT_EQ(in_loop("%r2", "shl.b32 %r9, %r9, 1;\n"), "param0 + 4*phi(%r9): loop-affine");
  EXPECT_EQ(in_loop("%r2", "sub.s32 %r9, 64, %r9;\n"), "param0 + 4*phi(%r9): loop-affine");
}

// The merge lies below what goes round.
TEST(Expression, what_is_added_before_the_access_belongs_to_the_trip) {
  const auto stepped = [](const std::string& add) {
    return written("mov.u64 %rd3, %rd1;\nmov.u32 %r5, 0;\nagain:\n" + add +
                   "ld.global.u32 %r8, [%rd3];\nadd.s32 %r5, %r5, 1;\n"
                   "setp.lt.s32 %p1, %r5, 3;\n@%p1 bra again;\n");
  };
  EXPECT_EQ(stepped("add.s64 %rd3, %rd3, 16;\n"), "param0 + 16*(i1 + 1): loop-affine");
  EXPECT_EQ(stepped("cvt.u64.u32 %rd4, %r1;\nshl.b64 %rd4, %rd4, 2;\nadd.s64 %rd3, %rd4, %rd3;\n"),
            "param0 + 4*(param1*i1 + param1): loop-affine");
  EXPECT_EQ(stepped("sub.s64 %rd3, %rd3, -16;\n"), "phi(%rd3) + 16: loop-affine");
}

// Both summands come from the sum of a trip before: a walk that followed each would not end.
TEST(Expression, a_sum_whose_summands_both_return_to_it_is_opaque) {
  EXPECT_EQ(written("mov.u32 %r5, %r2;\nmov.u32 %r7, %r3;\nmov.u32 %r6, 0;\nagain:\n"
                    "add.s32 %r9, %r5, %r7;\nmul.wide.s32 %rd2, %r9, 4;\n"
                    "add.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r8, [%rd3];\n"
                    "mov.u32 %r5, %r9;\nmov.u32 %r7, %r9;\n"
                    "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 3;\n@%p1 bra again;\n"),
            "param0 + 4*(phi(%r5) + phi(%r7)): loop-affine");
}

}  // namespace
}  // namespace demarc::locality
