// Kernels that run a part of their grid: all parts together do what the whole grid does.
#include "demarc/ptx/grid_part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::ptx {
namespace {

using testing::HasSubstr;

constexpr const char* part_head = ".version 8.0\n.target sm_90\n.address_size 64\n";

Module part_module(const std::string& text) {
  auto module = parse_whole(part_head + text, "k.ptx");
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

std::string part_refusal(const std::string& text) {
  const auto part = rewrite_grid_part(part_module(text));
  return part ? "accepted" : part.error().message;
}

TEST(GridPart, takes_four_parameters_behind_the_kernels_own_and_no_block_index_of_the_card) {
  const auto part = rewrite_grid_part(part_module(R"(
.visible .entry k(.param .u64 k_0) {
  .reg .pred %p<1>;
  .reg .b32 %r<3>;
  mov.u32 %r0, %ctaid.y;
  mov.u32 %r1, %nctaid.z;
  @%p0 mov.u32 %r2, %ctaid.x;
  ret;
}
)"));
  ASSERT_TRUE(part) << part.error().message;
  const Function& kernel = part->functions.front();
  ASSERT_EQ(kernel.parameters.size(), 5U);
  EXPECT_EQ(kernel.parameters[1].name, "demarc_first_block");
  EXPECT_EQ(kernel.parameters[4].name, "demarc_grid_z");
  const std::string& text = *part->text;
  EXPECT_THAT(text, HasSubstr("mov.u32 %r0, %demarc_ctaid_y;"));
  EXPECT_THAT(text, HasSubstr("mov.u32 %r1, %demarc_nctaid_z;"));
  EXPECT_THAT(text, HasSubstr("mov.u32 %r2, %demarc_ctaid_x;"));
  EXPECT_EQ(text.find("%ctaid.y"), std::string::npos);
}

TEST(GridPart, refuses_what_a_part_cannot_keep) {
  EXPECT_EQ(part_refusal(".visible .entry k() .reqnctapercluster 2 { ret; }"),
            "k.ptx:4: kernel 'k' uses clusters (.reqnctapercluster), which a part of a grid cannot "
            "keep");
  EXPECT_EQ(
      part_refusal(".visible .entry k() { .reg .b32 %r<4>;\nmov.u32 %r0, %cluster_ctaid.x; ret; }"),
      "k.ptx:5: 'mov.u32 %r0, %cluster_ctaid.x;' cannot be split by blocks; read one "
      "axis of %ctaid or %nctaid at a time");
  EXPECT_EQ(part_refusal(".func f() { .reg .b32 %r<4>;\nmov.u32 %r0, %ctaid.x; ret; }"),
            "k.ptx:5: 'mov.u32 %r0, %ctaid.x;' in the device function 'f' cannot be split by "
            "blocks; inline the function");
}

TEST(GridPart, is_not_made_twice_nor_of_a_persistent_grid) {
  const Module plain = part_module(".visible .entry k() { ret; }");
  const auto part = rewrite_grid_part(plain);
  ASSERT_TRUE(part);
  const auto twice = rewrite_grid_part(*part);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("is split by blocks already"));
  EXPECT_FALSE(rewrite_affine(*part));
  const auto affine = rewrite_affine(plain);
  ASSERT_TRUE(affine);
  EXPECT_FALSE(rewrite_grid_part(*affine));
}

}  // namespace
}  // namespace demarc::ptx
