// Rates and caching: what is concluded from memories that answer as they are told.
#include "demarc/probe/access_rates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace demarc::probe {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t told_page_bytes = std::uint64_t{2} << 20U;

class ToldPages final : public TimedPages {
 public:
  std::function<double(const Traffic&)> rate = [](const Traffic&) { return 1e9; };
  WalkCycles cold{600, 270};
  WalkCycles atomics{310, 300};
  std::vector<Traffic> asked;
  std::string without;

  [[nodiscard]] std::uint64_t pages() const override { return 4096; }
  [[nodiscard]] std::uint64_t page_bytes() const override { return told_page_bytes; }
  [[nodiscard]] const std::string& no_atomics() const override { return without; }
  Result<WalkCycles> walk(std::span<const Visit> visits, Access access, Before before) override {
    EXPECT_EQ(before == Before::evicted, access == Access::load);
    EXPECT_EQ(visits.size(), 16U * 128U);
    return access == Access::load ? cold : atomics;
  }
  Result<double> accesses_per_second(const Traffic& traffic) override {
    asked.push_back(traffic);
    return rate(traffic);
  }
};

TEST(WalkRate, is_that_of_the_reads_that_miss_for_sure) {
  ToldPages memory;
  memory.rate = [](const Traffic& traffic) { return traffic.pages < 2000 ? 8e9 : 2e9; };
  const WalkFinding found = find_walk_rate(memory, 4, 4096, {}).value();
  EXPECT_EQ(found.reach_pages, 1722U);
  // The first footprint that is read slower has 2048 pages: half of the 4096 miss at least.
  EXPECT_NEAR(found.walks_per_second.value(), 1e9, 1e6);
  EXPECT_THAT(found.reason, HasSubstr("2048 pages are read more slowly already"));
  EXPECT_EQ(memory.asked.front().pages, 64U);
  EXPECT_EQ(memory.asked.back().pages, 4096U);
  EXPECT_EQ(memory.asked.back().sms, 4U);
}

TEST(WalkRate, is_not_known_where_the_rate_does_not_fall_or_only_at_the_end) {
  ToldPages memory;
  const WalkFinding flat = find_walk_rate(memory, 4, 4096, {}).value();
  EXPECT_EQ(flat.walks_per_second, std::nullopt);
  EXPECT_THAT(flat.reason, HasSubstr("does not fall"));
  EXPECT_EQ(flat.reach_pages, 4096U);
  memory.rate = [](const Traffic& traffic) { return traffic.pages < 4000 ? 8e9 : 2e9; };
  const WalkFinding late = find_walk_rate(memory, 4, 4096, {}).value();
  EXPECT_EQ(late.walks_per_second, std::nullopt);
  EXPECT_THAT(late.reason, HasSubstr("only at the largest footprint"));
}

TEST(WalkRate, is_not_of_a_slow_footprint_before_a_fast_one) {
  ToldPages memory;
  memory.rate = [](const Traffic& traffic) { return traffic.pages == 128 ? 2e9 : 8e9; };
  EXPECT_EQ(find_walk_rate(memory, 4, 1000, {})->walks_per_second, std::nullopt);
  EXPECT_EQ(memory.asked.back().pages, 1000U) << "no more lines than caches hold";
}

TEST(RateTables, have_every_size_and_every_number_of_sms) {
  ToldPages memory;
  const RateTable table = measure_rates(memory, 12, {}).value();
  ASSERT_EQ(table.by_size.size(), 12U);
  EXPECT_EQ(table.by_size[0].traffic.access_bytes, 32U);
  EXPECT_EQ(table.by_size[5].traffic.access_bytes, 4096U);
  EXPECT_EQ(table.by_size[6].traffic.kind, Traffic::Kind::write);
  EXPECT_DOUBLE_EQ(table.by_size[0].bytes_per_second(), 32e9);
  ASSERT_EQ(table.by_sms.size(), 5U);
  EXPECT_EQ(table.by_sms[3].traffic.sms, 8U);
  EXPECT_EQ(table.by_sms[4].traffic.sms, 12U);
  ASSERT_EQ(table.atomics.size(), 2U);
  EXPECT_EQ(table.atomics[0].traffic.kind, Traffic::Kind::atomic);
  EXPECT_EQ(table.atomics[1].traffic.kind, Traffic::Kind::word);
  for (const Traffic& traffic : memory.asked) EXPECT_EQ(traffic.pages, 128U) << "256 MiB";
}

TEST(RateTables, have_no_atomics_where_the_link_carries_none) {
  ToldPages memory;
  memory.without = "the link carries none";
  const RateTable table = measure_rates(memory, 12, {}).value();
  EXPECT_TRUE(table.atomics.empty());
  EXPECT_EQ(table.no_atomics, "the link carries none");
  EXPECT_EQ(table.by_sms.size(), 5U);
  Random random(1);
  EXPECT_EQ(find_caching(memory, 270, random)->atomic_cycles, std::nullopt);
}

TEST(Caching, is_told_by_second_accesses_that_are_near_to_a_hit_of_the_own_l2) {
  ToldPages memory;
  Random random(1);
  const auto kept = [&](double first, double again, double own) {
    memory.cold = {first, again};
    return find_caching(memory, own, random).value();
  };
  EXPECT_EQ(kept(2000, 271, 270).kept_in_own_l2, true);
  EXPECT_EQ(kept(2000, 1663, 270).kept_in_own_l2, false);
  EXPECT_EQ(kept(2000, 900, 270).kept_in_own_l2, std::nullopt) << "neither near nor far";
  EXPECT_THAT(kept(2000, 1663, 270).reason, HasSubstr("second access takes 1663 cycles"));
  EXPECT_EQ(kept(2000, 271, 270).atomic_cycles, 300.0);
  const CachingFinding unknown = kept(2000, 271, 0);
  EXPECT_EQ(unknown.kept_in_own_l2, std::nullopt);
  EXPECT_THAT(unknown.reason, HasSubstr("is not known"));
  const CachingFinding near = kept(280, 270, 270);
  EXPECT_EQ(near.kept_in_own_l2, std::nullopt);
  EXPECT_THAT(near.reason, HasSubstr("takes no longer"));
}

}  // namespace
}  // namespace demarc::probe
