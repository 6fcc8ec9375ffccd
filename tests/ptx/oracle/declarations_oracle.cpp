// Tests by ptxas that it takes and refuses declarations as the kept verdicts say.
#include <gtest/gtest.h>

#include "compilers.hpp"
#include "declaration_cases.hpp"

namespace demarc::ptx::test {
namespace {

// Every tenth of them; what ptxas says of whole modules costs a process each.
void expect_verdicts(std::size_t step) {
  const auto cases = declaration_cases();
  for (std::size_t i = 0; i < cases.size(); i += step) {
    EXPECT_EQ(is_taken_as_a_part(cases[i].module), cases[i].taken) << cases[i].what;
  }
}

TEST(Declarations, ptxas_takes_and_refuses_declarations_as_kept) {
  expect_verdicts(10);
}

TEST(WholeDeclarations, ptxas_takes_and_refuses_all_declarations_as_kept) {
  expect_verdicts(1);
}

}  // namespace
}  // namespace demarc::ptx::test
