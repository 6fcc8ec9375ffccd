// Kernels whose lanes part: the words that each thread leaves in %r9, or the finding.
#pragma once

#include <string>
#include <vector>

#include "harness.hpp"

namespace demarc::emulate::test {

inline constexpr const char* progress_store =
    "\ncvt.u64.u32 %rd3, %r9;\nst.global.u64 [%rd2], %rd3;";

inline std::vector<std::uint64_t> progress_words(const std::string& declarations,
                                                 const std::string& body,
                                                 std::uint32_t threads = 32,
                                                 std::uint32_t blocks = 1) {
  const auto outcome = run_text(kernel_of(declarations, body + progress_store),
                                launch_of(blocks, threads, std::uint64_t{8} * threads + 64));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return std::vector<std::uint64_t>(threads + 8, ~0ULL);
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return words_of(*outcome);
}

inline std::string progress_finding(const std::string& declarations, const std::string& body,
                                    std::uint32_t threads = 32, const Options& options = {},
                                    std::uint32_t blocks = 1) {
  const auto outcome =
      run_text(kernel_of(declarations, body), launch_of(blocks, threads, 1024), options);
  if (!outcome) return outcome.error().message;
  return outcome->findings.empty() ? "none" : describe(outcome->findings[0], "t.ptx");
}

inline std::string in_both_sides(const std::string& even, const std::string& odd) {
  return "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra EVEN;\nmul.lo.u32 %r4, %r1, "
         "3;\n" +
         odd + "\nbra MEET;\nEVEN:\nmul.lo.u32 %r4, %r1, 2;\n" + even + "\nMEET:\n";
}

}  // namespace demarc::emulate::test
