// Programs with asynchronous copies and barriers in shared memory, for tests on the emulator.
#pragma once

#include <string>
#include <vector>

#include "harness.hpp"

namespace demarc::emulate::test {

// Finds the barrier, and whether this is the first thread.
inline const std::string async_init = "mov.u64 %rd10, bar;\nsetp.eq.u32 %p1, %r1, 0;\n";

// One block that runs `body` with 1 KiB of shared memory, `area`, and a barrier, `bar`.
inline Result<Outcome> run_async(const std::string& body, std::uint32_t threads,
                                 std::uint64_t bytes) {
  auto outcome =
      run_text(kernel_of(".shared .align 16 .b8 area[1024];\n.shared .align 8 .b64 bar;\n", body),
               launch_of(1, threads, bytes));
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome;
}

inline std::vector<std::uint64_t> async_words(const std::string& body, std::uint32_t threads = 32) {
  const auto outcome = run_async(body + "\ncvt.u64.u32 %rd3, %r9;\nst.global.u64 [%rd2], %rd3;",
                                 threads, 8 * threads);
  if (!outcome) return std::vector<std::uint64_t>(threads, ~0ULL);
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return words_of(*outcome);
}

}  // namespace demarc::emulate::test
