// What closed forms and the emulator must agree on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "demarc/locality/analyse.hpp"

namespace demarc::locality {

// Every place a thread touches, in a form that does not depend on how runs were cut.
inline std::vector<std::array<std::uint64_t, 4>> flattened(const AccessRuns& runs,
                                                           const std::vector<bool>& kept) {
  std::vector<std::array<std::uint64_t, 4>> all;
  for (const locality::Run& run : expanded(runs).runs) {
    if (!kept[run.access]) continue;
    for (std::uint32_t k = 0; k < run.count; ++k)
      all.push_back({run.block, run.thread + k, run.access,
                     run.address + static_cast<std::uint64_t>(run.stride) * k});
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Coalescing of every access that `kept` names: what a request is does not depend on the way.
inline void expect_equal_requests(AccessRuns a, AccessRuns b, const std::vector<bool>& kept,
                                  const std::string& what) {
  count_requests(a);
  count_requests(b);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    EXPECT_EQ(a.accesses[i].executed, b.accesses[i].executed) << what << ", access " << i;
    EXPECT_EQ(a.accesses[i].requests, b.accesses[i].requests) << what << ", access " << i;
    EXPECT_NEAR(a.accesses[i].sectors_per_request, b.accesses[i].sectors_per_request, 1e-9)
        << what << ", access " << i;
  }
}

}  // namespace demarc::locality
