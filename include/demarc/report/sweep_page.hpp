// The page of a sweep: the aggregated results, each measure against each axis, and the command that
// runs each point alone.
#pragma once

#include <string>

#include "demarc/base/result.hpp"
#include "demarc/sweep/store.hpp"

namespace demarc::report {

[[nodiscard]] Result<std::string> sweep_page(sweep::Store& store, const std::string& command);

}  // namespace demarc::report
