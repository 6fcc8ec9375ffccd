// Much is tried before nothing is found.
#include "demarc/probe/hash_finding.hpp"

#include <gtest/gtest.h>

#include "planted_memory.hpp"
#include "robust_null_space.hpp"

namespace demarc::probe {
namespace {

TEST(HashFinding, says_that_it_cannot_decide_when_conflicts_drown_in_jitter) {
  auto truth = planted_truth("gtx1080").value();
  truth.noise.jitter_cycles = 200;
  PlantedMemory memory(truth, 3);
  Random random(3);
  HashOptions options;
  const auto found = find_bank_hash(memory, options, random, {}).value();
  EXPECT_FALSE(found.decided);
  EXPECT_FALSE(found.reason.empty());
}

TEST(RobustNullSpace, random_differences_have_no_masks) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    std::vector<std::uint64_t> differences(100);
    for (auto& difference : differences) difference = random() & 0xfffffU;
    EXPECT_TRUE(robust_null_space(differences, 0xfffffU, 0.75, random).masks.empty());
  }
}

}  // namespace
}  // namespace demarc::probe
