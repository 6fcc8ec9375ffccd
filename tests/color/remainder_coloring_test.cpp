// Tests that every byte of a colour has a remainder of its window, as device code finds it.
#include "demarc/color/remainder_coloring.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace demarc::color {
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
  hash.free_bits = {0x200, 0x1000};
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
  const std::uint64_t at = coloring.position(LinearByte(linear), color).raw();
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
      EXPECT_TRUE(seen.insert(coloring.position(LinearByte(linear), color).raw()).second);
    }
  }
  // All but what lies in the rounds of 47 numbers at the ends.
  EXPECT_GT(seen.size() * 256, 3 * (2U << 20U) * 95 / 100);
}

// What device code does, as RemainderSteps says it.
std::uint64_t stepped(const RemainderSteps& steps, const std::vector<std::byte>& table,
                      std::uint64_t linear) {
  const auto entry = [&table]<class T>(std::size_t at, T value) {
    std::memcpy(&value, table.data() + at, sizeof value);
    return value;
  };
  const auto v =
      std::min(static_cast<std::uint32_t>((linear >> steps.chunk_shift) + steps.begin), steps.end);
  const std::uint32_t round =
      static_cast<std::uint32_t>(std::uint64_t{v} * steps.reciprocal >> 32U) >>
      steps.reciprocal_shift;
  const std::uint32_t c = v + round * steps.skipped;
  const std::uint32_t low =
      static_cast<std::uint32_t>(entry(2 * std::size_t{c % 256}, std::uint16_t{0})) ^
      static_cast<std::uint32_t>(entry(512 + 2 * std::size_t{c / 256 % 256}, std::uint16_t{0})) ^
      entry(steps.pages_at + std::size_t{c >> steps.page_shift}, std::uint8_t{0});
  const std::uint32_t chunk = (c >> steps.pattern_bits << steps.pattern_bits) ^ low;
  // From the arena's first page on: what lies in front of it is beyond 2^63.
  return ((std::uint64_t{chunk} << steps.chunk_shift) | (linear % (1U << steps.chunk_shift))) -
         (std::uint64_t{steps.first_page} << (steps.page_shift + steps.chunk_shift));
}

TEST(RemainderSteps, find_every_chunk_of_64_pages) {
  for (const Window window : {Window{24, 23}, Window{0, 24}, Window{36, 12}}) {
    const auto coloring =
        RemainderColoring::make(h200_remainders(), {window}, some_constants(64)).value();
    const RemainderSteps steps = coloring.steps(0).value();
    const std::vector<std::byte> table = coloring.table();
    for (std::uint64_t linear = 0; linear < coloring.color_bytes(0); linear += 256) {
      const ArenaByte at = coloring.position(LinearByte(linear + 77), 0);
      ASSERT_EQ(stepped(steps, table, linear + 77), at.raw()) << linear;
    }
  }
}

RC_GTEST_PROP(RemainderSteps, find_chunks_whatever_the_pages_and_lead_outside_behind_them, ()) {
  const auto constants =
      *rc::gen::container<std::vector<std::uint32_t>>(64, rc::gen::inRange(0U, 64U));
  const Window window{*rc::gen::inRange(0U, 47U), *rc::gen::inRange(1U, 48U)};
  const auto coloring = RemainderColoring::make(h200_remainders(), {window}, constants).value();
  const RemainderSteps steps = coloring.steps(0).value();
  const std::vector<std::byte> table = coloring.table();
  const std::uint64_t arena = 64 * coloring.hash().page_bytes;
  for (int i = 0; i < 20; ++i) {
    const auto linear = *rc::gen::inRange<std::uint64_t>(0, coloring.color_bytes(0));
    RC_ASSERT(stepped(steps, table, linear) == coloring.position(LinearByte(linear), 0).raw());
  }
  const std::uint64_t last = steps.end - steps.begin - 1;
  RC_ASSERT(stepped(steps, table, last * 256) < arena);
  for (const std::uint64_t behind : {last + 1, last + 2, std::uint64_t{1} << 31U}) {
    const std::uint64_t at = stepped(steps, table, behind * 256);
    RC_ASSERT(at >= arena && at < arena + coloring.hash().page_bytes);
  }
}

// Up to the last chunk, whatever the window and the number of pages.
TEST(RemainderSteps, divide_exactly) {
  for (const std::size_t pages : {1U, 700U, 30000U, 1U << 17U}) {
    const std::vector<std::uint32_t> constants(pages);
    for (std::uint32_t count = 1; count <= 47; ++count) {
      const auto coloring =
          RemainderColoring::make(h200_remainders(), {{47 - count, count}}, constants).value();
      const RemainderSteps steps = coloring.steps(0).value();
      const std::uint64_t round = std::uint64_t{8} * count;
      const std::uint64_t stride = std::max<std::uint64_t>(1, steps.end / round / 500);
      for (std::uint64_t rounds = steps.end / round; rounds >= stride; rounds -= stride) {
        for (const std::uint64_t v : {rounds * round - 1, rounds * round}) {
          ASSERT_EQ((v * steps.reciprocal >> 32U) >> steps.reciprocal_shift, v / round) << count;
        }
      }
    }
  }
}

// What lies in front of the window is in front of the arena, or of the colour's on the first page.
TEST(RemainderSteps, in_front_of_the_window_reach_no_other_colour) {
  const auto constants = some_constants(3);
  const auto coloring = RemainderColoring::make(h200_remainders(), {{24, 23}}, constants).value();
  const RemainderSteps steps = coloring.steps(0).value();
  const std::vector<std::byte> table = coloring.table();
  std::uint64_t inside = 0;
  for (std::uint64_t before = 1; before <= steps.begin; ++before) {
    const std::uint64_t at = stepped(steps, table, std::uint64_t{0} - before * 256);
    if (at >= 0U - std::uint64_t{47} * coloring.hash().page_bytes) continue;
    ++inside;
    ASSERT_LT(at, coloring.hash().page_bytes);
    ASSERT_GE(coloring.hash().number(at, constants[0]) % 47, 24U);
  }
  EXPECT_LT(inside, 24U * 8U);
  EXPECT_GT(steps.first_page, 0U);
}

TEST(RemainderSteps, of_no_pages_lead_outside_from_the_first_chunk_on) {
  const auto coloring = RemainderColoring::make(h200_remainders(), {{40, 7}}, {}).value();
  const RemainderSteps steps = coloring.steps(0).value();
  EXPECT_EQ(steps.begin, steps.end);
  EXPECT_LT(stepped(steps, coloring.table(), 0), coloring.hash().page_bytes);
}

// For tables that device code reads by 8 bits.
TEST(RemainderSteps, of_digits_that_change_higher_bits_are_refused) {
  RemainderHash hash = h200_remainders();
  hash.free_bits = {0x200, 0x800, 0x1000};
  const auto refused = RemainderColoring::make(hash, {{0, 24}}, some_constants(1)).value().steps(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
}

// The page behind an arena, as the colouring would have it if it were of the arena.
TEST(RemainderChunks, of_a_window_are_those_that_its_colour_has) {
  auto constants = some_constants(4);
  const auto arena = RemainderColoring::make(h200_remainders(), {{30, 11}}, constants).value();
  std::set<std::uint64_t> chunks;
  for (std::uint64_t linear = 0; linear < arena.color_bytes(0); linear += 256) {
    chunks.insert(arena.position(LinearByte(linear), 0).raw() / 256);
  }
  for (const std::uint64_t place : {1U, 2U}) {  // the first and the last lack rounds
    const auto own = own_chunks(h200_remainders(), {30, 11}, place, constants[place]);
    ASSERT_EQ(own.size(), 8192U);
    for (std::uint64_t chunk = 0; chunk < 8192; ++chunk) {
      ASSERT_EQ(own[chunk], chunks.contains(place * 8192 + chunk)) << chunk;
    }
  }
}

TEST(RemainderHash, of_a_stage_leaves_the_highest_bits_free) {
  const RemainderHash measured = h200_remainders();
  gpu::ModuloStage stage;
  stage.modulus = measured.modulus;
  stage.number.rows = measured.digits;
  for (std::uint64_t bit = measured.block_bytes(); bit < measured.page_bytes; bit *= 2) {
    stage.number.rows.push_back(bit);
  }
  const auto hash = remainder_hash(stage, measured.half, measured.page_bytes, 256).value();
  EXPECT_EQ(hash.digits, measured.digits);
  EXPECT_EQ(hash.block_shift, measured.block_shift);
  EXPECT_EQ(hash.free_bits, measured.free_bits);
}

TEST(RemainderSteps, of_an_even_modulus_are_refused) {
  RemainderHash hash = h200_remainders();
  hash.modulus = 46;
  const auto refused = RemainderColoring::make(hash, {{1, 20}}, some_constants(1)).value().steps(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_TRUE(RemainderColoring::make(hash, {{0, 20}}, some_constants(1)).value().steps(0));
}

TEST(RemainderSteps, of_an_arena_beyond_256_gib_are_refused) {
  RemainderHash hash = h200_remainders();
  const auto fits = [&hash](std::size_t pages) {
    return RemainderColoring::make(hash, {{0, 24}}, std::vector<std::uint32_t>(pages))
        .value()
        .steps(0);
  };
  constexpr std::size_t most = std::size_t{1} << 17U;
  EXPECT_TRUE(fits(most));
  const auto refused = fits(most + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
}

TEST(RemainderColoring, colours_that_overlap_are_refused) {
  const auto constants = some_constants(1);
  EXPECT_FALSE(RemainderColoring::make(h200_remainders(), {{0, 24}, {23, 23}}, constants));
  EXPECT_FALSE(RemainderColoring::make(h200_remainders(), {{0, 0}}, constants));
  EXPECT_FALSE(RemainderColoring::make(h200_remainders(), {{47, 1}}, constants));
}

}  // namespace
}  // namespace demarc::color
