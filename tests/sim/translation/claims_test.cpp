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
  s.lines = s.l1_tlb.hits = 600'000;
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
  EXPECT_EQ(refuted.size(), 18U);
  for (const auto& [name, count] : refuted) EXPECT_GT(count, 0) << name;
}

constexpr const char* kept_figures =
    R"(D over C, mean of all: 1.4671 of 1.80 to 2.20, 2 digits
KM: D over C: 0.33996 of 4.33 to 5.29, 2 digits
ST: D over C: 1.0655 of 4.66 to 5.70, 2 digits
RL, FIR, MP: C ahead by, mean, %: -120.66 of 7.2 to 8.8, 1 digits
RL, FIR, MP: C ahead by, least, %: -457.56 of 1.0 or more, 1 digits
PR, MT, KM, FFT, ST: D over C, least: 0.33996 of 1.01 or more, 2 digits
TLB-hit shares of C and D differ by at most, points: 75.63 of 0.0 to 2.0, 1 digits
TLB hits, least, %: 18.778 of 50.0 to 100.0, 1 digits
FIR, MP, AES, FFT: TLB hits, least, %: 18.778 of 98.0 to 100.0, 1 digits
MT, KM, FFT, ST: fewer IOMMU accesses, mean, %: -94.764 of 61.5 to 75.1, 1 digits
ST: fewer IOMMU accesses, %: -9.2927 of 81.0 to 99.0, 1 digits
RL, FIR, MP: L2-TLB misses that go to the IOMMU, least, %: 23.337 of 90.0 to 100.0, 1 digits
RL, FIR, MP: walks D/C, least: 0.91051 of 1.80 to 2.20, 2 digits
more walks in D, mean of all, %: 801.32 of 60 to 74, 0 digits
AES: D over C: 2.0146 of 0.95 to 1.05, 2 digits
L2-TLB misses of C and D differ by at most, %: 3204.3 of 0.0 to 5.0, 1 digits
bypass against the better of C and D, least: 0.19974 of 0.980 or more, 3 digits
bypass over the better mean of C and D: 1.7448 of 1.000 or more, 3 digits
D over C, mean of all: 7.048 of 1.80 to 2.20, 2 digits
KM: D over C: 2.6177 of 4.33 to 5.29, 2 digits
ST: D over C: 0.45019 of 4.66 to 5.70, 2 digits
RL, FIR, MP: C ahead by, mean, %: -24.518 of 7.2 to 8.8, 1 digits
RL, FIR, MP: C ahead by, least, %: -71.54 of 1.0 or more, 1 digits
PR, MT, KM, FFT, ST: D over C, least: 0.36548 of 1.01 or more, 2 digits
TLB-hit shares of C and D differ by at most, points: 65.198 of 0.0 to 2.0, 1 digits
TLB hits, least, %: 24.237 of 50.0 to 100.0, 1 digits
FIR, MP, AES, FFT: TLB hits, least, %: 24.237 of 98.0 to 100.0, 1 digits
MT, KM, FFT, ST: fewer IOMMU accesses, mean, %: 49.467 of 61.5 to 75.1, 1 digits
ST: fewer IOMMU accesses, %: 73.048 of 81.0 to 99.0, 1 digits
RL, FIR, MP: L2-TLB misses that go to the IOMMU, least, %: 69.644 of 90.0 to 100.0, 1 digits
RL, FIR, MP: walks D/C, least: 0.05336 of 1.80 to 2.20, 2 digits
more walks in D, mean of all, %: 180.99 of 60 to 74, 0 digits
AES: D over C: 0.11814 of 0.95 to 1.05, 2 digits
L2-TLB misses of C and D differ by at most, %: 652.72 of 0.0 to 5.0, 1 digits
)";

TEST(TranslationClaims, figures_of_made_up_counters_are_what_they_were) {
  Random random(19);
  std::string found;
  for (int i = 0; i < 2; ++i) {
    Comparison comparison = any_comparison(random);
    if (i == 1) comparison.architectures.pop_back();
    for (const Claim& claim : claims_of(comparison))
      found += fmt::format("{}: {:.5g} of {}, {} digits\n", claim.name, claim.ours, claim.range(),
                           claim.decimals);
  }
  EXPECT_EQ(found, kept_figures);
}

// Read from the text of the paper, section 4.2. A claim that is called the paper's and is not here
// has no source.
constexpr const char* said_by_the_paper =
    R"(D over C, mean of all: 2.0, section 4.2, Figure 4
KM: D over C: 4.81, section 4.2, Figure 4
ST: D over C: 5.18, section 4.2, Figure 4
RL, FIR, MP: C ahead by, mean, %: 8 %, section 4.2, Figure 4
RL, FIR, MP: C ahead by, least, %: C better, section 4.2, Figure 4
PR, MT, KM, FFT, ST: D over C, least: D better, section 4.2, Figure 4
TLB-hit shares of C and D differ by at most, points: nearly the same, section 4.2, Figure 5
TLB hits, least, %: most, section 4.2, Figure 5
FIR, MP, AES, FFT: TLB hits, least, %: extremely high, section 4.2, Figure 5
MT, KM, FFT, ST: fewer IOMMU accesses, mean, %: 68.3 %, section 4.2, Figure 6
ST: fewer IOMMU accesses, %: 90 %, section 4.2, Figure 6
RL, FIR, MP: L2-TLB misses that go to the IOMMU, least, %: nearly all, section 4.2, Figure 6
RL, FIR, MP: walks D/C, least: 2, section 4.2, Figure 7
more walks in D, mean of all, %: 67 %, section 4.2, Figure 7
)";

TEST(TranslationClaims, all_that_is_called_the_papers_has_its_words_and_its_place) {
  Random random(3);
  std::string said;
  for (const Claim& claim : claims_of(any_comparison(random))) {
    EXPECT_NE(claim.paper == nullptr, claim.elsewhere.empty()) << claim.name;
    if (claim.paper == nullptr) continue;
    said += fmt::format("{}: {}, {}\n", claim.name, claim.paper->words, claim.paper->place);
  }
  EXPECT_EQ(said, said_by_the_paper);
}

TEST(TranslationClaims, what_the_paper_does_not_say_names_whose_expectation_it_is) {
  Random random(3);
  std::map<std::string, std::string> elsewhere;
  for (const Claim& claim : claims_of(any_comparison(random))) {
    if (claim.paper == nullptr) elsewhere[claim.name] = claim.elsewhere;
  }
  EXPECT_EQ(elsewhere.size(), 4U);
  EXPECT_EQ(elsewhere["AES: D over C"], "about 1: named on neither side (inferred)");
  EXPECT_EQ(elsewhere["bypass over the better mean of C and D"],
            "1.06 over D (another design: Wei et al., NPC 2020)");
}

Claim claim_named(const Comparison& comparison, std::string_view name) {
  for (const Claim& claim : claims_of(comparison)) {
    if (claim.name == name) return claim;
  }
  ADD_FAILURE() << name;
  return {};
}

// Every application: D and C take these cycles, and D over C is the same in all.
Comparison equal_apps(std::uint64_t centralised, std::uint64_t distributed) {
  Random random(1);
  Comparison comparison = any_comparison(random);
  for (ApplicationResult& app : comparison.apps) {
    app.summaries[0].cycles = Cycles(centralised);
    app.summaries[1].cycles = Cycles(distributed);
  }
  return comparison;
}

TEST(TranslationClaims, a_number_is_reproduced_within_a_tenth_of_it) {
  const auto km = [](std::uint64_t centralised) {
    return claim_named(equal_apps(centralised, 1000), "KM: D over C");
  };
  EXPECT_EQ(km(4810).range(), "4.33 to 5.29");
  EXPECT_TRUE(km(4330).holds());
  EXPECT_FALSE(km(4320).holds());
  EXPECT_TRUE(km(5290).holds());
  EXPECT_FALSE(km(5300).holds());
}

TEST(TranslationClaims, equal_times_are_no_lead_of_the_centralised_architecture) {
  const auto lead = [](std::uint64_t centralised, std::string_view name) {
    return claim_named(equal_apps(centralised, 1000), name);
  };
  EXPECT_FALSE(lead(1000, "RL, FIR, MP: C ahead by, mean, %").holds());
  EXPECT_FALSE(lead(1000, "RL, FIR, MP: C ahead by, least, %").holds());
  EXPECT_FALSE(lead(991, "RL, FIR, MP: C ahead by, least, %").holds());
  EXPECT_TRUE(lead(989, "RL, FIR, MP: C ahead by, least, %").holds());
  EXPECT_TRUE(lead(920, "RL, FIR, MP: C ahead by, mean, %").holds());
  EXPECT_FALSE(lead(900, "RL, FIR, MP: C ahead by, mean, %").holds());
  EXPECT_FALSE(lead(1009, "PR, MT, KM, FFT, ST: D over C, least").holds());
  EXPECT_TRUE(lead(1011, "PR, MT, KM, FFT, ST: D over C, least").holds());
  EXPECT_EQ(lead(1000, "PR, MT, KM, FFT, ST: D over C, least").range(), "1.01 or more");
}

TEST(TranslationClaims, say_which_settings_were_chosen_with_them_in_view) {
  Comparison comparison = equal_apps(2000, 1000);
  const auto fitted = [&](std::string_view name) { return claim_named(comparison, name).fitted; };
  EXPECT_EQ(fitted("ST: fewer IOMMU accesses, %"), "l2_tlb_sets");
  EXPECT_EQ(fitted("TLB-hit shares of C and D differ by at most, points"), "l2_tlb_sets");
  EXPECT_EQ(fitted("KM: D over C"), "");
  EXPECT_EQ(fitted("MT, KM, FFT, ST: fewer IOMMU accesses, mean, %"), "");
  EXPECT_EQ(fitted_text(comparison),
            "fitted: l2_tlb_sets=64 and l2_tlb_ways=16, to ST's IOMMU accesses and to TLB hits\n");
  comparison.settings.split = Split::native;
  EXPECT_EQ(fitted("KM: D over C"), "split");
  EXPECT_EQ(fitted("D over C, mean of all"), "split");
  EXPECT_EQ(fitted("MT, KM, FFT, ST: fewer IOMMU accesses, mean, %"), "split, mt_multiple");
  comparison.settings.l2_tlb_sets = 32;
  EXPECT_EQ(fitted("ST: fewer IOMMU accesses, %"), "");
  EXPECT_EQ(fitted_text(comparison).rfind("fitted: split=native (", 0), 0U);
  comparison.settings.l2_tlb_sets = 64;
  comparison.settings.l2_tlb_ways = 8;
  comparison.settings.split = Split::contiguous;
  EXPECT_EQ(fitted_text(comparison), "");
}

TEST(TranslationClaims, of_several_applications_need_all_of_them) {
  Comparison comparison = equal_apps(2000, 1000);
  const auto count = [&](std::string_view part) {
    std::size_t found = 0;
    for (const Claim& claim : claims_of(comparison))
      found += claim.name.find(part) != std::string::npos ? std::size_t{1} : std::size_t{0};
    return found;
  };
  EXPECT_EQ(count("RL, FIR, MP: "), 4U);
  EXPECT_EQ(count("mean of all"), 2U);
  std::erase_if(comparison.apps, [](const ApplicationResult& app) { return app.name == "RL"; });
  EXPECT_EQ(count("RL, FIR, MP: "), 0U);
  EXPECT_EQ(count("mean of all"), 0U);
  EXPECT_EQ(count("KM: D over C"), 1U);
}

TEST(TranslationClaims, those_of_the_paper_alone_are_counted) {
  std::vector<Claim> claims(3);
  claims[0] = {.paper = &translation_paper::km_speedup, .ours = 1, .low = 0, .high = 2};
  claims[1] = {.paper = &translation_paper::st_speedup, .ours = 3, .low = 0, .high = 2};
  claims[2] = {.elsewhere = "ours", .ours = 1, .low = 0, .high = 2};
  EXPECT_EQ(reproduced_text(claims), "1 of 2");
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
