// Ten thousand random kernels of address arithmetic leave in coloured memory the bytes that they
// leave in plain memory.
#include "colored_random.hpp"

namespace demarc::emulate::colored {
namespace {

class RandomPrograms : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomPrograms, leave_the_bytes_that_they_leave_in_plain_memory) {
  constexpr std::uint64_t modules = 20;
  for (std::uint64_t i = 0; i < modules && !HasFailure(); ++i) {
    Batch batch;
    batch.first_seed = GetParam() + i * batch.programs;
    batch.colors_seed = batch.first_seed / batch.programs;
    expect_same_everywhere(batch);
  }
}

// Two suites, which run side by side.
INSTANTIATE_TEST_SUITE_P(First, RandomPrograms, testing::Range<std::uint64_t>(0, 5'000, 1'000));
INSTANTIATE_TEST_SUITE_P(Second, RandomPrograms,
                         testing::Range<std::uint64_t>(5'000, 10'000, 1'000));

}  // namespace
}  // namespace demarc::emulate::colored
