// Follows the slice of a kernel for every row of threads of every block.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/locality/runs.hpp"
#include "slice.hpp"

namespace demarc::locality {

struct ClosedForm {
  AccessRuns runs;           // of the accesses that could be closed; all accesses are listed
  std::vector<bool> closed;  // by access
};

// Gives up (nothing closed) after `most_operations`.
[[nodiscard]] ClosedForm follow_rows(const Slice& slice, const gpu::Dim3& grid,
                                     const gpu::Dim3& block, std::uint64_t most_operations,
                                     const Progress& progress);

}  // namespace demarc::locality
