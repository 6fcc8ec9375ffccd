// Small tables: a key and what it stands for in each row.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace demarc::emulate {

template <class Key, class Value, std::size_t size>
using Rows = std::array<std::pair<Key, Value>, size>;

template <class Key, class Value, std::size_t size>
[[nodiscard]] constexpr std::optional<Value> look_up(const Rows<Key, Value, size>& rows,
                                                     const Key& key) {
  for (const auto& [name, value] : rows) {
    if (name == key) return value;
  }
  return std::nullopt;
}

}  // namespace demarc::emulate
