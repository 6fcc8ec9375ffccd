// How a program says that it has missed its service-level objective (SLO).
#pragma once

#include "demarc/base/result.hpp"

namespace demarc::cuda {

// Counts one miss for the tenant whose lease this process has. It adds to a number in shared
// memory, so it may be called for each request that came too late, from any thread.
// missing_capability outside of a lease.
[[nodiscard]] Result<void> count_slo_miss();

}  // namespace demarc::cuda
