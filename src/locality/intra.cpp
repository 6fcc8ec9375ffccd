// The map between the threads of a block. Blocks whose runs are translated copies of each other
// give the same map: each such class is computed once, place by place with sets of threads.
#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "demarc/base/hash.hpp"
#include "demarc/locality/maps.hpp"
#include "places.hpp"

namespace demarc::locality {
namespace {

constexpr std::size_t most_words = 16;  // 1024 threads
using ThreadSet = std::array<std::uint64_t, most_words>;

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
Fingerprint fingerprint_of(const Run* begin, const Run* end, const std::vector<Places>& places,
                           std::vector<std::pair<std::uint64_t, const Run*>>& order) {
  order.clear();
  const auto low_address = [](const Run& run) {
    return run.stride < 0 ? run.address + static_cast<std::uint64_t>(run.stride) * (run.count - 1)
                          : run.address;
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
    const std::uint64_t span =
        static_cast<std::uint64_t>(run->stride < 0 ? -run->stride : run->stride) * (run->count - 1);
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
          std::uint64_t{run->request > 0}}) {
      group.a = hash_of(group.a, value);
      group.b = hash_of(value, group.b);
    }
  }
  close();
  return total;
}

struct Touch {
  std::uint64_t place = 0;
  std::uint16_t thread = 0;
  std::uint16_t access = 0;
};

struct BlockSharing {
  double sum = 0;             // of the cells
  std::uint32_t sharing = 0;  // TH_l
};

class BlockMap {
 public:
  BlockMap(const std::vector<Places>& places, std::uint32_t threads, Count count)
      : places_(places), threads_(threads), words_((threads + 63) / 64), count_(count) {}

  // Sum of the cells and threads that share; adds the cells to `dense` (threads x threads) unless
  // that is null.
  BlockSharing measure(const Run* begin, const Run* end, std::vector<std::uint64_t>* dense) {
    gather(begin, end);
    shares_.fill(0);
    BlockSharing result;
    unions_.clear();
    for (std::size_t first = 0; first < touches_.size();) {
      std::size_t last = first;
      while (last < touches_.size() && touches_[last].place == touches_[first].place) ++last;
      if (touches_[first].thread != touches_[last - 1].thread)
        result.sum += place_sharing(first, last, dense);
      first = last;
    }
    if (count_ == Count::accesses) result.sum += union_sharing(dense);
    for (const std::uint64_t word : shares_)
      result.sharing += static_cast<std::uint32_t>(std::popcount(word));
    return result;
  }

 private:
  void gather(const Run* begin, const Run* end) {
    touches_.clear();
    for (const Run* run = begin; run != end; ++run) {
      for_each_interval(*run, places_[run->access], [&](const Interval& interval) {
        for (std::uint32_t k = 0; k < interval.length; ++k) {
          const ThreadRange range = threads_of(*run, interval.reversed,
                                               interval.first + k * interval.width, interval.width);
          for (std::uint32_t t = range.begin; t < range.end; ++t)
            touches_.push_back({interval.lo + k, static_cast<std::uint16_t>(t), run->access});
        }
      });
    }
    std::sort(touches_.begin(), touches_.end(), [](const Touch& a, const Touch& b) {
      return a.place != b.place ? a.place < b.place : a.thread < b.thread;
    });
  }

  // One place touched by two threads or more.
  double place_sharing(std::size_t first, std::size_t last, std::vector<std::uint64_t>* dense) {
    ThreadSet set{};
    counts_.clear();
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t t = touches_[i].thread;
      set[t / 64] |= std::uint64_t{1} << (t % 64);
      if (counts_.empty() || counts_.back().first != t)
        counts_.emplace_back(t, 1);
      else
        ++counts_.back().second;
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
    if (dense != nullptr) {
      for (std::size_t i = 0; i < counts_.size(); ++i)
        for (std::size_t j = i + 1; j < counts_.size(); ++j)
          (*dense)[std::size_t{counts_[i].first} * threads_ + counts_[j].first] +=
              count_ == Count::distinct ? 1 : std::min(counts_[i].second, counts_[j].second);
    }
    const auto n = static_cast<double>(counts_.size());
    if (count_ == Count::distinct) return n * (n - 1) / 2;
    // Of each pair the smaller count: the k-th smallest is the smaller one of n - 1 - k pairs.
    std::sort(counts_.begin(), counts_.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    for (std::size_t k = 0; k < counts_.size(); ++k)
      sum += static_cast<double>(counts_[k].second) * (n - 1 - static_cast<double>(k));
    return sum;
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

  const std::vector<Places>& places_;
  std::uint32_t threads_;
  std::size_t words_;
  Count count_;
  std::vector<Touch> touches_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counts_;  // thread, touches
  std::unordered_map<std::uint32_t, ThreadSet> unions_;          // by thread << 16 | access
  ThreadSet shares_{};
};

}  // namespace

IntraResult intra_map(const AccessRuns& runs, Granularity granularity, Count count) {
  const std::vector<Places> places = places_of(runs, granularity);
  const std::vector<std::size_t> starts = block_starts(runs);
  const std::uint32_t threads = runs.threads();
  BlockMap measure(places, threads, count);
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
    for (const Run* run = begin; run != end; ++run) executed += run->count;
    if (executed > most) {
      most = executed;
      result.map_block = block;
    }
    if (begin == end) continue;
    const Fingerprint fingerprint = fingerprint_of(begin, end, places, order);
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
