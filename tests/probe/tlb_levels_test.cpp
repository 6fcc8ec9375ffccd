// Planted TLBs are found again: reach and cost of each level, what an entry covers, ways.
#include "demarc/probe/tlb_levels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "small_translation.hpp"

namespace demarc::probe {
namespace {

using test::levels_of;
using test::quick_levels;
using test::small_hierarchy;
using testing::HasSubstr;

std::string described(const std::vector<PlantedTlb>& tlbs) {
  std::string text;
  for (const PlantedTlb& tlb : tlbs) {
    text += fmt::format("[{} entries of {} pages, {} ways{}{}, {:.1f} cycles]", tlb.entries,
                        tlb.pages_per_entry, tlb.ways, tlb.hashed ? ", hashed" : "",
                        tlb.random ? ", random" : "", tlb.miss_cycles);
  }
  return text;
}

// One to three levels, each of eight to twelve times the pages of the one in front.
std::vector<PlantedTlb> random_tlbs(Random& random) {
  std::vector<PlantedTlb> tlbs;
  std::uint64_t reach = 6 + random.below(12);
  for (std::uint64_t level = 0; level < 1 + random.below(3); ++level) {
    PlantedTlb tlb;
    tlb.pages_per_entry = std::uint64_t{1} << random.below(3);
    tlb.random = random.below(3) == 0;
    tlb.entries = std::max<std::uint64_t>(reach / tlb.pages_per_entry, 4);
    if (!tlb.random && random.below(2) == 0 && tlb.entries >= 8) {
      tlb.ways = 4;
      tlb.entries = std::bit_floor(tlb.entries);
    }
    tlb.miss_cycles = 10 + 100 * random.uniform();
    tlbs.push_back(tlb);
    reach = tlb.entries * tlb.pages_per_entry * (8 + random.below(5));
  }
  return tlbs;
}

TEST(TlbLevels, of_random_hierarchies_with_noise_are_found_again) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const std::vector<PlantedTlb> tlbs = random_tlbs(random);
    PlantedHierarchy truth = small_hierarchy(tlbs, 8192);
    truth.noise_cycles = 0.6 * random.uniform();
    SCOPED_TRACE(
        fmt::format("seed {}: {} noise {:.2f}", seed, described(tlbs), truth.noise_cycles));
    const LevelFinding found = levels_of(truth, seed);
    ASSERT_EQ(found.levels.size(), tlbs.size());
    for (std::size_t i = 0; i < tlbs.size(); ++i) {
      const TlbLevel& level = found.levels[i];
      const auto reach = static_cast<double>(tlbs[i].entries * tlbs[i].pages_per_entry);
      EXPECT_GE(static_cast<double>(level.reach_pages), 0.9 * reach - 1) << "level " << i + 1;
      EXPECT_LE(static_cast<double>(level.reach_pages), 1.15 * reach + 1) << "level " << i + 1;
      EXPECT_NEAR(level.miss_cycles, tlbs[i].miss_cycles, 2 + 0.06 * tlbs[i].miss_cycles)
          << "level " << i + 1;
      EXPECT_FALSE(level.miss_at_least);
    }
  }
}

TEST(TlbLevels, of_memory_without_tlbs_there_are_none) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    PlantedHierarchy truth = small_hierarchy({}, 2048);
    truth.noise_cycles = 0.1 * static_cast<double>(seed);
    EXPECT_TRUE(levels_of(truth, seed).levels.empty()) << seed;
  }
}

TEST(TlbLevels, a_reach_is_closed_in_to_a_page_where_it_is_sharp) {
  for (const std::uint64_t entries : {16U, 17U, 23U, 37U, 61U}) {
    PlantedHierarchy truth = small_hierarchy({{entries, 1, 0, false, false, 40}}, 1024);
    const LevelFinding found = levels_of(truth, entries);
    ASSERT_EQ(found.levels.size(), 1U);
    EXPECT_EQ(found.levels[0].reach_pages, entries);
    EXPECT_TRUE(found.levels[0].sharp);
    EXPECT_NEAR(found.levels[0].hit_cycles, 270, 3);
  }
}

TEST(TlbLevels, the_cost_of_a_level_that_the_memory_hardly_exceeds_is_a_least_one) {
  const PlantedHierarchy truth = small_hierarchy({{1024, 1, 0, false, true, 100}}, 1400);
  const LevelFinding found = levels_of(truth, 1);
  ASSERT_EQ(found.levels.size(), 1U);
  EXPECT_TRUE(found.levels[0].miss_at_least);
  EXPECT_LT(found.levels[0].miss_cycles, 80);
}

TEST(TlbLevels, a_walk_has_no_more_lines_than_caches_hold) {
  LevelOptions options = quick_levels();
  options.max_lines = 100;
  const LevelFinding found =
      levels_of(small_hierarchy({{128, 1, 0, false, false, 50}}, 4096), 1, options);
  EXPECT_TRUE(found.levels.empty());
  EXPECT_EQ(found.curve.back().pages, 100U);
}

struct EntryCase {
  PlantedTlb tlb;
  std::optional<std::uint64_t> ways;
};

TEST(TlbEntries, pages_of_an_entry_and_ways_are_found_again) {
  const EntryCase cases[] = {{{256, 1, 8, false, false, 60}, 8},
                             {{256, 4, 8, false, false, 60}, 8},
                             {{128, 16, 4, false, false, 60}, 4},
                             {{64, 1, 1, false, false, 60}, 1},
                             {{512, 2, 2, false, false, 60}, 2},
                             {{256, 1, 0, false, false, 60}, std::nullopt},
                             {{256, 8, 0, false, false, 60}, std::nullopt},
                             {{256, 2, 0, false, true, 60}, std::nullopt},
                             {{256, 4, 16, true, false, 60}, std::nullopt}};
  for (const EntryCase& now : cases) {
    SCOPED_TRACE(described({now.tlb}));
    LevelOptions options = quick_levels();
    options.entries = true;
    const LevelFinding found = levels_of(small_hierarchy({now.tlb}, 8192), 3, options);
    ASSERT_EQ(found.levels.size(), 1U);
    const TlbLevel& level = found.levels[0];
    EXPECT_EQ(level.pages_per_entry, now.tlb.pages_per_entry) << level.entry_reason;
    EXPECT_EQ(level.ways, now.ways) << level.way_reason;
    EXPECT_THAT(level.way_reason, HasSubstr(now.ways ? "so many fit" : "fully associative"));
  }
}

TEST(TlbEntries, of_random_hierarchies_are_right_where_they_are_told) {
  LevelOptions options = quick_levels();
  options.entries = true;
  std::size_t told = 0;
  // For the last one neither half as many nor as many pages fit.
  for (const std::uint64_t seed : {1U, 2U, 3U, 31U}) {
    Random random(1000 + seed);
    const std::vector<PlantedTlb> tlbs = random_tlbs(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, described(tlbs)));
    const LevelFinding found = levels_of(small_hierarchy(tlbs, 16384), seed, options);
    ASSERT_EQ(found.levels.size(), tlbs.size());
    for (std::size_t i = 0; i < tlbs.size(); ++i) {
      const TlbLevel& level = found.levels[i];
      if (!level.pages_per_entry) continue;
      ++told;
      EXPECT_EQ(level.pages_per_entry, tlbs[i].pages_per_entry) << "level " << i + 1;
      EXPECT_EQ(level.ways.value_or(tlbs[i].ways), tlbs[i].ways) << "level " << i + 1;
      if (level.way_reason.starts_with("pages twice")) {
        EXPECT_EQ(tlbs[i].ways, 0U) << "level " << i + 1;
      }
    }
  }
  EXPECT_GE(told, 4U);
}

TEST(TlbEntries, of_a_few_pages_are_not_guessed) {
  LevelOptions options = quick_levels();
  options.entries = true;
  const auto entries_of = [&](std::uint64_t entries) {
    return levels_of(small_hierarchy({{entries, 1, 0, false, false, 60}}, 1024), 1, options)
        .levels.at(0);
  };
  EXPECT_EQ(entries_of(12).pages_per_entry, 1U);
  EXPECT_EQ(entries_of(11).pages_per_entry, std::nullopt);
  EXPECT_THAT(entries_of(11).entry_reason, HasSubstr("11 pages are too few"));
}

TEST(TlbEntries, ways_of_sets_that_are_no_power_of_two_are_not_guessed) {
  LevelOptions options = quick_levels();
  options.entries = true;
  const LevelFinding found =
      levels_of(small_hierarchy({{72, 2, 4, false, false, 60}}, 16384), 1, options);
  ASSERT_EQ(found.levels.size(), 1U);
  EXPECT_EQ(found.levels[0].pages_per_entry, 2U);
  EXPECT_EQ(found.levels[0].ways, std::nullopt) << "18 sets, of which a half is left";
  EXPECT_THAT(found.levels[0].way_reason, HasSubstr("the number of sets is not a power of two"));
}

TEST(TlbEntries, that_the_memory_is_too_small_for_are_not_guessed) {
  LevelOptions options = quick_levels();
  options.entries = true;
  const LevelFinding found =
      levels_of(small_hierarchy({{64, 16, 0, false, false, 60}}, 2048), 1, options);
  ASSERT_EQ(found.levels.size(), 1U);
  EXPECT_EQ(found.levels[0].pages_per_entry, 16U) << "64 pages of 2048 fit, one of each 32";
  const LevelFinding less =
      levels_of(small_hierarchy({{64, 16, 0, false, false, 60}}, 1200), 1, options);
  ASSERT_EQ(less.levels.size(), 1U);
  EXPECT_EQ(less.levels[0].pages_per_entry, std::nullopt);
  EXPECT_THAT(less.levels[0].entry_reason, HasSubstr("there is no memory for pages"));
  EXPECT_THAT(less.levels[0].way_reason, HasSubstr("not known"));
}

TEST(TlbEntries, that_the_level_in_front_hides_are_not_guessed) {
  LevelOptions options = quick_levels();
  options.entries = true;
  const std::vector<PlantedTlb> tlbs = {{64, 1, 0, false, false, 30},
                                        {64, 16, 4, false, false, 60}};
  const LevelFinding found = levels_of(small_hierarchy(tlbs, 16384), 1, options);
  ASSERT_EQ(found.levels.size(), 2U);
  EXPECT_EQ(found.levels[0].pages_per_entry, 1U);
  EXPECT_EQ(found.levels[1].pages_per_entry, std::nullopt);
  EXPECT_EQ(found.levels[1].ways, std::nullopt);
  EXPECT_THAT(found.levels[1].entry_reason, HasSubstr("held by the level in front"));
  // One that replaces any page hides more than it holds.
  const std::vector<PlantedTlb> fuller = {{128, 1, 0, false, true, 110},
                                          {512, 16, 8, false, false, 120}};
  const LevelFinding hidden = levels_of(small_hierarchy(fuller, 16384), 1, options);
  ASSERT_EQ(hidden.levels.size(), 2U);
  EXPECT_EQ(hidden.levels[1].pages_per_entry, 16U);
  EXPECT_EQ(hidden.levels[1].ways, std::nullopt);
  EXPECT_THAT(hidden.levels[1].way_reason, HasSubstr("held by the level in front"));
}

}  // namespace
}  // namespace demarc::probe
