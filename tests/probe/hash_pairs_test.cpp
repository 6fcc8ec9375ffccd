// What is made of times of pairs: thresholds, histograms, and how well predictions hold.
#include "hash_pairs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"

namespace demarc::probe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Confusion, both_predictions_count_the_same_however_many_there_were_of_each) {
  Confusion confusion;
  confusion.same_same = 30;
  confusion.same_other = 10;
  confusion.other_same = 1;
  confusion.other_other = 1;
  EXPECT_DOUBLE_EQ(confusion.agreement(), (0.75 + 0.5) / 2);
  EXPECT_EQ(Confusion{}.agreement(), 0);
  confusion.other_same = confusion.other_other = 0;
  EXPECT_EQ(confusion.agreement(), 0);
}

TEST(ConflictThreshold, lies_robust_deviations_above_the_median) {
  const std::vector<float> times{500, 510, 490, 900, 505, 495, 502};
  // The median is 502, the distances from it are 2, 8, 12, 398, 3, 7, 0: their median is 7.
  EXPECT_NEAR(conflict_threshold(times, 5), 502 + 5 * 1.4826 * 7, 1e-3);
  EXPECT_DOUBLE_EQ(conflict_threshold(std::vector<float>{500, 500, 500}, 4), 502);
}

TEST(HistogramOfTimes, counts_every_value_once_in_equal_bins) {
  const Histogram histogram = make_histogram(std::vector<float>{10, 10, 14, 19.5, 20}, 5);
  EXPECT_EQ(histogram.low, 10);
  EXPECT_EQ(histogram.bin_width, 2);
  EXPECT_THAT(histogram.counts, ElementsAre(2, 0, 1, 0, 2));
  EXPECT_THAT(make_histogram(std::vector<float>{7, 7}, 2).counts, ElementsAre(2, 0));
  EXPECT_THAT(make_histogram({}, 2).counts, ElementsAre(0, 0));
  EXPECT_TRUE(make_histogram(std::vector<float>{7}, 0).counts.empty());
}

MemoryFacts twenty_bits() {
  MemoryFacts facts;
  facts.address_bits = 20;
  facts.line_bytes = 128;
  return facts;
}

TEST(RandomLines, lie_in_the_memory_at_the_beginnings_of_lines) {
  Random random(1);
  std::uint64_t seen = 0;
  for (const std::uint64_t line : random_lines(twenty_bits(), 200, random)) {
    EXPECT_LT(line, 1U << 20U);
    EXPECT_EQ(line % 128, 0U);
    seen |= line;
  }
  EXPECT_EQ(seen, 0xfff80U);
}

TEST(AddressWithHash, has_the_hash_of_another_but_for_the_bits_to_flip) {
  const gpu::LinearHash hash{gpu::low_pivot_basis(std::vector<std::uint64_t>{0x10100, 0x2200})};
  for (std::uint32_t flip = 0; flip < 4; ++flip) {
    const std::uint64_t address = address_with_hash(0xabcd0, 0x12340, hash, flip);
    EXPECT_EQ(hash(address), hash(0x12340) ^ flip);
    EXPECT_EQ((address ^ 0xabcd0) & ~std::uint64_t{0x300}, 0U) << "only the lowest bits of rows";
  }
}

// A memory in which every second pair of lines of one colour is slow, and nothing else.
TEST(CollectAndSolve, says_how_few_conflicts_there_were_and_measures_no_more_than_it_may) {
  HashFinding finding;
  finding.what = "bank";
  Random random(1);
  std::size_t asked = 0;
  const TimeAgainst time = [&](std::span<const std::uint64_t> candidates) {
    asked += candidates.size();
    std::vector<float> times(candidates.size(), 500);
    if (candidates.size() == 8192) times[0] = 900;
    if (candidates.size() == 1) times[0] = 900;
    return Result<std::vector<float>>(times);
  };
  ASSERT_TRUE(collect_and_solve(twenty_bits(), 0, time, {}, 40'000, random, {}, finding));
  EXPECT_EQ(finding.measured, 5U * 8192);
  EXPECT_EQ(finding.pairs, 5U);
  EXPECT_TRUE(finding.hash.empty());
  EXPECT_EQ(finding.reason,
            "only 5 conflicts among 40960 pairs: nothing stands out above 502 cycles");
  EXPECT_EQ(asked, 5U * 8192 + 5 * 5);
  // Nothing is confirmed where nothing was found.
  ASSERT_TRUE(confirm(twenty_bits(), 0, time, {}, random, finding));
  EXPECT_FALSE(finding.decided);
  EXPECT_THAT(finding.reason, HasSubstr("only 5 conflicts"));
}

TEST(CollectAndSolve, a_function_that_chance_finds_is_not_one) {
  HashFinding finding;
  Random random(2);
  Random times_of(3);
  const TimeAgainst time = [&](std::span<const std::uint64_t> candidates) {
    std::vector<float> times(candidates.size(), 500);
    for (float& t : times) t = candidates.size() < 8192 || times_of.uniform() < 0.01 ? 900 : 500;
    return Result<std::vector<float>>(times);
  };
  ASSERT_TRUE(collect_and_solve(twenty_bits(), 0, time, {}, 100'000, random, {}, finding));
  EXPECT_GE(finding.pairs, 80U);
  EXPECT_TRUE(finding.hash.empty());
  EXPECT_THAT(finding.reason, HasSubstr("no linear function agrees with 75 % of the"));
}

}  // namespace
}  // namespace demarc::probe
