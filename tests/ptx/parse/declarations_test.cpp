// Tests which declarations, headers, labels and calls are malformed, by kept verdicts of ptxas.
#include <gtest/gtest.h>

#include "declaration_cases.hpp"
#include "text.hpp"

namespace demarc::ptx::test {
namespace {

TEST(Declarations, are_taken_and_refused_as_kept) {
  const auto cases = declaration_cases();
  ASSERT_GT(cases.size(), 1000U);
  for (const DeclarationCase& one : cases) {
    EXPECT_EQ(parse(one.module, "t.ptx").diagnostics.ok(), one.taken) << one.what;
  }
}

std::string said_of_header(const std::string& version, const std::string& target) {
  const auto result = parse(".version " + version + "\n.target " + target +
                                "\n.address_size 64\n.visible .entry k() { ret; }\n",
                            "t.ptx");
  return result.diagnostics.ok() ? "" : result.diagnostics.list.front().message;
}

TEST(Declarations, versions_and_targets_are_named_with_what_would_be_right) {
  EXPECT_EQ(said_of_header("7.0", "sm_90"), "target 'sm_90' needs PTX 7.8 or later");
  EXPECT_EQ(said_of_header("9.0", "sm_91"), "there is no target 'sm_91' in PTX 9.0");
  EXPECT_EQ(said_of_header("8.9", "sm_90"), "there is no PTX 8.9");
}

// Text of a newer compiler is not refused for what these tables do not know.
TEST(Declarations, newer_versions_than_the_tables_know_are_not_judged) {
  EXPECT_EQ(said_of_header("9.1", "sm_90"), "");
  EXPECT_EQ(said_of_header("10.0", "sm_130"), "");
  EXPECT_EQ(said_of_header("9.1", "sm_110a"), "");
}

TEST(Declarations, a_refused_variable_is_declared_all_the_same) {
  const auto result = parse(test::kernel(".local .b8 own[];\nst.local.u8 [own], 1;"), "t.ptx");
  ASSERT_EQ(result.diagnostics.list.size(), 1U);
  EXPECT_EQ(result.diagnostics.list.front().message,
            "'own': an array without a size is .extern or has initial values");
}

TEST(Declarations, a_number_with_leading_zeros_is_the_register_of_that_number) {
  const Module module = parsed(test::kernel(".reg .b32 w<9>;\nmov.b32 w01, 1;"));
  const Body& body = module.functions[0].body;
  EXPECT_EQ(body.register_name(body.operands[body.instructions[0].first_operand].index), "w1");
}

}  // namespace
}  // namespace demarc::ptx::test
