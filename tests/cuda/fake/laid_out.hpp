// Arguments of the driver's functions as its callbacks show them.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace demarc::fake {

// Arguments one behind the other, as the members of a struct.
template <class... Arguments>
std::array<std::byte, 128> laid_out(const Arguments&... arguments) {
  std::array<std::byte, 128> bytes{};
  std::size_t end = 0;
  [[maybe_unused]] const auto append = [&](const auto& argument) {
    const std::size_t at = (end + alignof(decltype(argument)) - 1) / alignof(decltype(argument)) *
                           alignof(decltype(argument));
    std::memcpy(bytes.data() + at, &argument, sizeof argument);
    end = at + sizeof argument;
  };
  (append(arguments), ...);
  return bytes;
}

}  // namespace demarc::fake
