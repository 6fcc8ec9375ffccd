// Whole files in and out. Writing is atomic: a reader sees the old file or the new one, never a
// part.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc {

// The whole content of `path`; an error names the path and the cause.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);

// Writes `content` to a temporary file beside `path` and renames it into place.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view content);

// Whether write_file() could write `path`, found out by making and removing its temporary file: for
// before the work whose result goes there. An error names the path and the cause.
[[nodiscard]] Result<void> check_writable(const std::filesystem::path& path);

}  // namespace demarc
