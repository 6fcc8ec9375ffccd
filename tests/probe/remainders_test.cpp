// Tests that planted remainders are found through wrong kinds and slices that look alike.
#include "demarc/probe/remainders.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "chunk_moves.hpp"
#include "demarc/base/gf2.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/base/random.hpp"
#include "demarc/color/remainder_coloring.hpp"
#include "demarc/device/device.hpp"
#include "kept.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint64_t chunk_bytes = 256;

// Slice of every chunk of a page: the parity of `half`, and the number's remainder.
std::vector<std::uint32_t> slices_of_page(const color::RemainderHash& hash, std::uint32_t constant,
                                          std::uint32_t remainder) {
  std::vector<std::uint32_t> slices;
  for (std::uint64_t at = 0; at < hash.page_bytes; at += chunk_bytes) {
    slices.push_back(parity(at, hash.half) * hash.modulus +
                     (hash.number(at, constant) + remainder) % hash.modulus);
  }
  return slices;
}

// The slices that each slice of the page may be taken for: the same for equal ones.
bool tells_the_same(const gpu::ModuloStage& stage, std::uint64_t half, std::uint32_t constant,
                    const std::vector<std::uint32_t>& slices) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const std::uint64_t at = i * chunk_bytes;
    std::uint64_t number = 0;
    for (std::size_t row = 0; row < stage.number.rows.size(); ++row) {
      number += std::uint64_t{parity(at, stage.number.rows[row]) ^ (constant >> row & 1U)} << row;
    }
    pairs.insert({slices[i], parity(at, half) * stage.modulus +
                                 static_cast<std::uint32_t>(number % stage.modulus)});
  }
  return pairs.size() == 2 * std::size_t{stage.modulus};
}

// As measured: pairs of slices that look alike, and a share of wrong kinds.
std::vector<std::uint32_t> disturbed_page(const color::RemainderHash& hash, std::uint32_t constant,
                                          std::uint32_t remainder, std::uint32_t twins,
                                          std::uint64_t seed) {
  auto kinds = slices_of_page(hash, constant, remainder);
  for (std::uint32_t t = 0; t < twins; ++t) {
    const std::uint32_t of = 13 * t;  // a slice, and the one two further
    for (auto& kind : kinds) kind = kind == of + 2 ? of : kind;
  }
  Random random(seed);
  for (auto& kind : kinds) {
    if (random.uniform() < 0.005) kind = kinds[random.below(kinds.size())];
  }
  return kinds;
}

// Whatever a page adds, twins that look alike and a share of wrong kinds: the hash of an H200 comes
// out to the bit.
RC_GTEST_PROP(Remainders, of_an_h200_page_are_found, ()) {
  const color::RemainderHash hash = color::h200_remainders();
  const auto constant = *rc::gen::inRange(0U, 64U);
  const auto remainder = *rc::gen::inRange(0U, 47U);
  const auto twins = *rc::gen::inRange(0U, 7U);
  const auto kinds = disturbed_page(hash, constant, remainder, twins, *rc::gen::inRange(1U, 1000U));
  const std::uint64_t halves[] = {hash.half};
  const auto found = find_remainders(kinds, halves, chunk_bytes);
  RC_ASSERT(found.has_value());
  RC_ASSERT(found->slices == 94U);
  RC_ASSERT(found->agreement > 0.98);
  const auto again = color::remainder_hash(found->stage, hash.half, hash.page_bytes, chunk_bytes);
  RC_ASSERT(static_cast<bool>(again));
  RC_ASSERT(again->modulus == 47U);
  RC_ASSERT(again->block_shift == hash.block_shift);
  RC_ASSERT(again->digits == hash.digits);
}

// A page in which the slices that go to four places, twins, would outvote the mask of a digit.
TEST(Remainders, twins_have_no_say_in_the_masks_of_digits) {
  const color::RemainderHash hash = color::h200_remainders();
  const std::uint64_t halves[] = {hash.half};
  const auto found = find_remainders(disturbed_page(hash, 40, 25, 5, 2), halves, chunk_bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->slices, 94U);
}

// Other moduli, other digits: nothing of an H200 is built in.
TEST(Remainders, of_other_hashes_are_found) {
  for (const std::uint32_t modulus : {3U, 7U, 11U, 23U, 31U}) {
    color::RemainderHash hash = color::h200_remainders();
    hash.modulus = modulus;
    hash.digits[1] ^= 0x180000;
    const std::uint32_t constant = 0x15;
    const auto slices = slices_of_page(hash, constant, 2);
    const std::uint64_t halves[] = {hash.half};
    const auto found = find_remainders(slices, halves, chunk_bytes);
    ASSERT_TRUE(found) << modulus;
    EXPECT_EQ(found->stage.modulus, modulus);
    EXPECT_EQ(found->slices, 2 * modulus);
    EXPECT_GT(found->agreement, 0.999);
    bool some = false;
    for (std::uint32_t page = 0; page < 1024 && !some; ++page) {
      some = tells_the_same(found->stage, hash.half, page, slices);
    }
    EXPECT_TRUE(some) << modulus;
  }
}

TEST(Remainders, are_not_found_where_there_are_none) {
  Random random(3);
  std::vector<std::uint32_t> linear;
  std::vector<std::uint32_t> noise;
  for (std::uint32_t i = 0; i < 8192; ++i) {
    linear.push_back(parity(i, 0x1511) + 2 * parity(i, 0xab0) + 4 * parity(i, 0x1924));
    noise.push_back(static_cast<std::uint32_t>(random.below(47)));
  }
  EXPECT_FALSE(find_remainders(linear, {}, chunk_bytes));
  EXPECT_FALSE(find_remainders(noise, {}, chunk_bytes));
  EXPECT_FALSE(find_remainders({}, {}, chunk_bytes));
}

std::string digest(const Labels& labels) {
  return fmt::format("{} labels {:016x}", label_count(labels),
                     hash_of(std::as_bytes(std::span(labels))));
}

// Every step on the way to the remainders of a page.
std::string steps_of_page(const std::vector<std::uint32_t>& kinds, std::uint64_t half) {
  const std::uint32_t halves[] = {static_cast<std::uint32_t>(half / chunk_bytes)};
  const ChunkMoves moves = find_moves(kinds, halves);
  std::string text = "flip of the half:";
  for (const std::uint32_t flip : moves.half_flips) text += fmt::format(" {:#x}", flip);
  text += "\ndigits, as pattern and mask:";
  for (const Digit& digit : moves.digits) {
    text += fmt::format(" {:#x}/{:#x}", digit.pattern, digit.mask);
  }
  text += "\ntwins apart: " + digest(split_twins(kinds, moves.digits)) + "\n";
  const std::uint64_t masks[] = {half};
  const auto found = find_remainders(kinds, masks, chunk_bytes, 0.5);
  if (!found) return text + "no remainders\n";
  text += fmt::format("{} slices modulo {}, agreement {:.6f}, number:", found->slices,
                      found->stage.modulus, found->agreement);
  for (const std::uint64_t row : found->stage.number.rows) text += fmt::format(" {:#x}", row);
  return text + "\n";
}

// What chance does in between decides nothing, but a step that goes another way is seen.
TEST(Remainders, are_found_step_by_step_as_kept) {
  std::string text;
  for (const std::uint32_t modulus : {47U, 9U}) {
    color::RemainderHash hash = color::h200_remainders();
    hash.modulus = modulus;
    for (const std::uint32_t twins : {0U, modulus == 47 ? 6U : 1U}) {
      text += fmt::format("modulo {}, {} twins\n", modulus, twins);
      text += steps_of_page(disturbed_page(hash, 40, modulus / 2, twins, 2), hash.half);
    }
  }
  test::expect_kept("probe/golden/remainders.txt", text);
}

// What the descriptions of the cards say is what the colouring uses.
TEST(Remainders, the_description_of_an_h200_names_the_measured_ones) {
  const auto device = gpu::find_device("h200").value();
  ASSERT_TRUE(device.address_map && device.address_map->stack);
  const auto hash =
      color::remainder_hash(*device.address_map->stack, device.address_map->module.rows.at(0),
                            device.address_map->page_bytes, chunk_bytes);
  ASSERT_TRUE(hash);
  EXPECT_EQ(hash->digits, color::h200_remainders().digits);
  EXPECT_EQ(hash->half, color::h200_remainders().half);
  EXPECT_EQ(hash->block_shift, color::h200_remainders().block_shift);
}

}  // namespace
}  // namespace demarc::probe
