// Reading a block of bytes field by field, within what is there.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

namespace demarc::fatbin {

// Whether [offset, offset + length) lies within `size`; no sum that could overflow.
[[nodiscard]] constexpr bool fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

// The T at `offset`, aligned or not; nothing where it is not all there. The formats are
// little-endian, as the machines are that run CUDA.
template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::optional<T> field(std::string_view bytes, std::uint64_t offset) {
  if (!fits(offset, sizeof(T), bytes.size())) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Compares byte by byte and reads no further than the first that differs: `bytes` may be a shorter
// text than its view says. (std::string_view::starts_with may read all of it.)
[[nodiscard]] constexpr bool begins_with(std::string_view bytes, std::string_view start) {
  if (bytes.size() < start.size()) return false;
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (bytes[i] != start[i]) return false;
  }
  return true;
}

}  // namespace demarc::fatbin
