// Tests that the probe recovers planted hashes exactly, and tells when it cannot decide.
#include "demarc/probe/hash_finding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "demarc/base/gf2.hpp"
#include "kept.hpp"
#include "planted_memory.hpp"
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
  EXPECT_EQ(found.miss_registers.number, 16U) << found.miss_registers.reason;
  EXPECT_EQ(found.isolated, true);
  ASSERT_EQ(found.curves.size(), 6U);
  EXPECT_GT(found.curves[0].cycles.back(), 10 * found.curves[4].cycles.back());
}

// As planted, but the first address that anybody asks for has a knee of its own at 10 others.
class OneCrowdDisturbed final : public TimedMemory {
 public:
  explicit OneCrowdDisturbed(PlantedMemory& memory) : memory_(memory) {}
  [[nodiscard]] const MemoryFacts& facts() const override { return memory_.facts(); }
  Result<std::vector<float>> uncached_pairs(std::uint64_t primary,
                                            std::span<const std::uint64_t> secondaries) override {
    return memory_.uncached_pairs(primary, secondaries);
  }
  Result<std::vector<float>> reread(std::uint64_t first, std::span<const std::uint64_t> then,
                                    std::span<const std::uint64_t> candidates) override {
    return memory_.reread(first, then, candidates);
  }
  Result<float> crowded_read(std::uint64_t primary,
                             std::span<const std::uint64_t> secondaries) override {
    if (!first_) first_ = primary;
    const std::size_t others = secondaries.size();
    const bool disturbed = primary == *first_ && others > 10;
    auto cycles = memory_.crowded_read(primary, secondaries);
    if (cycles && disturbed) *cycles += 100.0F * static_cast<float>(others - 10);
    return cycles;
  }
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t> addresses,
                                           std::span<const gpu::SmIndex> sms,
                                           std::uint32_t together, std::uint32_t repeats) override {
    return memory_.hit_latencies(addresses, sms, together, repeats);
  }
  Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) override {
    return memory_.stream_seconds(victim, aggressor);
  }

 private:
  PlantedMemory& memory_;
  std::optional<std::uint64_t> first_;
};

TEST(HashFinding, one_crowd_that_meets_by_chance_does_not_hide_the_knee) {
  auto planted = planted_memory("gtx1080", 5).value();
  const auto& truth = planted->truth();
  OneCrowdDisturbed memory(*planted);
  Random random(5);
  const auto found = measure_module(memory, {gpu::low_pivot_basis(truth.bank.rows)},
                                    {gpu::low_pivot_basis(truth.set.rows)},
                                    {gpu::low_pivot_basis(truth.module.rows)}, random, {})
                         .value();
  EXPECT_EQ(found.miss_registers.number, 16U) << found.miss_registers.reason;
}

// 500 cycles up to `knee` other threads, `step` more for each further one.
std::vector<float> bent_curve(std::size_t knee, float step, std::size_t most = 64) {
  std::vector<float> cycles;
  for (std::size_t n = 0; n <= most; ++n) {
    const float jitter = n % 3 == 0 ? 1.0F : -1.0F;
    cycles.push_back(500 + jitter + step * static_cast<float>(n > knee ? n - knee : 0));
  }
  return cycles;
}

MissRegisters judged(std::vector<float> all, std::vector<float> half) {
  ModuleFinding finding;
  finding.curves = {{"DCDB", std::move(all)}, {"DCHB", std::move(half)}};
  return judge_miss_registers(finding);
}

TEST(MissRegisters, are_seen_where_the_knee_stays_with_half_of_the_banks) {
  for (const std::size_t half : {20U, 23U, 26U}) {
    const MissRegisters found = judged(bent_curve(23, 40), bent_curve(half, 40));
    EXPECT_EQ(found.number, 24U) << "the reader holds one too";
    EXPECT_NE(found.reason.find("a sharp knee at 24 threads"), std::string::npos);
  }
}

TEST(MissRegisters, are_not_seen_where_the_knee_moves_with_the_banks_or_is_gone) {
  for (const std::size_t half : {19U, 27U, 11U}) {
    const MissRegisters found = judged(bent_curve(23, 40), bent_curve(half, 40));
    EXPECT_EQ(found.number, 0U);
    EXPECT_EQ(found.reason,
              fmt::format(
                  "the knee lies at 24 threads, and at {} with half of the banks, so the registers "
                  "alone do not explain it",
                  half + 1));
  }
  EXPECT_EQ(judged(bent_curve(23, 40), bent_curve(64, 40)).number, 0U);
}

TEST(MissRegisters, are_not_seen_without_a_sharp_knee_that_has_points_enough_behind_it) {
  // 32 others leave 32 points behind the knee, 33 too few; a straight rise has none.
  EXPECT_EQ(find_knee(bent_curve(23, 40)), 23U);
  EXPECT_EQ(find_knee(bent_curve(32, 40)), 32U);
  EXPECT_FALSE(find_knee(bent_curve(33, 40)));
  EXPECT_FALSE(find_knee(bent_curve(64, 40)));
  EXPECT_FALSE(find_knee(bent_curve(0, 40)));
  const MissRegisters found = judged(bent_curve(60, 40), bent_curve(60, 40));
  EXPECT_EQ(found.number, 0U);
  EXPECT_NE(found.reason.find("up to 65 threads show no sharp knee"), std::string::npos);
}

// However little a thread adds: what counts is how much better two lines fit than one.
TEST(MissRegisters, are_seen_in_the_smallest_knee_without_noise) {
  std::vector<float> cycles;
  for (std::size_t n = 0; n <= 64; ++n) {
    cycles.push_back(500 + 0.0625F * static_cast<float>(n > 23 ? n - 23 : 0));
  }
  EXPECT_EQ(find_knee(cycles), 23U);
  EXPECT_FALSE(find_knee(std::vector<float>(65, 500)));
}

// Up to 0.3 of the next thread's rise is a sharp knee.
TEST(MissRegisters, are_not_seen_where_queues_round_the_knee_off) {
  std::vector<float> sharp = bent_curve(23, 40);
  for (std::size_t n = 24; n < sharp.size(); ++n) sharp[n] += 60;  // 100 more at 24 others
  std::vector<float> round = sharp;
  sharp[23] += 25;
  round[23] += 36;
  EXPECT_EQ(find_knee(sharp), 23U);
  EXPECT_FALSE(find_knee(round));
}

TEST(MissRegisters, are_not_seen_where_a_module_has_too_few_banks_to_halve) {
  ModuleFinding finding;
  finding.curves = {{"DCDB", bent_curve(23, 40)}};
  EXPECT_EQ(judge_miss_registers(finding).number, 0U);
  EXPECT_NE(judge_miss_registers(finding).reason.find("too few banks"), std::string::npos);
}

// A module of one bank leaves no other bank in it to read, and one module no other module.
TEST(MissRegisters, cases_that_the_hashes_rule_out_are_left_out_and_end) {
  auto memory = planted_memory("gtx1080", 5).value();
  const auto& truth = memory->truth();
  const gpu::LinearHash set{gpu::low_pivot_basis(truth.set.rows)};
  const gpu::LinearHash module{gpu::low_pivot_basis(truth.module.rows)};
  Random random(5);
  const auto one_bank = measure_module(*memory, module, set, module, random, {}).value();
  EXPECT_EQ(one_bank.miss_registers.number, 0U);
  for (const CrowdCurve& curve : one_bank.curves) {
    EXPECT_TRUE(curve.name != "SCDB" && curve.name != "DCDB" && curve.name != "DCHB") << curve.name;
  }
  const gpu::LinearHash bank{gpu::low_pivot_basis(truth.bank.rows)};
  const auto one_module = measure_module(*memory, bank, set, {}, random, {}).value();
  EXPECT_EQ(one_module.isolated, std::nullopt);
  for (const CrowdCurve& curve : one_module.curves) EXPECT_NE(curve.name, "DM");
}

// For 2^14 banks and 2^4 sets so few lines share one of each that chance does not find them.
TEST(MissRegisters, readers_of_one_set_and_one_bank_are_found_among_many_banks) {
  PlantedTruth truth;
  truth.facts.physical_addresses = true;
  truth.facts.address_bits = 34;
  truth.facts.sms = 4;
  for (unsigned bit = 10; bit < 24; ++bit) truth.bank.rows.push_back(std::uint64_t{1} << bit);
  truth.set.rows = {0x400, 0x4000000, 0x8000000, 0x10000000};
  truth.module.rows = {0x400};
  PlantedMemory memory(truth, 1);
  Random random(1);
  const auto found = measure_module(memory, truth.bank, truth.set, truth.module, random, {});
  ASSERT_TRUE(found);
  std::vector<std::string> names;
  for (const CrowdCurve& curve : found->curves) names.push_back(curve.name);
  EXPECT_EQ(names, (std::vector<std::string>{"SCSB", "DCSB", "SCDB", "DCDB", "DM", "DCHB"}));
}

// 500 cycles that bend around `knee`, over so many threads, to `step` more for each further one.
std::vector<float> rounded_curve(double knee, double softness, double step, Random& random) {
  std::vector<float> cycles;
  for (std::size_t n = 0; n <= 64; ++n) {
    const double beyond = static_cast<double>(n) - knee;
    const double rise =
        softness == 0 ? std::max(beyond, 0.0) : softness * std::log1p(std::exp(beyond / softness));
    cycles.push_back(static_cast<float>(500 + step * rise + 2 * random.uniform()));
  }
  return cycles;
}

// Where sharp knees end and round ones begin was fitted to simulated cards: it stays there.
TEST(MissRegisters, are_told_of_sharp_and_round_curves_as_kept) {
  std::string text = "knee of curves that bend at 3, 5, ... 33 threads, by how many they take\n";
  Random random(1);
  for (const double softness : {0.0, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0}) {
    for (const double step : {6.0, 40.0}) {
      text += fmt::format("{:3.1f}, {:2.0f} cycles each:", softness, step);
      for (double knee = 3; knee < 34; knee += 2) {
        const auto found = find_knee(rounded_curve(knee, softness, step, random));
        text += found ? fmt::format(" {}", *found) : " -";
      }
      text += "\n";
    }
  }
  text += "said of a knee at 23 others, and with half of the banks at\n";
  for (const std::size_t half : {1U, 2U, 3U, 19U, 20U, 26U, 27U, 60U, 61U, 62U, 63U}) {
    text += fmt::format("{}: {}\n", half, judged(bent_curve(23, 40), bent_curve(half, 40)).reason);
  }
  test::expect_kept("probe/golden/knees.txt", text);
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
  std::vector<std::uint64_t> agree;
  for (const auto difference : differences) {
    const auto odd = [&](std::uint64_t mask) { return parity(difference, mask) != 0; };
    if (std::none_of(planted.begin(), planted.end(), odd)) agree.push_back(difference);
  }
  EXPECT_EQ(found.inliers, agree.size());
  EXPECT_EQ(found.rank, gf2_rank(agree));
}

// For 80 differences 60 are three quarters, and 59 are not.
TEST(RobustMasks, agree_with_the_share_asked_for_and_no_less) {
  constexpr std::uint64_t columns = (1U << 20U) - 1;
  std::vector<std::uint64_t> planted;  // eight, each with a lowest bit of its own
  Random random(6);
  for (unsigned bit = 0; bit < 8; ++bit) planted.push_back(1U << bit | (random() & 0xfff00U));
  for (const std::size_t right : {59U, 60U}) {
    std::vector<std::uint64_t> differences;
    while (differences.size() < 80) {
      std::uint64_t difference = random() & columns;
      for (const std::uint64_t mask : planted) {
        if (parity(difference, mask) != 0) difference ^= mask & (~mask + 1);
      }
      if (differences.size() >= right) difference ^= 1 + random.below(255);  // at least one is odd
      differences.push_back(difference);
    }
    const auto found = robust_null_space(differences, columns, 0.75, random);
    // With 59 a smaller space, which more differences agree with, is all that can be said.
    EXPECT_EQ(gf2_same_space(found.masks, planted), right == 60);
    EXPECT_GE(found.inliers, 60U);
  }
}

INSTANTIATE_TEST_SUITE_P(RobustNullSpace, WrongDifferences, testing::Range(0, 20));

}  // namespace
}  // namespace demarc::probe
