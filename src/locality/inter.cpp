// The map between blocks: a sweep over the places. Between two neighbouring interval ends the set
// of blocks that touch a place is the same, so the work depends on runs, not on accesses; equal
// sets are counted together and expanded into pairs once.
#include <algorithm>
#include <unordered_map>

#include "demarc/locality/maps.hpp"
#include "places.hpp"

namespace demarc::locality {
namespace {

struct Piece {
  std::uint64_t lo = 0;
  std::uint64_t end = 0;
  std::uint32_t block = 0;
  std::uint32_t weight = 0;
};

struct BlockWeight {
  std::uint32_t block = 0;
  std::uint64_t weight = 0;
  friend bool operator==(const BlockWeight&, const BlockWeight&) = default;
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32U);
}

// Lists of blocks with their weights, each kept once, with the number of places it holds for.
class BlockSets {
 public:
  std::uint32_t intern(const std::vector<BlockWeight>& list) {
    std::uint64_t hash = list.size();
    for (const BlockWeight& entry : list) hash = mixed(mixed(hash, entry.block), entry.weight);
    auto [it, fresh] = ids_.try_emplace(hash, static_cast<std::uint32_t>(begins_.size()));
    // A different list with the same hash gets an entry of its own under the next free hash.
    while (!fresh && !equals(it->second, list))
      std::tie(it, fresh) = ids_.try_emplace(++hash, static_cast<std::uint32_t>(begins_.size()));
    if (fresh) {
      begins_.push_back(entries_.size());
      entries_.insert(entries_.end(), list.begin(), list.end());
      places_.push_back(0);
    }
    return it->second;
  }
  void add_places(std::uint32_t id, std::uint64_t count) { places_[id] += count; }

  [[nodiscard]] std::size_t size() const { return begins_.size(); }
  [[nodiscard]] std::uint64_t places(std::uint32_t id) const { return places_[id]; }
  [[nodiscard]] const BlockWeight* begin(std::uint32_t id) const {
    return entries_.data() + begins_[id];
  }
  [[nodiscard]] const BlockWeight* end(std::uint32_t id) const {
    return entries_.data() + (id + 1 < begins_.size() ? begins_[id + 1] : entries_.size());
  }

 private:
  [[nodiscard]] bool equals(std::uint32_t id, const std::vector<BlockWeight>& list) const {
    return std::equal(begin(id), end(id), list.begin(), list.end());
  }

  std::vector<std::size_t> begins_;
  std::vector<BlockWeight> entries_;
  std::vector<std::uint64_t> places_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

// Cells in any order, summed and sorted at the end and whenever they have grown much.
class Cells {
 public:
  void add(std::uint32_t row, std::uint32_t column, std::uint64_t value) {
    if (value == 0) return;
    cells_.push_back({row, column, value});
    if (cells_.size() >= limit_) {
      combine();
      limit_ = std::max<std::size_t>(limit_, 2 * cells_.size());
    }
  }
  std::vector<MapCell> take() {
    combine();
    return std::move(cells_);
  }

 private:
  void combine() {
    std::sort(cells_.begin(), cells_.end(), [](const MapCell& a, const MapCell& b) {
      return a.row != b.row ? a.row < b.row : a.column < b.column;
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

  std::vector<MapCell> cells_;
  std::size_t limit_ = std::size_t{1} << 22U;
};

// Places lo .. end-1 that are touched by the blocks of set `set`, two or more.
struct Segment {
  std::uint64_t lo = 0;
  std::uint64_t end = 0;
  std::uint32_t set = 0;
};

class Sweep {
 public:
  Sweep(std::vector<Piece> pieces, bool keep_segments)
      : pieces_(std::move(pieces)), keep_segments_(keep_segments) {
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
      return a.lo != b.lo ? a.lo < b.lo : a.block < b.block;
    });
  }

  void run() {
    std::size_t next = 0;
    std::uint64_t at = 0;
    while (next < pieces_.size() || !active_.empty()) {
      if (active_.empty()) at = pieces_[next].lo;
      while (next < pieces_.size() && pieces_[next].lo == at) insert(pieces_[next++]);
      std::uint64_t end = next < pieces_.size() ? pieces_[next].lo : ~std::uint64_t{0};
      for (const Piece& piece : active_) end = std::min(end, piece.end);
      emit(at, end);
      std::erase_if(active_, [end](const Piece& piece) { return piece.end == end; });
      at = end;
    }
  }

  BlockSets sets;
  std::vector<Segment> segments;
  std::uint64_t places = 0;
  std::uint64_t shared_places = 0;

 private:
  // Active pieces stand in the order of their blocks.
  void insert(const Piece& piece) {
    const auto place =
        std::upper_bound(active_.begin(), active_.end(), piece,
                         [](const Piece& a, const Piece& b) { return a.block < b.block; });
    active_.insert(place, piece);
  }

  void emit(std::uint64_t lo, std::uint64_t end) {
    places += end - lo;
    if (active_.front().block == active_.back().block) return;
    shared_places += end - lo;
    list_.clear();
    for (const Piece& piece : active_) {
      if (list_.empty() || list_.back().block != piece.block)
        list_.push_back({piece.block, piece.weight});
      else
        list_.back().weight += piece.weight;
    }
    const std::uint32_t set = sets.intern(list_);
    sets.add_places(set, end - lo);
    if (keep_segments_) segments.push_back({lo, end, set});
  }

  std::vector<Piece> pieces_;
  bool keep_segments_;
  std::vector<Piece> active_;
  std::vector<BlockWeight> list_;
};

// Threads begin .. end-1 touch a place of set `set`.
struct ThreadEntry {
  std::uint32_t set = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// The threads of one block that execute one repeated access: how many of them share with each later
// block. Threads with the same sets are counted together.
class RepeatedThreads {
 public:
  explicit RepeatedThreads(const BlockSets& sets) : sets_(sets) {}

  void count(std::uint32_t block, std::vector<ThreadEntry>& entries, Cells& cells) {
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
      later_.clear();
      for (const ThreadEntry& entry : merged) {
        if (entry.begin > ends[i] || entry.end <= ends[i]) continue;
        for (const BlockWeight* it = sets_.begin(entry.set); it != sets_.end(entry.set); ++it)
          if (it->block > block) later_.push_back(it->block);
      }
      std::sort(later_.begin(), later_.end());
      later_.erase(std::unique(later_.begin(), later_.end()), later_.end());
      for (const std::uint32_t other : later_) cells.add(block, other, ends[i + 1] - ends[i]);
    }
  }

 private:
  const BlockSets& sets_;
  std::vector<std::uint32_t> later_;
};

void count_repeated(const AccessRuns& runs, const std::vector<Places>& places,
                    const std::vector<bool>& repeated, const Sweep& sweep, Cells& cells) {
  RepeatedThreads threads(sweep.sets);
  const std::vector<std::size_t> starts = block_starts(runs);
  std::vector<std::vector<ThreadEntry>> entries(runs.accesses.size());
  for (std::uint32_t block = 0; block + 1 < starts.size(); ++block) {
    for (std::size_t r = starts[block]; r < starts[block + 1]; ++r) {
      const Run& run = runs.runs[r];
      if (!repeated[run.access]) continue;
      for_each_interval(run, places[run.access], [&](const Interval& interval) {
        const std::uint64_t end = interval.lo + interval.length;
        auto segment = std::upper_bound(
            sweep.segments.begin(), sweep.segments.end(), interval.lo,
            [](std::uint64_t place, const Segment& one) { return place < one.end; });
        for (; segment != sweep.segments.end() && segment->lo < end; ++segment) {
          const std::uint64_t from = std::max(segment->lo, interval.lo) - interval.lo;
          const std::uint64_t to = std::min(segment->end, end) - interval.lo;
          const ThreadRange range =
              threads_of(run, interval.reversed,
                         interval.first + static_cast<std::uint32_t>(from) * interval.width,
                         static_cast<std::uint32_t>(to - from) * interval.width);
          entries[run.access].push_back({segment->set, range.begin, range.end});
        }
      });
    }
    for (std::vector<ThreadEntry>& list : entries) {
      if (!list.empty()) threads.count(block, list, cells);
      list.clear();
    }
  }
}

}  // namespace

InterResult inter_map(const AccessRuns& runs, Granularity granularity, Count count) {
  const std::vector<Places> places = places_of(runs, granularity);
  const std::vector<bool> repeated = repeated_accesses(runs);
  const bool by_thread = count == Count::accesses;
  const bool any_repeated =
      by_thread && std::find(repeated.begin(), repeated.end(), true) != repeated.end();

  std::vector<Piece> pieces;
  pieces.reserve(runs.runs.size());
  for (const Run& run : runs.runs) {
    const bool weightless = by_thread && repeated[run.access];
    for_each_interval(run, places[run.access], [&](const Interval& interval) {
      pieces.push_back(
          {interval.lo, interval.lo + interval.length, run.block, weightless ? 0 : interval.width});
    });
  }
  Sweep sweep(std::move(pieces), any_repeated);
  sweep.run();

  Cells cells;
  for (std::uint32_t set = 0; set < sweep.sets.size(); ++set) {
    const std::uint64_t n = sweep.sets.places(set);
    const BlockWeight* const end = sweep.sets.end(set);
    for (const BlockWeight* i = sweep.sets.begin(set); i != end; ++i) {
      if (by_thread && i->weight == 0) continue;
      for (const BlockWeight* j = i + 1; j != end; ++j) {
        const std::uint64_t each = count == Count::accesses   ? i->weight
                                   : count == Count::distinct ? 1
                                                              : std::min(i->weight, j->weight);
        cells.add(i->block, j->block, each * n);
      }
    }
  }
  if (any_repeated) count_repeated(runs, places, repeated, sweep, cells);

  InterResult result;
  result.map.size = runs.blocks();
  result.map.cells = cells.take();
  result.places = sweep.places;
  result.shared_places = sweep.shared_places;
  std::vector<bool> shares(runs.blocks(), false);
  double sum = 0;
  for (const MapCell& cell : result.map.cells) {
    sum += static_cast<double>(cell.value);
    shares[cell.row] = shares[cell.column] = true;
  }
  result.sharing_blocks =
      static_cast<std::uint32_t>(std::count(shares.begin(), shares.end(), true));
  const double sharing = result.sharing_blocks;
  const double blocks = runs.blocks();
  const double loads = static_cast<double>(runs.accesses.size());
  if (result.sharing_blocks >= 2) {
    result.degree_of_sharing = sum / (sharing * (sharing - 1) / 2 * loads * runs.threads());
    result.paver_degree_of_sharing = static_cast<double>(result.shared_places) / sharing;
  }
  result.appearance_frequency = blocks > 0 ? sharing / blocks : 0;
  result.spscore = 1 - 2 * static_cast<double>(result.map.cells.size()) / (blocks * blocks);
  return result;
}

}  // namespace demarc::locality
