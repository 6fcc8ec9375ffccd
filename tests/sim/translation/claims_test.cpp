// The claims of the study are findings: other counters would refute each of them.
#include <gtest/gtest.h>

#include <map>

#include "demarc/base/random.hpp"
#include "demarc/sim/translation/study.hpp"

namespace demarc::sim::translation {
namespace {

// Counters as an architecture must have them, whatever the application does: without a GMMU every
// miss of the L2 TLB goes to the IOMMU, with one what it lacks.
Summary any_summary(Architecture architecture, Random& random) {
  Summary s;
  s.cycles = Cycles(1 + random.below(1'000'000));
  s.lines = s.l1_tlb.hits = 1'000'000;
  s.l2_tlb.misses = 1 + random.below(500'000);
  if (architecture != Architecture::centralised) {
    s.gmmu_walks = s.l2_tlb.misses;
    s.gmmu_hits = random.below(s.gmmu_walks + 1);
  }
  s.iommu_accesses = s.l2_tlb.misses - s.gmmu_hits;
  return s;
}

Comparison any_comparison(Random& random) {
  Comparison comparison;
  comparison.architectures = {Architecture::centralised, Architecture::distributed,
                              Architecture::bypass};
  for (const ApplicationInfo& info : application_table()) {
    ApplicationResult app{std::string(info.name), {}, 1};
    for (const Architecture architecture : comparison.architectures)
      app.summaries.push_back(any_summary(architecture, random));
    comparison.apps.push_back(std::move(app));
  }
  return comparison;
}

TEST(TranslationClaims, none_holds_whatever_is_counted) {
  Random random(7);
  std::map<std::string, int> refuted;
  for (int i = 0; i < 50; ++i) {
    for (const Claim& claim : claims_of(any_comparison(random)))
      refuted[claim.name] += claim.holds() ? 0 : 1;
  }
  EXPECT_EQ(refuted.size(), 15U);
  for (const auto& [name, count] : refuted) EXPECT_GT(count, 0) << name;
}

constexpr const char* kept_figures = R"(D over C, mean of all: 1.4671 of 1.7 to 2.4, 2 digits
KM: D over C: 0.33996 of 3.5 to 6, 2 digits
ST: D over C: 1.0655 of 3.5 to 6.5, 2 digits
RL, FIR, MP: D over C, least: 0.37109 of 0.85 to 1, 2 digits
RL, FIR, MP: D over C, most: 5.5756 of 0.85 to 1, 2 digits
PR, MT, FFT: D over C, least: 0.51652 of 1 to inf, 2 digits
AES: D over C: 2.0146 of 0.95 to 1.05, 2 digits
MT, KM, FFT, ST: fewer IOMMU accesses, mean, %: -94.764 of 60 to 75, 1 digits
ST: fewer IOMMU accesses, %: -9.2927 of 85 to 100, 1 digits
RL, FIR, MP: walks D/C, least: 0.91051 of 1.98 to 2.02, 2 digits
walks D/C, mean of all: 9.0132 of 1.5 to 1.8, 2 digits
TLB-hit shares differ by at most, points: 45.378 of 0 to 2, 2 digits
L2-TLB misses of C and D differ by at most, %: 3204.3 of 0 to 5, 1 digits
bypass against the better of C and D, least: 0.19974 of 0.98 to inf, 3 digits
bypass over the better mean of C and D: 1.7448 of 1 to inf, 3 digits
D over C, mean of all: 7.048 of 1.7 to 2.4, 2 digits
KM: D over C: 2.6177 of 3.5 to 6, 2 digits
ST: D over C: 0.45019 of 3.5 to 6.5, 2 digits
RL, FIR, MP: D over C, least: 0.99817 of 0.85 to 1, 2 digits
RL, FIR, MP: D over C, most: 1.7154 of 0.85 to 1, 2 digits
PR, MT, FFT: D over C, least: 0.36548 of 1 to inf, 2 digits
AES: D over C: 0.11814 of 0.95 to 1.05, 2 digits
MT, KM, FFT, ST: fewer IOMMU accesses, mean, %: 49.467 of 60 to 75, 1 digits
ST: fewer IOMMU accesses, %: 73.048 of 85 to 100, 1 digits
RL, FIR, MP: walks D/C, least: 0.05336 of 1.98 to 2.02, 2 digits
walks D/C, mean of all: 2.8099 of 1.5 to 1.8, 2 digits
TLB-hit shares differ by at most, points: 39.119 of 0 to 2, 2 digits
L2-TLB misses of C and D differ by at most, %: 652.72 of 0 to 5, 1 digits
)";

TEST(TranslationClaims, figures_of_made_up_counters_are_what_they_were) {
  Random random(19);
  std::string found;
  for (int i = 0; i < 2; ++i) {
    Comparison comparison = any_comparison(random);
    if (i == 1) comparison.architectures.pop_back();
    for (const Claim& claim : claims_of(comparison))
      found += fmt::format("{}: {:.5g} of {:g} to {:g}, {} digits\n", claim.name, claim.ours,
                           claim.low, claim.high, claim.decimals);
  }
  EXPECT_EQ(found, kept_figures);
}

TEST(TranslationClaims, misses_of_the_l2_tlb_are_the_same_within_five_per_cent) {
  Random random(7);
  Comparison comparison = any_comparison(random);
  const auto judged = [&](std::uint64_t misses_of_st) {
    for (ApplicationResult& app : comparison.apps) {
      app.summaries[0].l2_tlb.misses = 1000;
      app.summaries[1].l2_tlb.misses = app.name == "ST" ? misses_of_st : 1000;
    }
    for (const Claim& claim : claims_of(comparison)) {
      if (claim.name == "L2-TLB misses of C and D differ by at most, %") return claim;
    }
    ADD_FAILURE();
    return Claim{};
  };
  EXPECT_TRUE(judged(1049).holds());
  EXPECT_FALSE(judged(1051).holds());
  EXPECT_TRUE(judged(951).holds());
  EXPECT_FALSE(judged(949).holds());
  EXPECT_NEAR(judged(1159).ours, 15.9, 1e-9);
}

}  // namespace
}  // namespace demarc::sim::translation
