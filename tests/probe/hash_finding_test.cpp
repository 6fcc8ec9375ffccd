#include "demarc/probe/hash_finding.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/gf2.hpp"
#include "demarc/probe/planted_memory.hpp"
#include "robust_null_space.hpp"

namespace demarc::probe {
namespace {

class PublishedHash : public testing::TestWithParam<const char*> {};

TEST_P(PublishedHash, bank_function_is_recovered_exactly_with_five_percent_false_pairs) {
  auto memory = planted_memory(GetParam(), 11).value();
  Random random(1);
  const auto found = find_bank_hash(*memory, {}, random, {}).value();
  EXPECT_TRUE(found.decided) << found.reason;
  EXPECT_TRUE(gf2_same_space(found.hash.rows, memory->truth().bank.rows));
  EXPECT_GT(found.wrong_pairs, 0U);
  EXPECT_GT(found.confusion.agreement(), 0.95);
}

TEST_P(PublishedHash, set_function_ways_and_modules_are_recovered_exactly) {
  auto truth = planted_truth(GetParam()).value();
  // A few ways are enough here: the chase grows by a cache for each.
  truth.ways = std::min(truth.ways, 16U);
  truth.facts.l2_bytes = std::min<std::uint64_t>(truth.facts.l2_bytes, 2U << 20U);
  PlantedMemory memory(truth, 12);
  Random random(2);
  const auto set = find_set_hash(memory, {}, random, {}).value();
  EXPECT_TRUE(set.decided) << set.reason;
  EXPECT_TRUE(gf2_same_space(set.hash.rows, truth.set.rows));
  EXPECT_EQ(set.ways, truth.ways);
  EXPECT_TRUE(gf2_same_space(gpu::common_masks(truth.bank.rows, set.hash.rows), truth.module.rows));
}

INSTANTIATE_TEST_SUITE_P(Cards, PublishedHash, testing::Values("gtx1080", "v100"),
                         [](const auto& name) { return std::string(name.param); });

TEST(HashFinding, says_that_it_cannot_decide_when_half_of_the_pairs_are_false) {
  auto truth = planted_truth("gtx1080").value();
  truth.noise.false_pairs = 0.5;
  PlantedMemory memory(truth, 4);
  Random random(4);
  const auto found = find_bank_hash(memory, {}, random, {}).value();
  EXPECT_FALSE(found.decided);
}

TEST(HashFinding, knee_of_the_module_is_its_number_of_miss_registers) {
  auto memory = planted_memory("gtx1080", 5).value();
  const auto& truth = memory->truth();
  Random random(5);
  const auto basis = [](const gpu::LinearHash& hash) {
    return gpu::LinearHash{gpu::low_pivot_basis(hash.rows)};
  };
  const auto found =
      measure_module(*memory, basis(truth.bank), basis(truth.set), basis(truth.module), random, {})
          .value();
  EXPECT_EQ(found.miss_registers, 16U);
  EXPECT_TRUE(found.isolated);
  ASSERT_EQ(found.curves.size(), 5U);
  EXPECT_GT(found.curves[0].cycles.back(), 10 * found.curves[4].cycles.back());
}

class WrongDifferences : public testing::TestWithParam<int> {};

TEST_P(WrongDifferences, do_not_hide_the_planted_masks) {
  Random random(static_cast<std::uint64_t>(GetParam()));
  constexpr std::uint64_t columns = (1U << 20U) - 1;
  std::vector<std::uint64_t> planted;
  for (int i = 0; i < 4; ++i) planted.push_back(random() & columns);
  planted = gpu::low_pivot_basis(planted);
  std::vector<std::uint64_t> differences;
  while (differences.size() < 80) {
    std::uint64_t difference = random() & columns;
    if (differences.size() % 10 != 0) {
      for (const auto mask : planted) {
        if (parity(difference, mask) != 0) difference ^= mask & (~mask + 1);
      }
    }
    differences.push_back(difference);
  }
  const auto found = robust_null_space(differences, columns, 0.75, random);
  EXPECT_TRUE(gf2_same_space(found.masks, planted));
  EXPECT_GE(found.inliers, 72U);
}

INSTANTIATE_TEST_SUITE_P(RobustNullSpace, WrongDifferences, testing::Range(0, 20));

}  // namespace
}  // namespace demarc::probe
