// A member of a result by its JSON pointer.
#pragma once

#include <optional>
#include <string>

#include "demarc/base/json.hpp"
#include "demarc/sweep/plan.hpp"

namespace demarc::sweep {

// A number, a string, true or false; nothing for null and for what is neither.
[[nodiscard]] std::optional<Value> scalar(const Json& json);

// The member that `pointer` names (Measure::pointer); nothing for null. An error says how far it
// came.
[[nodiscard]] Result<std::optional<Value>> select(const Json& json, const std::string& pointer);

}  // namespace demarc::sweep
