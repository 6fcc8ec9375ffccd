// Variables of the module that a launch sets before its first kernel.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

constexpr const char* two_variables =
    ".const .align 4 .u32 step = 3;\n.global .align 8 .u64 count;\n";

// count += step; the thread's word is the new count.
const std::string counting = kernel_of(
    two_variables,
    "ld.const.u32 %r2, [step];\ncvt.u64.u32 %rd3, %r2;\nld.global.u64 %rd4, [count];\n"
    "add.u64 %rd4, %rd4, %rd3;\nst.global.u64 [count], %rd4;\nst.global.u64 [%rd2], %rd4;");

gpu::Launch with_variables(const std::vector<std::string>& texts) {
  gpu::Launch launch = launch_of(1, 1, 8);
  launch.kernels.push_back(launch.kernels.front());
  for (const std::string& text : texts)
    launch.variables.push_back(gpu::parse_variable(text).value());
  return launch;
}

TEST(Variables, hold_what_the_launch_says_before_the_first_kernel_and_are_kept_to_the_last) {
  EXPECT_EQ(words_of(run_text(counting, with_variables({})).value())[0], 6U);
  EXPECT_EQ(words_of(run_text(counting, with_variables({"step=u32:5"})).value())[0], 10U);
  EXPECT_EQ(words_of(run_text(counting, with_variables({"count=u64:100"})).value())[0], 106U);
  EXPECT_EQ(words_of(run_text(counting, with_variables({"step=zero", "count=u64:7"})).value())[0],
            7U);
}

TEST(Variables, hold_addresses_of_buffers) {
  gpu::Launch launch = with_variables({"count=zero", "step=zero"});
  launch.variables[0].element = gpu::ScalarType::u64;
  launch.variables[0].fill.kind = gpu::FillKind::pointers;
  EXPECT_EQ(words_of(run_text(counting, launch).value())[0], gpu::default_addresses(launch)[0]);
}

TEST(Variables, that_do_not_exist_or_have_another_size_are_refused) {
  EXPECT_EQ(run_text(counting, with_variables({"steps=u32:5"})).error().message,
            "ptx: there is no variable 'steps' of constant or global memory");
  EXPECT_EQ(run_text(counting, with_variables({"step=u64:5"})).error().message,
            "variable 'step': 8 bytes are given, 4 were expected");
}

// Each function has its own of a name, and all calls share it.
TEST(Variables, of_a_function_body_hold_their_initial_values_and_are_one_for_all_calls) {
  const std::string text = kernel_of(
      ".global .u32 z = 100;\n.func f()\n{\n.global .u32 z = 5;\n.reg .b32 a;\n"
      "ld.global.u32 a, [z];\nadd.u32 a, a, 1;\nst.global.u32 [z], a;\nret;\n}\n"
      ".func (.reg .b32 a) g()\n{\nld.global.u32 a, [z];\nret;\n}\n",
      ".global .u32 z = 7;\n.const .u32 c[2] = {4, 5};\n.shared .u32 s;\ncall f;\ncall f;\n"
      "ld.global.u32 %r3, [z];\nld.const.u32 %r4, [c+4];\nadd.u32 %r3, %r3, %r4;\n"
      "mov.u64 %rd3, z;\ncvta.global.u64 %rd3, %rd3;\nld.u32 %r5, [%rd3];\n"
      "mad.lo.u32 %r3, %r5, 1000, %r3;\ncall (%r6), g;\nmad.lo.u32 %r3, %r6, 100, %r3;\n"
      "cvt.u64.u32 %rd4, %r3;\nst.global.u64 [%rd2], %rd4;");
  const auto outcome = run_text(text, launch_of(1, 1, 8));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(words_of(*outcome)[0], 7000U + 100U * 100U + 7U + 5U);
  EXPECT_TRUE(outcome->findings.empty());
}

TEST(Variables, of_a_function_body_have_bounds) {
  const auto outcome =
      run_text(kernel_of(".global .u32 a;\n", ".global .u32 z = 7;\nld.global.u32 %r3, [z+4];"),
               launch_of(1, 1, 8));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::out_of_bounds);
}

}  // namespace
}  // namespace demarc::emulate
