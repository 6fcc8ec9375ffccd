// Whole studies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/sim/translation/simulate.hpp"
#include "demarc/sim/translation/study.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim::translation {
namespace {

TEST(Translation, the_bypass_is_within_two_per_cent_of_the_better_and_better_than_both_on_average) {
  std::vector<std::string> names;
  for (const auto& info : application_table()) names.emplace_back(info.name);
  const auto comparison =
      compare(small_machine(), names,
              {Architecture::centralised, Architecture::distributed, Architecture::bypass});
  ASSERT_TRUE(comparison) << comparison.error().message;
  double most = 0;
  for (const ApplicationResult& app : comparison->apps) {
    const auto better =
        static_cast<double>(std::min(app.summaries[0].cycles, app.summaries[1].cycles));
    EXPECT_LE(static_cast<double>(app.summaries[2].cycles), 1.02 * better) << app.name;
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
  options.apps = {"RL", "KM", "ST"};
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
  EXPECT_TRUE(of("walks D/C = 2 - GMMU hits, misses made equal: error").holds());
  EXPECT_TRUE(of("RL, FIR, MP: walks D/C, least").holds());
  EXPECT_EQ(of("KM: D over C").published, "4.81");
  EXPECT_FALSE(of("ST: fewer IOMMU accesses, %").holds()) << "one iteration on 1 MB";
  options.variants = {"chains"};
  EXPECT_THAT(reproduce_paper(options).error().message,
              testing::HasSubstr("there is no variant 'chains'; there are defaults roundrobin"));
}

}  // namespace
}  // namespace demarc::sim::translation
