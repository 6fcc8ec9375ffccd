// Tests by ptxas that it takes and refuses debug data as the kept verdicts say.
#include <gtest/gtest.h>

#include "compilers.hpp"
#include "debug_cases.hpp"

namespace demarc::ptx::test {
namespace {

TEST(Debug, ptxas_takes_and_refuses_debug_data_as_kept) {
  for (const DebugCase& one : debug_cases()) {
    EXPECT_EQ(verdict_of_ptxas(one.module) == Verdict::taken, one.taken) << one.what;
  }
}

}  // namespace
}  // namespace demarc::ptx::test
