// A configuration of two tenants.
#pragma once

#include <string_view>

namespace demarc::serve {

inline constexpr std::string_view two_halves = R"(
[tenants.a]
sms = "50 %"
colors = "1/2"
[tenants.b]
tpcs = "0-1"
colors = "2/2"
)";

}  // namespace demarc::serve
