// What a machine lacks is not passed over: each test that cannot run here says so in one form, and
// the end of `make test` (tools/sum-up-tests.sh) counts and names it. A skip that does not is
// refused there.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace demarc::test {

// `reason` is what the machine lacks: "no ptxas". `part`: of the running test, when not all of it.
inline void note_not_run(const std::string& reason, const std::string& part = {}) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::printf("not run: %s.%s%s%s: %s\n", info->test_suite_name(), info->name(),
              part.empty() ? "" : ", ", part.c_str(), reason.c_str());
  std::fflush(stdout);
}

}  // namespace demarc::test

// Leaves the running test, which is then counted as not run.
#define DEMARC_NOT_RUN(reason)          \
  do {                                  \
    demarc::test::note_not_run(reason); \
    GTEST_SKIP() << (reason);           \
  } while (false)
