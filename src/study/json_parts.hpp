// Pieces of JSON that results of several verbs have in common.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/study/executor.hpp"
#include "demarc/study/statistics.hpp"

namespace demarc::study {

inline constexpr std::string_view isolate_schema = "demarc.isolate/4";

// An end that the samples do not give is null.
[[nodiscard]] Json end_json(double end);
[[nodiscard]] Json ends_json(double low, double high);
[[nodiscard]] Json estimate_json(const Estimate& e);
// Program, device and command: the context of every result.
[[nodiscard]] std::string program_name();  // with its version
[[nodiscard]] Json context_json(const DeviceContext& device, const std::string& command);

}  // namespace demarc::study
