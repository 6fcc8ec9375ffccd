#include "demarc/gpu/remainder_coloring.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace demarc::gpu {
namespace {

using Window = RemainderColoring::Window;

std::vector<std::uint32_t> some_constants(std::size_t pages) {
  std::vector<std::uint32_t> constants;
  for (std::size_t p = 0; p < pages; ++p)
    constants.push_back(static_cast<std::uint32_t>(p * 29 % 64));
  return constants;
}

TEST(RemainderHash, every_number_of_an_h200_page_has_eight_chunks) {
  const RemainderHash hash = h200_remainders();
  EXPECT_EQ(hash.unit_bytes(), 2048U);
  std::vector<int> chunks(1024);
  for (std::uint64_t offset = 0; offset < hash.page_bytes; offset += 256) {
    ++chunks.at(hash.number(offset, 0x2b));
  }
  EXPECT_EQ(chunks, std::vector<int>(1024, 8));
}

// What was measured on a card: 256-byte chunks 0 and 2, and 0 and 0x14f, of a page are in one
// slice, chunks 0 and 1 are eight remainders apart.
TEST(RemainderHash, the_h200_constants_are_those_that_were_seen) {
  const RemainderHash hash = h200_remainders();
  EXPECT_EQ(hash.number(0x200, 0), hash.number(0, 0));
  EXPECT_EQ(hash.number(0x14f00, 0), hash.number(0, 0));
  EXPECT_EQ(hash.number(0x100, 0), 8U);
  EXPECT_EQ(hash.number(0x20000, 0) >> 6, 1U);
}

TEST(RemainderPatterns, masks_that_leave_bits_open_are_refused) {
  RemainderHash hash = h200_remainders();
  hash.free_bits = {0x200, 0x800, 0x10000};  // 0x10000 is determined by the digits and the others
  EXPECT_FALSE(remainder_patterns(hash));
  hash.free_bits = {0x200, 0x800};
  EXPECT_FALSE(remainder_patterns(hash));
}

RC_GTEST_PROP(RemainderColoring, every_byte_of_a_colour_has_a_remainder_of_its_window, ()) {
  const auto constants = some_constants(24);
  const auto split = *rc::gen::inRange(1U, 46U);
  const auto from = *rc::gen::inRange(0U, 47U);
  const auto coloring =
      RemainderColoring::make(h200_remainders(), {{from, split}, {(from + split) % 47, 47 - split}},
                              constants)
          .value();
  const auto color = *rc::gen::inRange(0U, 2U);
  const auto linear = *rc::gen::inRange<std::uint64_t>(0, coloring.color_bytes(color));
  const std::uint64_t at = coloring.position(linear, color);
  RC_ASSERT(at < 24 * coloring.hash().page_bytes);
  const std::uint64_t place = at / coloring.hash().page_bytes;
  const std::uint64_t number = place * 1024 + coloring.hash().number(at, constants[place]);
  const Window window = coloring.window(color);
  RC_ASSERT((number % 47 + 47 - window.first) % 47 < window.count);
  RC_ASSERT(at % 256 == linear % 256);
}

TEST(RemainderColoring, no_chunk_is_given_out_twice) {
  const auto coloring =
      RemainderColoring::make(h200_remainders(), {{40, 24}, {17, 23}}, some_constants(3)).value();
  std::set<std::uint64_t> seen;
  for (std::uint32_t color = 0; color < 2; ++color) {
    for (std::uint64_t linear = 0; linear < coloring.color_bytes(color); linear += 256) {
      EXPECT_TRUE(seen.insert(coloring.position(linear, color)).second);
    }
  }
  // All but what lies in the rounds of 47 numbers at the ends.
  EXPECT_GT(seen.size() * 256, 3 * (2U << 20U) * 95 / 100);
}

TEST(RemainderColoring, colours_that_overlap_are_refused) {
  const auto constants = some_constants(1);
  EXPECT_FALSE(RemainderColoring::make(h200_remainders(), {{0, 24}, {23, 23}}, constants));
  EXPECT_FALSE(RemainderColoring::make(h200_remainders(), {{0, 0}}, constants));
  EXPECT_FALSE(RemainderColoring::make(h200_remainders(), {{47, 1}}, constants));
}

}  // namespace
}  // namespace demarc::gpu
