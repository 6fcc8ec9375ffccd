// What a buffer or a variable of a launch file holds before the launch.
#pragma once

#include <cstdint>
#include <filesystem>

#include "demarc/base/json.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::gpu {

inline constexpr std::int64_t max_buffer_bytes = std::int64_t{1} << 46;

// The keys element, low, high and fill of `object`. `launch` has its parameters and the names of
// all buffers already; files lie in `folder`.
[[nodiscard]] Result<void> read_content(JsonObject& object, const Launch& launch,
                                        const std::filesystem::path& folder, Buffer& buffer);

}  // namespace demarc::gpu
