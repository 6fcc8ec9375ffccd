// The order in which a warp makes its requests where its lanes went different ways.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/locality/runs.hpp"
#include "follow/slice.hpp"

namespace demarc::locality {

// Lanes of a warp that went different ways meet again where their paths do: an access in equal
// trips of the loops around it is one request, whatever the lanes did before. Steps follow the
// order in which a warp that waits at every meeting passes the accesses. `trips`: by run from
// `first` on and level up to `depth`, those of the loops around it. False: they would be too many
// runs, as some lanes were followed trip by trip through a loop that others closed.
[[nodiscard]] bool number_requests(AccessRuns& runs, std::size_t first, const Slice& slice,
                                   std::vector<std::uint32_t>& trips, std::size_t depth);

// Runs from `first` on that were followed apart and continue each other become one.
void join_runs(AccessRuns& runs, std::size_t first);

}  // namespace demarc::locality
