// Files that hold the elements of a buffer. The type of a file of NumPy (.npy) must be that of the
// elements. All other files are read byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::gpu {

[[nodiscard]] bool is_npy(std::string_view file);  // by its name

// How many bytes of elements the file holds; nothing for a pipe or a device. Errors name the file.
[[nodiscard]] Result<std::optional<std::uint64_t>> content_bytes(const std::string& file,
                                                                 ScalarType element);

// The elements. More than `most` bytes are an error that begins with the file and says so.
[[nodiscard]] Result<std::string> read_content(const std::string& file, ScalarType element,
                                               std::uint64_t most);

// The head that a file of that name has in front of so many bytes of elements.
[[nodiscard]] std::string content_head(std::string_view file, ScalarType element,
                                       std::uint64_t bytes);

}  // namespace demarc::gpu
