// Tests that colours divide a page exactly.
#include "demarc/color/coloring.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "demarc/base/gf2.hpp"
#include "demarc/device/address_map.hpp"

namespace demarc::color {
namespace {

constexpr std::uint64_t page = 1U << 21U;

// A few independent masks inside a 64 KiB page, whose pivots lie at bit 8 or above.
std::vector<std::uint64_t> arbitrary_masks() {
  auto masks = *rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 8U));
  for (auto& mask : masks) mask <<= 8U;
  masks = gpu::low_pivot_basis(masks);
  if (masks.size() > 4) masks.resize(4);
  return masks;
}

RC_GTEST_PROP(Coloring, position_and_linear_are_inverse_on_every_colour, ()) {
  const auto masks = arbitrary_masks();
  const auto coloring = Coloring::make(masks, 1U << 16U).value();
  const auto color = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const auto constant = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const LinearByte linear(*rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40U));
  const auto position = coloring.position(linear, color, constant);
  RC_ASSERT(coloring.linear(position) == linear);
  RC_ASSERT(coloring.color(position, constant) == color);
}

RC_GTEST_PROP(Coloring, colours_partition_a_page_exactly, ()) {
  const auto masks = arbitrary_masks();
  constexpr std::uint64_t small_page = 1U << 16U;
  const auto coloring = Coloring::make(masks, small_page).value();
  const auto constant = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const std::uint64_t step = std::min<std::uint64_t>(coloring.chunk_bytes(), 256);
  std::vector<int> seen(small_page / step, 0);
  for (std::uint32_t color = 0; color < coloring.colors(); ++color) {
    for (std::uint64_t at = 0; at < small_page / coloring.colors(); at += step) {
      ++seen.at(coloring.position(LinearByte(at), color, constant).raw() / step);
    }
  }
  RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
}

RC_GTEST_PROP(Coloring, a_chunk_of_a_colour_is_contiguous, ()) {
  const auto coloring = Coloring::make(arbitrary_masks(), 1U << 16U).value();
  const auto color = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const auto k = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto inside = *rc::gen::inRange<std::uint64_t>(0, coloring.chunk_bytes());
  const auto start = coloring.chunk(k, color);
  RC_ASSERT(start.raw() % coloring.chunk_bytes() == 0U);
  const LinearByte linear(k * coloring.chunk_bytes() + inside);
  RC_ASSERT(coloring.position(linear, color) == start + inside);
}

TEST(Coloring, one_mask_gives_the_chunk_formula_of_its_lowest_bit) {
  constexpr std::uint64_t mask = 0xc4000;
  const auto coloring = Coloring::make(std::vector<std::uint64_t>{mask}, page).value();
  EXPECT_EQ(coloring.chunk_bytes(), 16384U);
  for (std::uint64_t k = 0; k < 300; ++k) {
    const std::uint64_t low = (k << 14U) & 0x3fffU;
    const std::uint64_t v = ((k >> 0U) << 15U) | low;
    for (const std::uint32_t constant : {0U, 1U}) {
      for (const std::uint32_t w : {0U, 1U}) {
        const ArenaByte expected(v + ((parity(v, mask) ^ constant ^ w) << 14U));
        EXPECT_EQ(coloring.chunk(k, w, constant), expected);
      }
    }
  }
}

TEST(Coloring, a_constant_follows_the_rows_that_make_up_a_mask) {
  const std::vector<std::uint64_t> rows{0x77000, 0xb3000, 0x11b800};
  const auto coloring = Coloring::make(std::vector<std::uint64_t>{0x77000 ^ 0xb3000}, page).value();
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b000).value(), 0U);
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b001).value(), 1U);
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b011).value(), 0U);
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b110).value(), 1U);
  const auto other = Coloring::make(std::vector<std::uint64_t>{0x100}, page).value();
  EXPECT_FALSE(other.constant_from_rows(rows, 0).has_value());
}

RC_GTEST_PROP(Coloring, constants_shift_the_colour_of_every_address, ()) {
  const auto masks = arbitrary_masks();
  const auto coloring = Coloring::make(masks, 1U << 16U).value();
  const gpu::LinearHash rows{masks};
  const auto constant = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const ArenaByte at(*rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 30U));
  // The page behaves as if an address bit above it were set that belongs to the rows of `constant`.
  const auto shifted = coloring.constant_from_rows(rows.rows, constant).value();
  RC_ASSERT(coloring.color(at, shifted) == (coloring.color(at) ^ shifted));
}

TEST(Coloring, dependent_masks_and_masks_beyond_a_page_are_refused) {
  const std::vector<std::uint64_t> dependent{0x3000, 0x5000, 0x6000};
  EXPECT_FALSE(Coloring::make(dependent, page).has_value());
  EXPECT_FALSE(Coloring::make(std::vector<std::uint64_t>{page}, page).has_value());
  EXPECT_TRUE(Coloring::make(std::vector<std::uint64_t>{page}, 0).has_value());
}

}  // namespace
}  // namespace demarc::color
