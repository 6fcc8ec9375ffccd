// Whole numbers of launch files, which may be expressions.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/base/result.hpp"
#include "expression.hpp"

namespace demarc::gpu {

[[nodiscard]] Result<std::int64_t> number_of(const Json& value, const Variables& variables,
                                             const std::string& where);
[[nodiscard]] Result<std::int64_t> number_within(const Json& value, const Variables& variables,
                                                 std::int64_t low, std::int64_t high,
                                                 const std::string& where);

}  // namespace demarc::gpu
