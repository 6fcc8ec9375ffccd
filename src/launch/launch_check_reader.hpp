// What a launch file says of its check, and which buffer a name in such a file means.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "demarc/base/json.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::gpu {

// The number of buffers where there is none of that name.
[[nodiscard]] std::size_t find_buffer(std::span<const Buffer> buffers, std::string_view name);
// An error names those that there are.
[[nodiscard]] Result<std::size_t> buffer_index(std::span<const Buffer> buffers,
                                               std::string_view name, const std::string& where);

// A reference by its name, or a file for each output; files lie in `folder`.
[[nodiscard]] Result<Check> read_check(JsonObject& object, std::span<const Buffer> buffers,
                                       const std::filesystem::path& folder);

}  // namespace demarc::gpu
