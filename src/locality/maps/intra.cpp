// Makes the map between the threads of a block. Blocks whose runs are translated copies of each
// other give the same map. So each such class is computed once, place by place, with sets of
// threads.
#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "demarc/base/hash.hpp"
#include "demarc/locality/maps.hpp"
#include "maps/box_sweep.hpp"
#include "maps/boxes.hpp"
#include "maps/places.hpp"

namespace demarc::locality {
namespace {

constexpr std::size_t max_words = 16;  // 1024 threads
using ThreadSet = std::array<std::uint64_t, max_words>;

struct Fingerprint {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};
struct FingerprintHash {
  std::size_t operator()(const Fingerprint& f) const { return f.a ^ (f.b << 1U); }
};

// Equal for blocks whose runs differ only by moving groups of places that share nothing with each
// other. Two hashes of 64 bits: a collision among a million blocks has a chance below 10^-26.
Fingerprint fingerprint_of(const AccessRuns& runs, const Run* begin, const Run* end,
                           const std::vector<Places>& places,
                           std::vector<std::pair<std::uint64_t, const Run*>>& order) {
  order.clear();
  const auto low_address = [&runs](const Run& run) {
    const Loop& loop = runs.loop_of(run);
    std::uint64_t low = run.address;
    if (run.stride < 0) low += static_cast<std::uint64_t>(run.stride) * (run.count - 1);
    if (loop.stride < 0) low += static_cast<std::uint64_t>(loop.stride) * (loop.trips - 1);
    return low;
  };
  for (const Run* run = begin; run != end; ++run) order.emplace_back(low_address(*run), run);
  std::sort(order.begin(), order.end());
  Fingerprint total;
  Fingerprint group;
  std::uint64_t origin = 0;
  std::uint64_t last_place = 0;
  bool open = false;
  const auto close = [&] {
    if (!open) return;
    total.a += hash_of(group.a, 1U);
    total.b += hash_of(group.b, 2U);
    group = {};
  };
  for (const auto& [low, run] : order) {
    const Places& numbering = places[run->access];
    const Loop& loop = runs.loop_of(*run);
    const auto length = [](std::int64_t stride, std::uint32_t count) {
      return static_cast<std::uint64_t>(stride < 0 ? -stride : stride) * (count - 1);
    };
    const std::uint64_t span = length(run->stride, run->count) + length(loop.stride, loop.trips);
    const std::uint64_t first = low / numbering.unit + numbering.base;
    const std::uint64_t last = (low + span) / numbering.unit + numbering.base;
    if (!open || first > last_place) {
      close();
      origin = low / numbering.unit * numbering.unit;
      last_place = last;
      open = true;
    }
    last_place = std::max(last_place, last);
    for (const std::uint64_t value :
         {low - origin, static_cast<std::uint64_t>(run->stride),
          (std::uint64_t{run->count} << 32U) | (std::uint64_t{run->thread} << 16U) | run->access,
          std::uint64_t{run->request > 0}, std::uint64_t{loop.trips},
          static_cast<std::uint64_t>(loop.stride)}) {
      group.a = hash_of(group.a, value);
      group.b = hash_of(value, group.b);
    }
  }
  close();
  return total;
}

struct Touch {
  std::uint64_t place = 0;
  std::uint64_t times = 1;
  std::uint16_t thread = 0;
  std::uint16_t access = 0;
};

struct BlockSharing {
  double sum = 0;             // sum of the cells
  std::uint32_t sharing = 0;  // TH_l
};

class BlockMap {
 public:
  BlockMap(const AccessRuns& runs, Granularity granularity, Count count)
      : places_(places_of(runs, granularity)),
        maker_(runs, granularity),
        threads_(runs.threads()),
        words_((runs.threads() + 63) / 64),
        count_(count) {}

  [[nodiscard]] const std::vector<Places>& places() const { return places_; }

  // Sum of the cells and threads that share; adds the cells to `dense` (threads x threads) unless
  // that is null.
  BlockSharing measure(const Run* begin, const Run* end, std::vector<std::uint64_t>* dense) {
    shares_.fill(0);
    unions_.clear();
    sum_ = 0;
    dense_ = dense;
    const auto loops = [](const Run& run) { return run.loop != 0; };
    if (std::any_of(begin, end, loops))
      measure_boxes(begin, end);
    else
      measure_touches(begin, end);
    BlockSharing result{sum_, 0};
    if (count_ == Count::accesses) result.sum += union_sharing(dense);
    for (const std::uint64_t word : shares_)
      result.sharing += static_cast<std::uint32_t>(std::popcount(word));
    return result;
  }

  void enter(std::size_t, std::uint64_t, std::uint64_t) {}
  void leave(std::size_t, std::uint64_t, std::uint64_t) {}
  // The places of a cell have the same touches.
  void cell(std::uint64_t, std::uint64_t, std::uint64_t places,
            const std::vector<const Box*>& boxes) {
    touches_.clear();
    for (const Box* box : boxes)
      for (std::uint32_t t = 0; t < box->width; ++t)
        touches_.push_back(
            {0, box->weight / box->width, static_cast<std::uint16_t>(box->owner + t), box->access});
    std::sort(touches_.begin(), touches_.end(),
              [](const Touch& a, const Touch& b) { return a.thread < b.thread; });
    if (touches_.front().thread != touches_.back().thread)
      sum_ += place_sharing(0, touches_.size(), places);
  }

 private:
  // Boxes whose owners are threads; `width` of them touch each place.
  void measure_boxes(const Run* begin, const Run* end) {
    std::vector<std::vector<Box>> boxes(maker_.clusters());
    std::vector<Box> of_run;
    for (const Run* run = begin; run != end; ++run) {
      of_run.clear();
      maker_.make(*run, of_run);
      for (const Box& box : of_run) add_threads(*run, box, boxes[maker_.cluster_of(run->access)]);
    }
    BoxSweep<BlockMap> sweep(*this);
    for (std::size_t cluster = 0; cluster < boxes.size(); ++cluster)
      sweep.run(boxes[cluster], maker_.levels(cluster));
  }
  static void add_threads(const Run& run, Box box, std::vector<Box>& out) {
    const std::uint8_t level = box.thread_level;
    const std::uint64_t digits = level == Box::no_level ? 1 : box.hi[level] - box.lo[level];
    for (std::uint64_t i = 0; i < digits; ++i) {
      Box one = box;
      if (level != Box::no_level) {
        one.lo[level] += i;
        one.hi[level] = one.lo[level] + 1;
      }
      one.owner = threads_of(run, box.reversed,
                             box.first + static_cast<std::uint32_t>(i) * box.width, box.width)
                      .begin;
      out.push_back(one);
    }
  }

  void measure_touches(const Run* begin, const Run* end) {
    gather(begin, end);
    for (std::size_t first = 0; first < touches_.size();) {
      std::size_t last = first;
      while (last < touches_.size() && touches_[last].place == touches_[first].place) ++last;
      if (touches_[first].thread != touches_[last - 1].thread)
        sum_ += place_sharing(first, last, 1);
      first = last;
    }
  }

  void gather(const Run* begin, const Run* end) {
    touches_.clear();
    for (const Run* run = begin; run != end; ++run) {
      for_each_interval(*run, places_[run->access], [&](const Interval& interval) {
        for (std::uint32_t k = 0; k < interval.length; ++k) {
          const ThreadRange range = threads_of(*run, interval.reversed,
                                               interval.first + k * interval.width, interval.width);
          for (std::uint32_t t = range.begin; t < range.end; ++t)
            touches_.push_back({interval.lo + k, 1, static_cast<std::uint16_t>(t), run->access});
        }
      });
    }
    std::sort(touches_.begin(), touches_.end(), [](const Touch& a, const Touch& b) {
      return a.place != b.place ? a.place < b.place : a.thread < b.thread;
    });
  }

  // `places` places touched alike by two threads or more.
  double place_sharing(std::size_t first, std::size_t last, std::uint64_t places) {
    ThreadSet set{};
    counts_.clear();
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t t = touches_[i].thread;
      set[t / 64] |= std::uint64_t{1} << (t % 64);
      if (counts_.empty() || counts_.back().first != t)
        counts_.emplace_back(t, touches_[i].times);
      else
        counts_.back().second += touches_[i].times;
    }
    for (std::size_t w = 0; w < words_; ++w) shares_[w] |= set[w];
    if (count_ == Count::accesses) {
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t key = (std::uint32_t{touches_[i].thread} << 16U) | touches_[i].access;
        auto [it, fresh] = unions_.try_emplace(key, set);
        if (!fresh)
          for (std::size_t w = 0; w < words_; ++w) it->second[w] |= set[w];
      }
      return 0;
    }
    double sum = 0;
    if (dense_ != nullptr) {
      for (std::size_t i = 0; i < counts_.size(); ++i)
        for (std::size_t j = i + 1; j < counts_.size(); ++j)
          (*dense_)[std::size_t{counts_[i].first} * threads_ + counts_[j].first] +=
              places *
              (count_ == Count::distinct ? 1 : std::min(counts_[i].second, counts_[j].second));
    }
    const auto n = static_cast<double>(counts_.size());
    const auto times = static_cast<double>(places);
    if (count_ == Count::distinct) return times * n * (n - 1) / 2;
    // For each pair the smaller count: the k-th smallest is the smaller one of n - 1 - k pairs.
    std::sort(counts_.begin(), counts_.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    for (std::size_t k = 0; k < counts_.size(); ++k)
      sum += static_cast<double>(counts_[k].second) * (n - 1 - static_cast<double>(k));
    return times * sum;
  }

  // Every (thread, access): the later threads that share one of its places.
  double union_sharing(std::vector<std::uint64_t>* dense) {
    double sum = 0;
    for (const auto& [key, set] : unions_) {
      const std::uint32_t t = key >> 16U;
      for (std::size_t w = t / 64; w < words_; ++w) {
        std::uint64_t word = set[w];
        if (w == t / 64) word &= t % 64 == 63 ? 0 : ~std::uint64_t{0} << (t % 64 + 1);
        sum += std::popcount(word);
        if (dense == nullptr) continue;
        for (; word != 0; word &= word - 1)
          ++(*dense)[std::size_t{t} * threads_ + w * 64 +
                     static_cast<std::size_t>(std::countr_zero(word))];
      }
    }
    return sum;
  }

  std::vector<Places> places_;
  BoxMaker maker_;
  std::uint32_t threads_;
  std::size_t words_;
  Count count_;
  std::vector<Touch> touches_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counts_;  // thread, touches
  std::unordered_map<std::uint32_t, ThreadSet> unions_;          // by thread << 16 | access
  ThreadSet shares_{};
  double sum_ = 0;
  std::vector<std::uint64_t>* dense_ = nullptr;
};

}  // namespace

IntraResult intra_map(const AccessRuns& runs, Granularity granularity, Count count) {
  const std::vector<std::size_t> starts = block_starts(runs);
  const std::uint32_t threads = runs.threads();
  BlockMap measure(runs, granularity, count);
  std::unordered_map<Fingerprint, BlockSharing, FingerprintHash> known;
  std::vector<std::pair<std::uint64_t, const Run*>> order;

  IntraResult result;
  double sum = 0;
  double possible = 0;
  double sharing = 0;
  std::uint64_t most = 0;
  for (std::uint32_t block = 0; block < runs.blocks(); ++block) {
    const Run* const begin = runs.runs.data() + starts[block];
    const Run* const end = runs.runs.data() + starts[block + 1];
    std::uint64_t executed = 0;
    for (const Run* run = begin; run != end; ++run)
      executed += std::uint64_t{run->count} * runs.loop_of(*run).trips;
    if (executed > most) {
      most = executed;
      result.map_block = block;
    }
    if (begin == end) continue;
    const Fingerprint fingerprint = fingerprint_of(runs, begin, end, measure.places(), order);
    auto it = known.find(fingerprint);
    if (it == known.end()) {
      it = known.emplace(fingerprint, measure.measure(begin, end, nullptr)).first;
      ++result.distinct_blocks;
    }
    const double n = it->second.sharing;
    sum += it->second.sum;
    possible += n * (n - 1) / 2;
    sharing += n;
  }
  if (possible > 0)
    result.degree_of_sharing = sum / (possible * static_cast<double>(runs.accesses.size()));
  if (runs.blocks() > 0 && threads > 0)
    result.appearance_frequency = sharing / (static_cast<double>(runs.blocks()) * threads);

  std::vector<std::uint64_t> dense(std::size_t{threads} * threads, 0);
  measure.measure(runs.runs.data() + starts[result.map_block],
                  runs.runs.data() + starts[result.map_block + 1], &dense);
  result.map.size = threads;
  for (std::uint32_t t = 0; t < threads; ++t)
    for (std::uint32_t u = t + 1; u < threads; ++u)
      if (dense[std::size_t{t} * threads + u] > 0)
        result.map.cells.push_back({t, u, dense[std::size_t{t} * threads + u]});
  return result;
}

}  // namespace demarc::locality
