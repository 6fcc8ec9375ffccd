// Which accesses take a full translation.
#include <gtest/gtest.h>

#include "colored_text.hpp"

namespace demarc::ptx {
namespace {

// "3 accesses, 1 shared" of a kernel whose %rd1 is its argument.
std::string counted(const std::string& body, ColoredOptions options = test::with_places) {
  options.counts_shared = true;
  const ColoredModule made =
      test::colored(test::preamble + ".global .align 4 .u32 v[4];\n" +
                        test::colored_kernel("k", "ld.param.u64 %rd1, [p];\n" + body),
                    options);
  if (made.kernels.empty() || !made.kernels[0].accepted()) return "refused";
  return fmt::format("{} accesses, {} shared", made.kernels[0].accesses,
                     made.kernels[0].shared_accesses);
}

const std::string loads_it = "ld.global.u32 %r1, [%rd1+4];\n";
const std::string stores_it = "st.global.u32 [%rd1+4], %r1;\n";

TEST(SharedTranslations, are_those_of_an_address_that_was_translated_before) {
  EXPECT_EQ(counted(loads_it + stores_it), "2 accesses, 1 shared");
  EXPECT_EQ(counted(loads_it + "@%p1 " + stores_it + loads_it), "3 accesses, 2 shared");
  EXPECT_EQ(counted("ld.global.u32 %r1, [v+8];\nst.global.u32 [v+8], 1;\n"),
            "2 accesses, 1 shared");
  EXPECT_EQ(counted(loads_it + "st.u32 [%rd1+4], %r1;\n"), "2 accesses, 1 shared");
}

TEST(SharedTranslations, are_not_those_of_other_distances_or_registers) {
  EXPECT_EQ(counted(loads_it + "st.global.u32 [%rd1+8], %r1;\n"), "2 accesses, 0 shared");
  EXPECT_EQ(counted(loads_it + "mov.u64 %rd2, %rd1;\nst.global.u32 [%rd2+4], %r1;\n"),
            "2 accesses, 0 shared");
  EXPECT_EQ(counted("ld.global.u32 %r1, [v+8];\nst.global.u32 [v+4], 1;\n"),
            "2 accesses, 0 shared");
}

TEST(SharedTranslations, end_where_the_register_changes) {
  EXPECT_EQ(counted(loads_it + "add.s64 %rd1, %rd1, 4;\n" + stores_it), "2 accesses, 0 shared");
  EXPECT_EQ(counted(loads_it + "@%p1 add.s64 %rd1, %rd1, 4;\n" + stores_it),
            "2 accesses, 0 shared");
  EXPECT_EQ(counted("$L:\n" + loads_it + stores_it + "add.s64 %rd1, %rd1, 4;\n" + loads_it +
                    "@%p1 bra $L;\n"),
            "3 accesses, 1 shared");
  // The same definitions reach both, of which one lies between them.
  EXPECT_EQ(
      counted("$L:\n" + loads_it + "@%p2 add.s64 %rd1, %rd1, 4;\n" + stores_it + "@%p1 bra $L;\n"),
      "2 accesses, 0 shared");
}

TEST(SharedTranslations, reach_all_that_lies_behind_the_first_on_every_way) {
  EXPECT_EQ(counted(loads_it + "@%p1 bra $L;\n" + stores_it + "$L:\n" + loads_it),
            "3 accesses, 2 shared");
  EXPECT_EQ(counted("@%p1 bra $L;\n" + stores_it + "$L:\n" + loads_it), "2 accesses, 0 shared");
  // For a register with several definitions nothing is said beyond a block.
  EXPECT_EQ(counted("add.s64 %rd1, %rd1, 4;\n" + loads_it + "@%p1 bra $L;\n$L:\n" + stores_it),
            "2 accesses, 0 shared");
}

TEST(SharedTranslations, are_counted_where_that_is_asked_for) {
  const ColoredModule made =
      test::colored(test::preamble +
                    test::colored_kernel("k", "ld.param.u64 %rd1, [p];\n" + loads_it + stores_it));
  EXPECT_EQ(made.kernels[0].accesses, 2U);
  EXPECT_EQ(made.kernels[0].shared_accesses, 0U);
}

}  // namespace
}  // namespace demarc::ptx
