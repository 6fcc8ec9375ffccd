// Digests of bytes and of numbers, all in one place: xxHash (XXH3 of 64 bits), whose values are the
// same on every machine and in every version from 0.8 on. They serve for tables, for telling
// results apart and for choices that must repeat. They are not for security: two inputs
// with the same digest can be found.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace demarc {

[[nodiscard]] inline std::uint64_t hash_of(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

[[nodiscard]] inline std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// The digest of some numbers in their order.
template <std::unsigned_integral... Numbers>
[[nodiscard]] std::uint64_t hash_of(Numbers... numbers) {
  const std::uint64_t words[] = {std::uint64_t{numbers}...};
  return XXH3_64bits(words, sizeof words);
}

// The last step of splitmix64 (Steele, Lea, Flood 2014): a permutation of the 64-bit numbers. It
// seeds Random, and it draws simulated pages, planted noise and synthetic accesses. Measured
// figures depend on these. New code uses hash_of().
[[nodiscard]] constexpr std::uint64_t stirred(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace demarc
