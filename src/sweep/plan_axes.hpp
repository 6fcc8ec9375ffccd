// The axes of a sweep file: lists, ranges, files, and those that change together.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "demarc/base/json.hpp"
#include "demarc/sweep/plan.hpp"

namespace demarc::sweep {

// A whole number where it is one.
[[nodiscard]] Value shortest(double number);

// `where`: of `json`, for messages.
[[nodiscard]] Result<std::vector<Axis>> read_axes(const Json& json, const std::string& where,
                                                  const std::filesystem::path& folder);

}  // namespace demarc::sweep
