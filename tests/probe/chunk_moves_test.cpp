// Moves of chunks on pages so small that every digit can be named.
#include "chunk_moves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"
#include "demarc/base/random.hpp"

namespace demarc::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Chunk i of 2^bits lies in slice i modulo `modulus`; `halves` more where that bit is set.
Labels counted_slices(std::uint32_t bits, std::uint32_t modulus, std::uint32_t half_bit = 0) {
  Labels labels;
  for (std::uint32_t i = 0; i < 1U << bits; ++i) {
    labels.push_back(i % modulus + ((i & half_bit) != 0 ? modulus : 0));
  }
  return labels;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> digits_of(const ChunkMoves& moves) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> digits;
  for (const Digit& digit : moves.digits) digits.emplace_back(digit.pattern, digit.mask);
  return digits;
}

TEST(ChunkMoves, of_a_remainder_are_the_digits_of_its_number) {
  for (const std::uint32_t modulus : {3U, 5U, 7U}) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> bits;
    for (std::uint32_t bit = 1; bit < 1U << 9U; bit *= 2) bits.emplace_back(bit, bit);
    EXPECT_EQ(digits_of(find_moves(counted_slices(9, modulus), {})), bits) << modulus;
  }
}

TEST(ChunkMoves, of_a_constant_are_its_flip_and_no_digit) {
  // Bit 5 counts 32, which is 2 modulo 5, and tells the half.
  const std::uint32_t constants[] = {0x20};
  const ChunkMoves moves = find_moves(counted_slices(9, 5, 0x20), constants);
  EXPECT_THAT(moves.half_flips, ElementsAre(0x20U));
  EXPECT_THAT(digits_of(moves),
              ElementsAre(Pair(1, 1), Pair(2, 2), Pair(4, 4), Pair(8, 8), Pair(16, 16),
                          Pair(64, 64), Pair(128, 128), Pair(256, 256)));
}

// Two digits of one weight, both of which pattern 1 flips: half of the chunks stay, a quarter goes
// each way, and that is not a digit.
TEST(ChunkMoves, to_three_places_are_no_digit) {
  Labels labels;
  for (std::uint32_t i = 0; i < 1024; ++i) labels.push_back((parity(i, 3) + (i & 1U) + i / 4) % 5);
  EXPECT_THAT(
      digits_of(find_moves(labels, {})),
      ElementsAre(Pair(2, 3), Pair(3, 1), Pair(4, 4), Pair(8, 8), Pair(16, 16), Pair(32, 32),
                  Pair(64, 64), Pair(128, 128), Pair(256, 256), Pair(512, 512)));
}

// For the first `chunks` chunks the remainder is known, of the others nothing.
Labels known_part(std::uint32_t chunks, std::uint32_t modulus) {
  Labels labels = counted_slices(10, modulus);
  Random random(1);
  for (std::uint32_t i = chunks; i < labels.size(); ++i) {
    labels[i] = modulus + static_cast<std::uint32_t>(random.below(modulus));
  }
  return labels;
}

TEST(ChunkMoves, of_a_quarter_of_a_page_are_not_those_of_the_page) {
  EXPECT_THAT(find_moves(known_part(256, 5), {}).digits, IsEmpty());
  const std::uint32_t constants[] = {0x80};
  Labels labels = known_part(256, 5);
  for (std::uint32_t i = 0; i < labels.size(); ++i) {
    if ((i & 0x80U) != 0) labels[i] = i < 256 ? labels[i - 0x80] + 10 : labels[i] + 10;
  }
  EXPECT_THAT(find_moves(labels, constants).half_flips, ElementsAre(0U));
}

TEST(ChunkMoves, of_half_a_page_are_those_of_the_page) {
  EXPECT_EQ(find_moves(known_part(512, 5), {}).digits.size(), 9U);
  EXPECT_THAT(find_moves(known_part(511, 5), {}).digits, IsEmpty());
}

TEST(ChunkMoves, of_no_chunks_and_of_noise_are_none) {
  EXPECT_THAT(find_moves({}, {}).digits, IsEmpty());
  EXPECT_EQ(label_count({}), 0U);
  EXPECT_EQ(label_count({0, 4, 2}), 5U);
  Labels noise(512);
  Random random(2);
  for (auto& label : noise) label = static_cast<std::uint32_t>(random.below(5));
  EXPECT_THAT(find_moves(noise, {}).digits, IsEmpty());
}

// Slice 5 of 7 looks like another one: together they are one label of twice the usual size.
TEST(SplitTwins, tells_two_slices_apart_by_where_their_chunks_move) {
  const Labels truth = counted_slices(11, 7);
  const ChunkMoves moves = find_moves(truth, {});
  EXPECT_EQ(split_twins(truth, moves.digits), truth) << "nobody is twice as large";
  for (std::uint32_t twin = 0; twin < 5; ++twin) {
    Labels alike = truth;
    for (auto& label : alike) {
      if (label == 5) label = twin;
      if (label == 6) label = 5;
    }
    ASSERT_EQ(label_count(alike), 6U);
    const Labels apart = split_twins(alike, moves.digits);
    EXPECT_EQ(label_count(apart), 7U) << twin;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      for (const std::size_t j : {i / 2, i / 3}) {
        ASSERT_EQ(apart[i] == apart[j], truth[i] == truth[j]) << twin << ": " << i << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace demarc::probe
