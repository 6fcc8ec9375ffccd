// An endless loop of accesses that are not asked for, in more turns than a run in the emulator is
// worth beside closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

TEST(EndlessStores, hang_after_more_words_of_trace_than_known_loads_are_worth) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.lo.u32 %r1, %r1, %r1;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, %rd1, %rd2;\nagain:\n"
      "st.global.u32 [%rd1], %r2;\nbra again;\n",
      one_pointer);
  Options options;
  options.instruction_limit = 2'200'000;  // 34 words for every second one
  const auto analysis = analyse(module, launch_of("1", "32", "buf:4096:zero,i32:0"), options);
  ASSERT_FALSE(analysis);
  EXPECT_EQ(analysis.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(analysis.error().message, testing::HasSubstr("executed more than 2200000 warp"));
}

}  // namespace
}  // namespace demarc::locality
