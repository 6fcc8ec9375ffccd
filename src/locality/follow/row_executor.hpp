// Follows the slice of a kernel for every row of threads of every block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/locality/runs.hpp"
#include "follow/slice.hpp"

namespace demarc::locality {

struct ClosedForm {
  AccessRuns runs;           // runs of the accesses that could be closed; all accesses are listed
  std::vector<bool> closed;  // by access
  bool too_long = false;     // a row took more than RowLimits allows, and nothing is closed
  bool cut = false;          // the work allowed ended before the kernel did
  std::uint64_t operations = 0;  // that were followed, with those of attempts to close loops
};

// In operations. Where `a_row` is given, each row is followed so far, the first blocks that `all`
// is enough for; otherwise more than `all` means that nothing is closed.
struct RowLimits {
  std::uint64_t all = 0;
  std::optional<std::uint64_t> a_row;
  // For each row where all of it is followed: a row that takes more operations, or of which more
  // words have to be kept, has no closed form. So the rows of an endless loop are given up early.
  std::uint64_t max_of_row = ~std::uint64_t{0};
  std::uint64_t max_words_of_row = ~std::uint64_t{0};
  // Threads that take more on one way through the kernel do not end, and nothing is closed.
  std::uint64_t max_of_path = ~std::uint64_t{0};
};

// A form that was cut has the blocks it got to as its grid, in one dimension.
[[nodiscard]] ClosedForm follow_rows(const Slice& slice, const gpu::Dim3& grid,
                                     const gpu::Dim3& block, const RowLimits& limits,
                                     const Progress& progress);

}  // namespace demarc::locality
