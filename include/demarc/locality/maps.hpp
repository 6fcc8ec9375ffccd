// Locality maps between thread blocks and between the threads of a block, and the indices drawn
// from them (KNOM Review 2022, section III; PAVER, TACO 2021). Time and memory grow with the number
// of runs and of the cells that a map must have, not with threads or pairs of blocks.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/locality/runs.hpp"

namespace demarc::locality {

// What counts as the same place. element: equal addresses.
enum class Granularity : std::uint32_t {
  element = 0,
  sector = 32,
  line = 128,
  page_4k = 4096,
  page_64k = 65536,
  page_2m = 2097152
};

// What a cell (i, j), i < j, counts.
enum class Count : std::uint8_t {
  // The number of (thread, load) accesses of the lower-numbered block (thread) that have an address
  // which occurs in the other's list. It is at most threads x loads, because a load in a loop
  // counts once per thread.
  accesses,
  multiset,  // sum over addresses of min(count_i, count_j), every execution counted
  distinct   // number of common addresses (LocalityGuru)
};

[[nodiscard]] Result<Granularity> parse_granularity(std::string_view text);
[[nodiscard]] Result<Count> parse_count(std::string_view text);
[[nodiscard]] const char* to_string(Granularity granularity);
[[nodiscard]] const char* to_string(Count count);

struct MapCell {
  std::uint32_t row = 0;  // < column
  std::uint32_t column = 0;
  std::uint64_t value = 0;
  friend bool operator==(const MapCell&, const MapCell&) = default;
};

// The upper triangle of a symmetric map with an empty diagonal. Cells are sorted by (row, column);
// all values are above 0. A coarse map (bin > 1) has the sums over bin x bin pairs; its diagonal
// has those within a bin.
struct LocalityMap {
  std::uint32_t size = 0;  // blocks or threads
  std::uint32_t bin = 1;   // how many of them a row, and a column, stands for
  std::vector<MapCell> cells;

  friend bool operator==(const LocalityMap&, const LocalityMap&) = default;
};

// Places that exactly these blocks touch, two or more, ascending.
struct SharedPlaces {
  std::uint64_t places = 0;
  std::vector<std::uint32_t> blocks;
  friend bool operator==(const SharedPlaces&, const SharedPlaces&) = default;
};

struct InterResult {
  LocalityMap map;                     // between blocks
  std::vector<SharedPlaces> sets;      // what the map is drawn from; empty beside a coarse map
  std::uint64_t sharing_pairs = 0;     // pairs of blocks that share: non-zero cells with bin 1
  std::uint64_t shared_places = 0;     // places touched by two blocks or more
  std::uint64_t places = 0;            // places touched
  std::uint32_t sharing_blocks = 0;    // TB_l
  double degree_of_sharing = 0;        // sum of cells / (C(TB_l, 2) n_ld TH)
  double appearance_frequency = 0;     // TB_l / blocks
  double spscore = 1;                  // 1 - non-zero elements / elements, both triangles
  double paver_degree_of_sharing = 0;  // shared_places / TB_l
  // By access: how many blocks touch a place that it touches, mean over the blocks' places.
  std::vector<double> blocks_per_place;
};

struct IntraResult {
  LocalityMap map;                    // between the threads of block `map_block`
  std::uint32_t map_block = 0;        // the first of the blocks with the most accesses
  std::uint32_t distinct_blocks = 0;  // blocks that are no translated copies of another
  double degree_of_sharing = 0;       // over all blocks: sum of cells / sum of (C(TH_l, 2) n_ld)
  double appearance_frequency = 0;    // over all blocks: threads that share / threads
};

inline constexpr std::uint64_t all_cells = std::numeric_limits<std::uint64_t>::max();

// Every access of `runs` counts as one of the n_ld instructions. The map is exact if it has at most
// `max_cells` cells, else as coarse as necessary. 0: the result has the indices and a map without
// cells.
[[nodiscard]] InterResult inter_map(const AccessRuns& runs, Granularity granularity, Count count,
                                    std::uint64_t max_cells = all_cells);
// The map as it is if it has at most `max_cells` cells, else a coarse one.
[[nodiscard]] LocalityMap coarsened(const LocalityMap& map, std::uint64_t max_cells);
[[nodiscard]] IntraResult intra_map(const AccessRuns& runs, Granularity granularity, Count count);

}  // namespace demarc::locality
