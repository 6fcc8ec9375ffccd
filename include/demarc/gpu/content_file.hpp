// Files that hold the elements of a buffer: those of NumPy (.npy), whose type must be that of the
// elements, and all others, byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/gpu/launch.hpp"

namespace demarc::gpu {

[[nodiscard]] bool is_npy(std::string_view file);  // by its name

// How many bytes of elements it holds; nothing for a pipe or a device. Errors name the file.
[[nodiscard]] Result<std::optional<std::uint64_t>> content_bytes(const std::string& file,
                                                                 ScalarType element);

// The elements. More than `most` bytes are an error that begins with the file and says so.
[[nodiscard]] Result<std::string> read_content(const std::string& file, ScalarType element,
                                               std::uint64_t most);

// What stands before so many bytes of elements in a file of that name.
[[nodiscard]] std::string content_head(std::string_view file, ScalarType element,
                                       std::uint64_t bytes);

}  // namespace demarc::gpu
