// What limits the registers of a kernel is taken back, and of no other.
#include "demarc/ptx/registers.hpp"

#include <gtest/gtest.h>

#include "text.hpp"

namespace demarc::ptx {
namespace {

Result<Module> freed(const std::string& directives, std::string_view kernel = "k") {
  return with_most_registers(test::parsed(test::preamble + ".entry k()\n" + directives +
                                          "{\nret;\n}\n.entry other()\n.maxnreg 32\n{\nret;\n}\n"),
                             kernel, 96);
}

TEST(MostRegisters, limits_go_and_the_block_is_as_large_as_the_launches) {
  const auto module =
      freed(".maxntid 1024, 1, 1\n.minnctapersm 2\n.maxnreg 40\n.pragma \"nounroll\";\n");
  ASSERT_TRUE(module) << module.error().message;
  const Function& kernel = *module->find_function("k");
  EXPECT_EQ(kernel.directive("minnctapersm"), nullptr);
  EXPECT_EQ(kernel.directive("maxnreg"), nullptr);
  ASSERT_NE(kernel.directive("maxntid"), nullptr);
  EXPECT_EQ(kernel.directive("maxntid")->values, std::vector<std::uint64_t>{96});
  EXPECT_NE(kernel.directive("pragma"), nullptr);
  EXPECT_NE(module->find_function("other")->directive("maxnreg"), nullptr);
}

TEST(MostRegisters, a_block_of_a_fixed_size_stays) {
  const auto module = freed(".reqntid 128\n.minnctapersm 2\n");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->find_function("k")->directives.size(), 1U);
  EXPECT_NE(module->find_function("k")->directive("reqntid"), nullptr);
}

TEST(MostRegisters, a_kernel_that_is_not_there_is_an_error) {
  EXPECT_EQ(freed("", "none").error().message, "t.ptx: there is no kernel 'none'");
}

}  // namespace
}  // namespace demarc::ptx
