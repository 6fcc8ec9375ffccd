// Which accesses share the translations of their neighbours: all but two of a group.
#include <gtest/gtest.h>

#include "colored_text.hpp"

namespace demarc::ptx {
namespace {

// For a kernel whose %rd1 is its argument; chunks have 16 KiB.
std::uint64_t shared(const std::string& body) {
  ColoredOptions options = test::with_places;
  options.counts_shared = true;
  const ColoredModule made = test::colored(
      test::preamble +
          test::colored_kernel("k", ".reg .v2 .b64 %v;\nld.param.u64 %rd1, [p];\n" + body),
      options);
  EXPECT_TRUE(!made.kernels.empty() && made.kernels[0].accepted());
  return made.kernels.empty() ? 0 : made.kernels[0].shared_accesses;
}

std::string load(int distance, const std::string& reg = "%rd1") {
  return "ld.global.u8 %r1, [" + reg + "+" + std::to_string(distance) + "];\n";
}
const std::string three = load(0) + load(4) + load(8);

TEST(Neighbours, are_three_addresses_or_more) {
  EXPECT_EQ(shared(load(0) + load(4)), 0U);
  EXPECT_EQ(shared(three), 1U);
  EXPECT_EQ(shared(three + load(-9)), 2U);
  EXPECT_EQ(shared(three + load(4)), 2U);
  EXPECT_EQ(shared(load(0) + load(4) + load(4)), 1U);  // for one has the address of another
  EXPECT_EQ(shared("@%p1 " + load(0) + load(4) + "st.global.u8 [%rd1+8], %r1;\n"), 1U);
}

TEST(Neighbours, lie_in_two_chunks) {
  EXPECT_EQ(shared(load(0) + load(4) + load(16383)), 1U);
  EXPECT_EQ(shared(load(0) + load(4) + load(16384)), 0U);
  EXPECT_EQ(shared(three + load(20000) + load(20001) + load(20002)), 2U);
}

TEST(Neighbours, have_addresses_that_differ_by_a_number) {
  EXPECT_EQ(shared("add.s64 %rd2, %rd1, 4;\nadd.u64 %rd3, %rd2, 4;\n" + load(0) + load(0, "%rd2") +
                   load(0, "%rd3")),
            1U);
  for (const char* other : {"add.s64 %rd2, %rd1, %rd3;\n", "mul.lo.s64 %rd2, %rd1, 4;\n",
                            "@%p1 add.s64 %rd2, %rd1, 4;\n", "add.f64 %rd2, %rd1, 4.0;\n"}) {
    EXPECT_EQ(shared(other + load(0) + load(4) + load(8, "%rd2")), 0U) << other;
  }
  EXPECT_EQ(shared("mov.b64 %v.x, 64;\nmov.b64 %v.y, %rd1;\nadd.s64 %rd2, %v.x, 4;\n"
                   "add.s64 %rd3, %v.y, 8;\nadd.s64 %rd4, %v.y, 12;\n" +
                   load(0, "%rd2") + load(0, "%rd3") + load(0, "%rd4")),
            0U);
}

TEST(Neighbours, end_where_a_register_changes) {
  EXPECT_EQ(shared(load(0) + load(4) + "add.s64 %rd1, %rd1, 8;\n" + load(0)), 1U);
  EXPECT_EQ(shared(load(0) + load(4) + "@%p1 add.s64 %rd1, %rd1, 8;\n" + load(0)), 0U);
  EXPECT_EQ(shared(load(0) + load(4) + "ld.global.u64 %rd1, [%rd1];\n" + load(8)), 1U);
  EXPECT_EQ(shared(load(0) + load(4) + "mov.u64 %rd1, %rd2;\n" + load(8)), 0U);
}

TEST(Neighbours, are_of_one_block) {
  EXPECT_EQ(shared(load(0) + load(4) + "@%p1 bra $L;\n" + load(8) + "$L:\n"), 0U);
  EXPECT_EQ(shared(load(0) + load(4) + "$L:\n" + load(8) + "@%p1 bra $L;\n"), 0U);
  EXPECT_EQ(shared(three + "@%p1 bra $L;\n" + three + "$L:\n" + three), 3U);
}

}  // namespace
}  // namespace demarc::ptx
