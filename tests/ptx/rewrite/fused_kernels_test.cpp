// What a kernel becomes as one of the steps of a fused one.
#include "demarc/ptx/fused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text.hpp"

namespace demarc::ptx {
namespace {

using testing::HasSubstr;

// Parameters lie behind each other, each at a multiple of its own alignment.
TEST(FusedKernels, load_each_part_of_a_parameter_from_its_place_among_the_arguments) {
  const Module module = test::parsed(test::preamble + R"(
.visible .entry k(.param .u32 first, .param .align 8 .b8 pair[16], .param .u16 last)
{
  .reg .b16 %h<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u32 %r1, [first];
  ld.param.u64 %rd1, [pair];
  ld.param.u64 %rd2, [pair+8];
  ld.param.u16 %h1, [last];
  ret;
}
)");
  EXPECT_EQ(fused_offsets(*module.kernels()[0]).value(), (std::vector<std::uint32_t>{0, 8, 24}));
  const auto fused = rewrite_fused(module);
  ASSERT_TRUE(fused) << fused.error().message;
  const std::string& text = *fused->text;
  EXPECT_THAT(text, HasSubstr("ld.global.u32 %r1, [%demarc_arguments+0];"));
  EXPECT_THAT(text, HasSubstr("ld.global.u64 %rd1, [%demarc_arguments+8];"));
  EXPECT_THAT(text, HasSubstr("ld.global.u64 %rd2, [%demarc_arguments+16];"));
  EXPECT_THAT(text, HasSubstr("ld.global.u16 %h1, [%demarc_arguments+24];"));
}

}  // namespace
}  // namespace demarc::ptx
