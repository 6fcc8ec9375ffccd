// Tests what demarc blocks refuses without a GPU, and an unknown clock of demarc isolate.
#include <gtest/gtest.h>

#include "program.hpp"

namespace demarc::test {
namespace {

TEST(BlocksVerb, without_a_driver_it_ends_with_2_and_says_what_is_missing) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  const Outcome outcome = run_demarc({"blocks", "--experiments", "figure-4"});
  ::unsetenv("DEMARC_LIBCUDA");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("/no/such/libcuda.so"), std::string::npos) << outcome.err;
}

TEST(BlocksVerb, an_unknown_experiment_is_refused_with_the_list_before_any_gpu_is_looked_for) {
  const Outcome outcome = run_demarc({"blocks", "--experiments", "figure-3,figure-99"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(
      outcome.err.find(
          "'figure-99' is not an experiment; the experiments are figure-3, figure-4, figure-10"),
      std::string::npos)
      << outcome.err;
  EXPECT_EQ(run_demarc({"blocks", "--device", "sim:h100"}).exit_code, 1);
}

TEST(IsolateVerb, an_unknown_clock_is_refused_by_name) {
  const Outcome outcome = run_demarc({"isolate", "--device", "cuda:0", "--clock", "sun"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("--clock: 'sun' is not gpu, events or requests"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace demarc::test
