// Tests locality maps and indices against plain enumeration of the places.
#include "demarc/locality/maps.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "naive_maps.hpp"

namespace demarc::locality {
namespace {

constexpr Granularity all_granularities[] = {Granularity::element,  Granularity::sector,
                                             Granularity::line,     Granularity::page_4k,
                                             Granularity::page_64k, Granularity::page_2m};
constexpr Count all_counts[] = {Count::accesses, Count::multiset, Count::distinct};

// in[i] and in[i + 1] by `blocks` blocks of `threads` threads.
AccessRuns halo(std::uint32_t blocks, std::uint32_t threads) {
  AccessRuns runs;
  runs.grid = {blocks, 1, 1};
  runs.block = {threads, 1, 1};
  runs.accesses.resize(2);
  for (std::uint32_t b = 0; b < blocks; ++b)
    for (std::uint16_t a = 0; a < 2; ++a)
      runs.runs.push_back({.address = 0x1000 + 4 * (std::uint64_t{b} * threads + a),
                           .stride = 4,
                           .block = b,
                           .count = threads,
                           .access = a});
  return runs;
}

// Runs as kernels make them and as they never would: any stride, repeated, reversed, overlapping.
AccessRuns any_runs() {
  AccessRuns runs;
  runs.grid = {*rc::gen::inRange(1U, 6U), 1, 1};
  runs.block = {*rc::gen::inRange(1U, 70U), 1, 1};
  runs.accesses.resize(*rc::gen::inRange(1U, 4U));
  const std::int64_t step = *rc::gen::element(1, 2, 4, 8, 16);
  for (std::uint32_t b = 0; b < runs.blocks(); ++b) {
    for (std::uint16_t a = 0; a < runs.accesses.size(); ++a) {
      std::uint32_t request = 0;
      for (std::uint32_t n = *rc::gen::inRange(0U, 4U); n > 0; --n) {
        Run run;
        run.block = b;
        run.access = a;
        run.thread = static_cast<std::uint16_t>(*rc::gen::inRange(0U, runs.threads()));
        run.count = *rc::gen::inRange(1U, runs.threads() - run.thread + 1);
        run.stride = step * *rc::gen::element(0, 1, 1, 2, -1, 3, 34, -40);
        run.address = 0x100000 + static_cast<std::uint64_t>(step * *rc::gen::inRange(0, 200));
        run.request = request++;
        runs.runs.push_back(run);
      }
    }
  }
  return runs;
}

TEST(MapNames, are_read_back_as_they_are_written_and_others_refused) {
  for (const Granularity granularity : all_granularities)
    EXPECT_EQ(parse_granularity(to_string(granularity)).value(), granularity);
  for (const Count count : all_counts) EXPECT_EQ(parse_count(to_string(count)).value(), count);
  EXPECT_EQ(parse_granularity("64").error().message,
            "--granularity: '64' is none of element, 32, 128, 4096, 65536, 2097152");
  EXPECT_EQ(parse_count("").error().message, "--count: '' is none of accesses, multiset, distinct");
}

TEST(InterMap, sets_are_the_places_of_neighbours_and_missing_without_a_whole_map) {
  const InterResult result = inter_map(halo(8, 64), Granularity::element, Count::accesses);
  ASSERT_EQ(result.sets.size(), 7U);
  for (std::uint32_t i = 0; i < 7; ++i) {
    EXPECT_EQ(result.sets[i], (SharedPlaces{1, {i, i + 1}}));
  }
  for (const std::uint64_t most : {0U, 6U}) {
    const auto coarse = inter_map(halo(8, 64), Granularity::element, Count::accesses, most);
    EXPECT_TRUE(coarse.sets.empty());
  }
}

// Any two blocks have the distinct places in common that the sets with both of them hold.
RC_GTEST_PROP(InterMap, sets_give_the_cells_of_distinct_places, ()) {
  const AccessRuns runs = any_runs();
  for (const Granularity granularity : all_granularities) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> cells;
    std::set<std::vector<std::uint32_t>> known;
    for (const SharedPlaces& set : inter_map(runs, granularity, Count::accesses).sets) {
      RC_ASSERT(known.insert(set.blocks).second);
      for (std::size_t i = 0; i < set.blocks.size(); ++i) {
        for (std::size_t j = i + 1; j < set.blocks.size(); ++j) {
          cells[{set.blocks[i], set.blocks[j]}] += set.places;
        }
      }
    }
    LocalityMap map{runs.blocks(), 1, {}};
    for (const auto& [at, value] : cells) map.cells.push_back({at.first, at.second, value});
    RC_ASSERT(map == inter_map(runs, granularity, Count::distinct).map);
  }
}

TEST(InterMap, neighbours_share_one_access_of_a_halo) {
  const InterResult result = inter_map(halo(8, 64), Granularity::element, Count::accesses);
  ASSERT_EQ(result.map.cells.size(), 7U);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(result.map.cells[i], (MapCell{i, i + 1, 1}));
  EXPECT_EQ(result.sharing_blocks, 8U);
  EXPECT_DOUBLE_EQ(result.degree_of_sharing, 7.0 / (28 * 2 * 64));
  EXPECT_DOUBLE_EQ(result.appearance_frequency, 1);
  EXPECT_DOUBLE_EQ(result.spscore, 1 - 14.0 / 64);
  EXPECT_DOUBLE_EQ(result.paver_degree_of_sharing, 7.0 / 8);
}

TEST(InterMap, blocks_that_share_nothing_have_indices_of_zero_and_full_sparsity) {
  AccessRuns runs = halo(4, 32);
  std::erase_if(runs.runs, [](const locality::Run& run) { return run.access == 1; });
  const InterResult result = inter_map(runs, Granularity::element, Count::accesses);
  EXPECT_TRUE(result.map.cells.empty());
  EXPECT_EQ(result.degree_of_sharing, 0);
  EXPECT_EQ(result.appearance_frequency, 0);
  EXPECT_EQ(result.spscore, 1);
  EXPECT_EQ(result.paver_degree_of_sharing, 0);
}

TEST(InterMap, the_degree_is_one_when_every_block_reads_the_same) {
  AccessRuns runs = halo(5, 32);
  for (locality::Run& run : runs.runs) run.address = 0x1000;
  const InterResult result = inter_map(runs, Granularity::element, Count::accesses);
  EXPECT_DOUBLE_EQ(result.degree_of_sharing, 1);
  EXPECT_DOUBLE_EQ(result.spscore, 1 - 20.0 / 25);
}

TEST(InterMap, a_load_in_a_loop_counts_once_a_thread) {
  AccessRuns runs;
  runs.grid = {2, 1, 1};
  runs.block = {32, 1, 1};
  runs.accesses.resize(1);
  for (std::uint32_t b = 0; b < 2; ++b)
    for (std::uint32_t trip = 0; trip < 10; ++trip)
      runs.runs.push_back(
          {.address = 0x1000 + 128 * trip, .stride = 4, .block = b, .count = 32, .request = trip});
  const auto value = [&runs](Count count) {
    return inter_map(runs, Granularity::element, count).map.cells.at(0).value;
  };
  EXPECT_EQ(value(Count::accesses), 32U);
  EXPECT_EQ(value(Count::multiset), 320U);
  EXPECT_EQ(value(Count::distinct), 320U);
}

TEST(IntraMap, is_that_of_the_block_that_executes_most_and_the_first_of_equals) {
  AccessRuns runs = halo(4, 32);
  runs.runs.clear();
  EXPECT_EQ(intra_map(runs, Granularity::element, Count::accesses).map_block, 0U);
  runs.runs = {{.block = 1}};
  EXPECT_EQ(intra_map(runs, Granularity::element, Count::accesses).map_block, 1U);
  runs.runs = {{.block = 1}, {.block = 2, .count = 3}, {.block = 3, .count = 3}};
  EXPECT_EQ(intra_map(runs, Granularity::element, Count::accesses).map_block, 2U);
}

TEST(IntraMap, neighbouring_threads_share_one_access_of_a_halo) {
  const IntraResult result = intra_map(halo(8, 64), Granularity::element, Count::accesses);
  ASSERT_EQ(result.map.cells.size(), 63U);
  EXPECT_DOUBLE_EQ(result.degree_of_sharing, 63.0 / (2016 * 2));
  EXPECT_DOUBLE_EQ(result.appearance_frequency, 1);
  EXPECT_EQ(result.distinct_blocks, 1U);
}

TEST(Places, arrays_of_different_element_sizes_do_not_meet) {
  AccessRuns runs;
  runs.grid = {2, 1, 1};
  runs.block = {32, 1, 1};
  runs.accesses.resize(2);
  // 0x1000 / 4 == 0x2000 / 8, but the addresses differ.
  runs.runs.push_back({.address = 0x1000, .stride = 4, .block = 0, .count = 32, .access = 0});
  runs.runs.push_back({.address = 0x2000, .stride = 8, .block = 1, .count = 32, .access = 1});
  EXPECT_TRUE(inter_map(runs, Granularity::element, Count::accesses).map.cells.empty());
}

RC_GTEST_PROP(InterMap, equals_plain_enumeration_at_every_granularity_and_count, ()) {
  const AccessRuns runs = any_runs();
  for (const Granularity granularity : all_granularities)
    for (const Count count : all_counts)
      RC_ASSERT(inter_map(runs, granularity, count).map == naive::inter(runs, granularity, count));
}

RC_GTEST_PROP(IntraMap, equals_plain_enumeration_at_every_granularity_and_count, ()) {
  const AccessRuns runs = any_runs();
  for (const Granularity granularity : all_granularities) {
    for (const Count count : all_counts) {
      const IntraResult result = intra_map(runs, granularity, count);
      RC_ASSERT(result.map == naive::intra(runs, result.map_block, granularity, count));
      // The index over all blocks, from the maps of the single blocks.
      double sum = 0;
      double pairs = 0;
      for (std::uint32_t b = 0; b < runs.blocks(); ++b) {
        const LocalityMap map = naive::intra(runs, b, granularity, count);
        std::set<std::uint32_t> sharing;
        for (const MapCell& cell : map.cells) {
          sum += static_cast<double>(cell.value);
          sharing.insert({cell.row, cell.column});
        }
        const auto n = static_cast<double>(sharing.size());
        pairs += n * (n - 1) / 2;
      }
      const double loads = static_cast<double>(runs.accesses.size());
      RC_ASSERT(std::abs(result.degree_of_sharing - (pairs > 0 ? sum / (pairs * loads) : 0)) <
                1e-12);
    }
  }
}

// The sums of a map's cells over bins.
LocalityMap in_bins(const LocalityMap& exact, std::uint32_t bin) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sums;
  for (const MapCell& cell : exact.cells) sums[{cell.row / bin, cell.column / bin}] += cell.value;
  LocalityMap map{exact.size, bin, {}};
  for (const auto& [at, sum] : sums) map.cells.push_back({at.first, at.second, sum});
  return map;
}

RC_GTEST_PROP(InterMap, coarse_maps_are_sums_of_cells_and_indices_need_no_cells, ()) {
  const AccessRuns runs = any_runs();
  const Granularity granularity = *rc::gen::elementOf(
      std::vector<Granularity>(std::begin(all_granularities), std::end(all_granularities)));
  for (const Count count : all_counts) {
    const InterResult exact = inter_map(runs, granularity, count);
    const LocalityMap plain = naive::inter(runs, granularity, count);
    RC_ASSERT(exact.sharing_pairs == plain.cells.size());
    for (const std::uint64_t most : {0U, 1U, 2U, 4U, 6U}) {
      const InterResult coarse = inter_map(runs, granularity, count, most);
      RC_ASSERT(coarse.degree_of_sharing == exact.degree_of_sharing);
      RC_ASSERT(coarse.sharing_blocks == exact.sharing_blocks);
      RC_ASSERT(coarse.spscore == exact.spscore);
      RC_ASSERT(coarse.paver_degree_of_sharing == exact.paver_degree_of_sharing);
      if (most == 0) {
        RC_ASSERT(coarse.map.cells.empty());
        continue;
      }
      RC_ASSERT(coarse.map == in_bins(plain, coarse.map.bin));
      RC_ASSERT(coarse.map == coarsened(plain, most));
      RC_ASSERT(coarse.map.cells.size() <= most);
    }
    // The indices once more, from the cells.
    double sum = 0;
    std::set<std::uint32_t> sharing;
    for (const MapCell& cell : plain.cells) {
      sum += static_cast<double>(cell.value);
      sharing.insert({cell.row, cell.column});
    }
    RC_ASSERT(exact.sharing_blocks == sharing.size());
    const auto n = static_cast<double>(sharing.size());
    const double possible = n * (n - 1) / 2 * static_cast<double>(runs.accesses.size()) *
                            static_cast<double>(runs.threads());
    RC_ASSERT(std::abs(exact.degree_of_sharing - (n >= 2 ? sum / possible : 0)) < 1e-12);
  }
}

// All blocks read one word, every other block another one: 2^33 pairs.
TEST(InterMap, counts_what_many_blocks_share_without_making_their_pairs) {
  constexpr std::uint32_t blocks = 1U << 17U;
  AccessRuns runs;
  runs.grid = {blocks, 1, 1};
  runs.block = {1, 1, 1};
  runs.accesses.resize(2);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    runs.runs.push_back({.address = 0x1000, .block = b, .access = 0});
    if (b % 2 == 0) runs.runs.push_back({.address = 0x2000, .block = b, .access = 1});
  }
  const double all = blocks;
  const double pairs = all * (all - 1) / 2;
  const double half = all / 2;
  for (const Count count : all_counts) {
    const InterResult result = inter_map(runs, Granularity::element, count, 1000);
    EXPECT_EQ(result.sharing_blocks, blocks);
    EXPECT_EQ(static_cast<double>(result.sharing_pairs), pairs);
    EXPECT_DOUBLE_EQ(result.degree_of_sharing, (pairs + half * (half - 1) / 2) / (pairs * 2));
    EXPECT_LE(result.map.cells.size(), 1000U);
  }
}

RC_GTEST_PROP(InterMap, no_cell_of_the_access_count_exceeds_threads_times_loads, ()) {
  const AccessRuns runs = any_runs();
  const InterResult result = inter_map(runs, Granularity::line, Count::accesses);
  for (const MapCell& cell : result.map.cells)
    RC_ASSERT(cell.value <= runs.threads() * runs.accesses.size());
  RC_ASSERT(result.degree_of_sharing <= 1 + 1e-12);
}

}  // namespace
}  // namespace demarc::locality
