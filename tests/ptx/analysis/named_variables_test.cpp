// Which variables a kernel names, itself or by what it runs.
#include "demarc/ptx/named_variables.hpp"

#include <gtest/gtest.h>

#include "text.hpp"

namespace demarc::ptx {
namespace {

const std::string two_kernels = test::preamble + R"(
.const .align 4 .b8 taps[16];
.const .align 4 .b8 unused[16];
.global .align 4 .u32 count;
.global .align 4 .u32 total;
.func helper() { .reg .u32 %r<2>; ld.global.u32 %r1, [count]; ret; }
.entry direct() { .reg .b64 %rd<2>; mov.u64 %rd1, taps; ret; }
.entry by_call() { call helper, (); ret; }
.entry vector() { .reg .u32 %r<3>; ld.const.v2.u32 {%r1, %r2}, [taps+8]; st.global.u32 [total], %r1; ret; }
.entry nothing() { ret; }
)";

std::string named(std::string_view kernel) {
  const Module module = test::parsed(two_kernels);
  std::string all;
  for (const Variable* variable : named_variables(module, *module.find_function(kernel)))
    all += std::string(variable->name) + " ";
  return all;
}

TEST(NamedVariables, are_those_of_the_kernel_and_of_what_it_runs) {
  EXPECT_EQ(named("direct"), "taps ");
  EXPECT_EQ(named("by_call"), "count ");
  EXPECT_EQ(named("vector"), "taps total ");
  EXPECT_EQ(named("nothing"), "");
}

TEST(NamedVariables, memory_of_a_module_is_found_by_its_name_and_shared_memory_is_not) {
  const Module module =
      test::parsed(test::preamble + ".shared .u32 s;\n.const .u32 c;\n.global .u32 g;\n");
  EXPECT_EQ(module.find_memory("s"), nullptr);
  EXPECT_EQ(module.find_memory("none"), nullptr);
  ASSERT_NE(module.find_memory("c"), nullptr);
  EXPECT_EQ(module.find_memory("c")->name, "c");
  EXPECT_NE(module.find_memory("g"), nullptr);
}

}  // namespace
}  // namespace demarc::ptx
