// What would help a kernel most, drawn from its coalescing and its sharing.
#pragma once

#include <string>
#include <vector>

#include "demarc/locality/analyse.hpp"

namespace demarc::locality {

// At most one sentence about the access with the worst coalescing, and one about that which most
// blocks share. `all` has its requests counted, `inter` is filled in.
[[nodiscard]] std::vector<std::string> advice_for(const Analysis& analysis);

}  // namespace demarc::locality
