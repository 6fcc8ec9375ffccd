// Tests whole studies of address translation: walks, places of pages, and claims of the paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/sim/translation/simulate.hpp"
#include "demarc/sim/translation/study.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim::translation {
namespace {

TEST(Translation, every_l2_miss_is_walked_for_where_the_architecture_says) {
  for (const auto& info : application_table()) {
    const Settings settings = one_megabyte();
    const Summary c = run_application(settings, Architecture::centralised, info.name);
    EXPECT_EQ(c.iommu_accesses, c.l2_tlb.misses) << info.name;
    EXPECT_EQ(c.gmmu_walks, 0U) << info.name;
    const Summary d = run_application(settings, Architecture::distributed, info.name);
    EXPECT_EQ(d.gmmu_walks, d.l2_tlb.misses) << info.name;
    EXPECT_EQ(d.iommu_accesses, d.l2_tlb.misses - d.gmmu_hits) << info.name;
    EXPECT_EQ(c.lines, d.lines) << info.name;
    EXPECT_EQ(c.l1_tlb.lookups(), c.lines) << "each line is looked up once: " << info.name;
    EXPECT_EQ(c.first_touches, d.first_touches)
        << "first touch does not depend on who walks: " << info.name;
  }
}

TEST(Translation, pages_lie_the_same_in_every_architecture) {
  for (const std::string_view name : {"PR", "MT", "ST"}) {
    const Summary c = run_application(small_machine(), Architecture::centralised, name);
    const Summary d = run_application(small_machine(), Architecture::distributed, name);
    EXPECT_EQ(c.pages_owned, d.pages_owned) << name;
    EXPECT_EQ(c.remote_lines, d.remote_lines) << name;
  }
}

TEST(Translation, the_bypass_is_within_two_per_cent_of_the_better_and_better_than_both_on_average) {
  std::vector<std::string> names;
  for (const auto& info : application_table()) names.emplace_back(info.name);
  Settings settings = small_machine();
  settings.split = Split::native;
  const auto comparison =
      compare(settings, names,
              {Architecture::centralised, Architecture::distributed, Architecture::bypass});
  ASSERT_TRUE(comparison) << comparison.error().message;
  double most = 0;
  for (const ApplicationResult& app : comparison->apps) {
    const auto better =
        static_cast<double>(std::min(app.summaries[0].cycles, app.summaries[1].cycles).raw());
    EXPECT_LE(static_cast<double>(app.summaries[2].cycles.raw()), 1.02 * better) << app.name;
    most = std::max(most, Comparison::speedup(app, 1));
  }
  EXPECT_GT(most, 2) << "the two architectures differ on this machine";
  EXPECT_GT(comparison->mean_speedup(2), comparison->mean_speedup(1));
  EXPECT_GT(comparison->mean_speedup(2), 1.0);
}

TEST(Translation, the_study_is_the_same_on_any_number_of_threads_and_judges_the_paper) {
  StudyOptions options;
  options.base = small_machine();
  options.base.megabytes = 1;
  options.apps = {"RL", "FIR", "MP", "KM", "ST"};
  options.variants = {"chain", "bypass-oracle"};
  options.threads = 1;
  const auto serial = reproduce_paper(options);
  options.threads = 3;
  const auto parallel = reproduce_paper(options);
  ASSERT_TRUE(serial && parallel);
  EXPECT_EQ(study_json(*serial), study_json(*parallel));
  ASSERT_EQ(serial->runs.size(), 3U);
  const auto claims = claims_of(serial->runs[0].comparison);
  const auto of = [&](std::string_view name) {
    for (const Claim& claim : claims) {
      if (claim.name == name) return claim;
    }
    ADD_FAILURE() << name;
    return Claim{};
  };
  EXPECT_TRUE(of("L2-TLB misses of C and D differ by at most, %").holds());
  EXPECT_TRUE(of("RL, FIR, MP: walks D/C, least").holds());
  EXPECT_EQ(of("KM: D over C").paper, &translation_paper::km_speedup);
  EXPECT_FALSE(of("ST: fewer IOMMU accesses, %").holds()) << "one iteration on 1 MB";
  options.variants = {"chains"};
  EXPECT_THAT(
      reproduce_paper(options).error().message,
      testing::HasSubstr("there is no variant 'chains'; there are defaults native contiguous"));
}

}  // namespace
}  // namespace demarc::sim::translation
