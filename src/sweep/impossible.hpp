// What no simulation can have found, in a result of any verb.
#pragma once

#include <optional>
#include <string>

#include "demarc/base/json.hpp"

namespace demarc::sweep {

// The first number whose name ends in "hit_rate" and that is not between 0 and 1, in words with its
// place; nothing if there is none.
[[nodiscard]] std::optional<std::string> impossible_rate(const Json& result);

}  // namespace demarc::sweep
