// Tests that digests are those of XXH3 and stay the same from version to version.
#include "demarc/base/hash.hpp"

#include <gtest/gtest.h>

#include <array>

namespace demarc {
namespace {

// The values that xxHash publishes: digests stay what they are from version to version.
TEST(Hash, values_are_those_of_xxh3) {
  EXPECT_EQ(hash_of(std::string_view()), 0x2d06800538d394c2U);
  EXPECT_EQ(hash_of(std::string_view("xxhash")), 0xaa4c2b42ae6b13deU);
}

TEST(Hash, numbers_are_digested_in_their_order_as_words_of_64_bits) {
  const std::array<std::uint64_t, 2> words{1, 2};
  EXPECT_EQ(hash_of(1U, 2U), hash_of(std::as_bytes(std::span(words))));
  EXPECT_NE(hash_of(1U, 2U), hash_of(2U, 1U));
  EXPECT_NE(hash_of(1U), hash_of(1U, 0U));
}

TEST(Hash, stirring_is_the_last_step_of_splitmix64) {
  EXPECT_EQ(stirred(0), 0U);
  EXPECT_EQ(stirred(0x9e3779b97f4a7c15U), 0xe220a8397b1dcdafU);
}

}  // namespace
}  // namespace demarc
