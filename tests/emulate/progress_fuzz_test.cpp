// Random kernels whose lanes part, wait for each other and leave, beside a reference that runs one
// thread at a time.
#include <gtest/gtest.h>

#include <cstdlib>

#include "flow_runs.hpp"
#include "sanitized.hpp"

namespace demarc::emulate::test {
namespace {

// DEMARC_FLOW_PROGRAMS kernels from DEMARC_FLOW_SEED on.
std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

TEST(RandomFlows, leave_in_memory_what_threads_leave_that_run_one_at_a_time) {
  const std::uint64_t first = number_from("DEMARC_FLOW_SEED", 1);
  const std::uint64_t count =
      number_from("DEMARC_FLOW_PROGRAMS", demarc::test::sanitized ? 100 : 1000);
  unsigned wrong = 0;
  for (std::uint64_t seed = first; seed < first + count && wrong < 5; ++seed) {
    const RandomFlow flow = random_flow(seed);
    const std::string said = compare_flow(flow, seed);
    if (said.empty()) continue;
    ++wrong;
    ADD_FAILURE() << "kernel " << seed << ": " << said;
  }
}

}  // namespace
}  // namespace demarc::emulate::test
