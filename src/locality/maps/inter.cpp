// Makes the map between blocks by a sweep over the places. Between two neighbouring ends of boxes
// the set of blocks that touch a place is the same, so the work depends on runs, not on accesses.
// The indices come from the sets. Pairs of blocks are made only for the cells of the map.
#include <algorithm>
#include <cmath>

#include "demarc/base/rounding.hpp"
#include "demarc/locality/maps.hpp"
#include "maps/block_sets.hpp"
#include "maps/places.hpp"
#include "maps/sharing.hpp"

namespace demarc::locality {
namespace {

// Cells in any order, summed and sorted at the end and whenever they have grown much. A row stands
// for `bin` blocks.
class Cells {
 public:
  Cells(std::uint32_t blocks, std::uint32_t bin) : bin_(bin), rows_(ceil_div(blocks, bin)) {
    if (bin_ > 1) sums_.resize(std::size_t{rows_} * rows_, 0);
  }

  [[nodiscard]] std::uint32_t bin() const { return bin_; }
  void add(std::uint32_t row, std::uint32_t column, std::uint64_t value) {
    if (value == 0) return;
    if (bin_ > 1) {
      sums_[std::size_t{row} * rows_ + column] += value;
      return;
    }
    cells_.push_back({row, column, value});
    if (cells_.size() >= limit_) {
      combine();
      limit_ = std::max<std::size_t>(limit_, 2 * cells_.size());
    }
  }
  // `value` for each pair of the block with first .. end - 1, all later ones.
  void add_pairs(std::uint32_t block, std::uint32_t first, std::uint32_t end, std::uint64_t value) {
    while (first < end) {
      const std::uint32_t column = first / bin_;
      const std::uint32_t next = std::min(end, bin_ == 1 ? first + 1 : (column + 1) * bin_);
      add(block / bin_, column, value * (next - first));
      first = next;
    }
  }
  std::vector<MapCell> take() {
    for (std::uint32_t row = 0; row < rows_ && bin_ > 1; ++row)
      for (std::uint32_t column = row; column < rows_; ++column)
        if (const std::uint64_t sum = sums_[std::size_t{row} * rows_ + column]; sum > 0)
          cells_.push_back({row, column, sum});
    if (bin_ == 1) combine();
    return std::move(cells_);
  }

 private:
  void combine() {
    std::sort(cells_.begin(), cells_.end(), [](const MapCell& x, const MapCell& y) {
      return x.row != y.row ? x.row < y.row : x.column < y.column;
    });
    std::size_t out = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (out > 0 && cells_[out - 1].row == cells_[i].row &&
          cells_[out - 1].column == cells_[i].column)
        cells_[out - 1].value += cells_[i].value;
      else
        cells_[out++] = cells_[i];
    }
    cells_.resize(out);
  }

  std::uint32_t bin_;
  std::uint32_t rows_;
  std::vector<std::uint64_t> sums_;  // rows x rows, of a map with bins
  std::vector<MapCell> cells_;
  std::size_t limit_ = std::size_t{1} << 22U;
};

// Threads begin .. end-1 touch a place of set `set`.
struct ThreadEntry {
  std::uint32_t set = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// The threads of one block that execute one repeated access: with which blocks they share. Calls
// f(block, threads, blocks) for threads with the same blocks.
class RepeatedThreads {
 public:
  explicit RepeatedThreads(BlockUnions& unions) : unions_(unions) {}

  template <class F>
  void count(std::uint32_t block, std::vector<ThreadEntry>& entries, F&& f) {
    for (ThreadEntry& entry : entries) entry.set = unions_.list_of(entry.set);
    std::sort(entries.begin(), entries.end(), [](const ThreadEntry& a, const ThreadEntry& b) {
      return a.set != b.set ? a.set < b.set : a.begin < b.begin;
    });
    std::vector<ThreadEntry> merged;
    for (const ThreadEntry& entry : entries) {
      if (!merged.empty() && merged.back().set == entry.set && entry.begin <= merged.back().end)
        merged.back().end = std::max(merged.back().end, entry.end);
      else
        merged.push_back(entry);
    }
    std::vector<std::uint32_t> ends;
    for (const ThreadEntry& entry : merged) {
      ends.push_back(entry.begin);
      ends.push_back(entry.end);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      lists_.clear();
      for (const ThreadEntry& entry : merged)
        if (entry.begin <= ends[i] && entry.end > ends[i]) lists_.push_back(entry.set);
      if (!lists_.empty()) f(block, ends[i + 1] - ends[i], unions_.of(lists_));
    }
  }

 private:
  BlockUnions& unions_;
  std::vector<std::uint32_t> lists_;
};

template <class F>
void count_repeated(const AccessRuns& runs, BoxMaker& maker, const std::vector<bool>& repeated,
                    const Sharing& sharing, BlockUnions& unions, F&& f) {
  RepeatedThreads threads(unions);
  const std::vector<std::size_t> starts = block_starts(runs);
  std::vector<std::vector<ThreadEntry>> entries(runs.accesses.size());
  std::vector<Box> boxes;
  for (std::uint32_t block = 0; block + 1 < starts.size(); ++block) {
    for (std::size_t r = starts[block]; r < starts[block + 1]; ++r) {
      const Run& run = runs.runs[r];
      if (!repeated[run.access]) continue;
      boxes.clear();
      maker.make(run, boxes);
      for (const Box& box : boxes)
        sharing.for_each_set(box, [&](std::uint32_t set, std::uint32_t first, std::uint32_t count) {
          const ThreadRange range = threads_of(run, box.reversed, first, count);
          entries[run.access].push_back({set, range.begin, range.end});
        });
    }
    for (std::vector<ThreadEntry>& list : entries) {
      if (!list.empty()) threads.count(block, list, f);
      list.clear();
    }
  }
}

// What the pairs of the blocks count at one place, all of them together.
std::uint64_t pairs_among(const BlockWeight* begin, const BlockWeight* end, Count count,
                          std::vector<std::uint64_t>& weights) {
  const auto k = static_cast<std::uint64_t>(end - begin);
  if (count == Count::distinct) return k * (k - 1) / 2;
  weights.clear();
  for (const BlockWeight* it = begin; it != end; ++it) weights.push_back(it->weight);
  // multiset: of each pair the smaller weight, so the i-th smallest counts k - 1 - i times;
  // accesses: of each pair the lower-numbered block's.
  if (count == Count::multiset) std::sort(weights.begin(), weights.end());
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < k; ++i) sum += weights[i] * (k - 1 - i);
  return sum;
}

// Blocks of a set that fall in one bin.
struct BinPart {
  const BlockWeight* begin = nullptr;
  const BlockWeight* end = nullptr;
  std::uint64_t sum = 0;               // sum of the weights
  std::vector<std::uint64_t> weights;  // ascending; for Count::multiset
  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(end - begin); }
};

// What the pairs of a block of `a` and a block of `b`, which stands behind, count at one place.
std::uint64_t pairs_between(const BinPart& a, const BinPart& b, Count count) {
  if (count == Count::distinct) return a.size() * b.size();
  if (count == Count::accesses) return a.sum * b.size();
  std::uint64_t sum = 0;
  std::uint64_t smaller = 0;  // the sum of b's weights up to a's
  std::size_t j = 0;
  for (const std::uint64_t weight : a.weights) {
    while (j < b.weights.size() && b.weights[j] <= weight) smaller += b.weights[j++];
    sum += smaller + weight * (b.weights.size() - j);
  }
  return sum;
}

// Blocks a row stands for so that the triangle has at most `max_cells` cells.
std::uint32_t bin_for(std::uint32_t blocks, std::uint64_t max_cells) {
  if (max_cells == 0) return 1;
  const double rows =
      std::max(1.0, std::floor(std::sqrt(2.0 * static_cast<double>(max_cells)) - 1));
  return static_cast<std::uint32_t>(std::ceil(blocks / rows));
}

// Non-empty cells of the map, and the blocks that share.
struct Pairs {
  std::uint64_t cells = 0;
  std::uint32_t blocks = 0;
};
Pairs count_pairs(const AccessRuns& runs, BlockUnions& unions) {
  std::vector<std::vector<std::uint32_t>> lists(runs.blocks());
  for (std::uint32_t list = 0; list < unions.lists().size(); ++list)
    for (const BlockUnion::Interval& one : unions.lists()[list].intervals())
      for (std::uint32_t block = one.first; block < one.end; ++block) lists[block].push_back(list);
  Pairs result;
  for (std::uint32_t block = 0; block < lists.size(); ++block) {
    if (lists[block].empty()) continue;
    ++result.blocks;
    result.cells += unions.of(lists[block]).later(block);
  }
  return result;
}

// The pairs of one set, at all its places.
void add_set(const BlockSets& sets, std::uint32_t set, Count count, Cells& cells) {
  const std::uint64_t places = sets.places(set);
  const BlockWeight* const end = sets.end(set);
  if (cells.bin() == 1) {
    for (const BlockWeight* i = sets.begin(set); i != end; ++i) {
      if (count == Count::accesses && i->weight == 0) continue;
      for (const BlockWeight* j = i + 1; j != end; ++j) {
        const std::uint64_t each = count == Count::accesses   ? i->weight
                                   : count == Count::distinct ? 1
                                                              : std::min(i->weight, j->weight);
        cells.add(i->block, j->block, each * places);
      }
    }
    return;
  }
  const std::uint32_t bin = cells.bin();
  std::vector<BinPart> parts;
  for (const BlockWeight* it = sets.begin(set); it != end; ++it) {
    if (parts.empty() || parts.back().begin->block / bin != it->block / bin)
      parts.push_back({it, it, 0, {}});
    parts.back().end = it + 1;
    parts.back().sum += it->weight;
    if (count == Count::multiset) parts.back().weights.push_back(it->weight);
  }
  for (BinPart& part : parts) std::sort(part.weights.begin(), part.weights.end());
  std::vector<std::uint64_t> weights;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::uint32_t row = parts[p].begin->block / bin;
    cells.add(row, row, places * pairs_among(parts[p].begin, parts[p].end, count, weights));
    for (std::size_t q = p + 1; q < parts.size(); ++q)
      cells.add(row, parts[q].begin->block / bin,
                places * pairs_between(parts[p], parts[q], count));
  }
}

// Sets of the same blocks, whatever their weights, are one.
std::vector<SharedPlaces> shared_places(const BlockSets& sets, const BlockUnions& unions) {
  std::vector<SharedPlaces> shared(unions.lists().size());
  for (std::uint32_t set = 0; set < sets.size(); ++set) {
    SharedPlaces& of = shared[unions.list_of(set)];
    of.places += sets.places(set);
    if (!of.blocks.empty()) continue;
    for (const BlockWeight* it = sets.begin(set); it != sets.end(set); ++it)
      of.blocks.push_back(it->block);
  }
  return shared;
}

}  // namespace

LocalityMap coarsened(const LocalityMap& map, std::uint64_t max_cells) {
  if (map.bin > 1 || map.cells.size() <= max_cells) return map;
  LocalityMap result;
  result.size = map.size;
  result.bin = bin_for(map.size, max_cells);
  Cells cells(map.size, result.bin);
  for (const MapCell& cell : map.cells)
    cells.add(cell.row / result.bin, cell.column / result.bin, cell.value);
  result.cells = cells.take();
  return result;
}

InterResult inter_map(const AccessRuns& runs, Granularity granularity, Count count,
                      std::uint64_t max_cells) {
  BoxMaker maker(runs, granularity);
  const std::vector<bool> repeated = repeated_accesses(runs);
  const bool by_thread = count == Count::accesses;
  const bool any_repeated =
      by_thread && std::find(repeated.begin(), repeated.end(), true) != repeated.end();
  const std::vector<bool> weightless =
      by_thread ? repeated : std::vector<bool>(repeated.size(), false);
  Sharing sharing(runs, maker, any_repeated);
  sharing.add_all(weightless);
  BlockUnions unions(sharing.sets);
  const Pairs pairs = count_pairs(runs, unions);

  InterResult result;
  result.map.size = runs.blocks();
  const bool wants_map = max_cells > 0;
  if (pairs.cells > max_cells) result.map.bin = bin_for(runs.blocks(), max_cells);
  Cells cells(runs.blocks(), result.map.bin);
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> weights;
  for (std::uint32_t set = 0; set < sharing.sets.size(); ++set) {
    sum += sharing.sets.places(set) *
           pairs_among(sharing.sets.begin(set), sharing.sets.end(set), count, weights);
    if (wants_map) add_set(sharing.sets, set, count, cells);
  }
  if (any_repeated) {
    count_repeated(runs, maker, repeated, sharing, unions,
                   [&](std::uint32_t block, std::uint32_t threads, const BlockUnion& blocks) {
                     sum += threads * blocks.later(block);
                     if (!wants_map) return;
                     blocks.for_each_later(block, [&](std::uint32_t first, std::uint32_t end) {
                       cells.add_pairs(block, first, end, threads);
                     });
                   });
  }
  result.map.cells = cells.take();
  if (wants_map && result.map.bin == 1) result.sets = shared_places(sharing.sets, unions);
  result.places = sharing.places;
  result.shared_places = sharing.shared_places;
  result.sharing_blocks = pairs.blocks;
  result.sharing_pairs = pairs.cells;
  for (std::size_t a = 0; a < runs.accesses.size(); ++a)
    result.blocks_per_place.push_back(
        sharing.touched[a] > 0 ? sharing.reached[a] / sharing.touched[a] : 0);
  const double sharers = result.sharing_blocks;
  const double blocks = runs.blocks();
  const double loads = static_cast<double>(runs.accesses.size());
  if (result.sharing_blocks >= 2) {
    result.degree_of_sharing =
        static_cast<double>(sum) / (sharers * (sharers - 1) / 2 * loads * runs.threads());
    result.paver_degree_of_sharing = static_cast<double>(result.shared_places) / sharers;
  }
  result.appearance_frequency = blocks > 0 ? sharers / blocks : 0;
  result.spscore = 1 - 2 * static_cast<double>(pairs.cells) / (blocks * blocks);
  return result;
}

}  // namespace demarc::locality
