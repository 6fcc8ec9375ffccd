// Of the driver's functions that a coloured program calls: which the driver carries out as they
// are. All others are answered in its place (colored_calls.hpp) or refused.
#pragma once

#include <string_view>

namespace demarc::cuda {

// By DriverCall::base_name(), for all versions of a function alike.
[[nodiscard]] bool passes_colored(std::string_view base_name);

// In words, of one that neither passes nor is answered.
[[nodiscard]] const char* why_refused(std::string_view base_name);

}  // namespace demarc::cuda
