// Finds the hash function of cache sets by lines that evict each other.
#include <algorithm>

#include "hash_pairs.hpp"

namespace demarc::probe {
namespace {

// Tells whether reading a list of lines evicts the first line, by the median of a few measurements.
class EvictionTest {
 public:
  EvictionTest(TimedMemory& memory, std::uint64_t first) : memory_(&memory), first_(first) {}

  // Times of certain hits and of certain misses give the threshold between the two.
  Result<bool> calibrate(Random& random) {
    const MemoryFacts& facts = memory_->facts();
    const std::size_t plenty = 4 * facts.l2_bytes / facts.line_bytes;
    const auto flood = random_lines(facts, plenty, random);
    DEMARC_TRY(hit_, median({}, first_, 15));
    DEMARC_TRY(miss_, median(flood, flood.back(), 15));
    threshold_ = (hit_ + miss_) / 2;
    return miss_ > hit_ * 1.15;
  }

  Result<bool> operator()(std::span<const std::uint64_t> lines) {
    if (lines.empty()) return false;
    DEMARC_TRY(const double cycles, median(lines.first(lines.size() - 1), lines.back(), 5));
    return cycles > threshold_;
  }

  [[nodiscard]] double threshold() const { return threshold_; }
  [[nodiscard]] double hit() const { return hit_; }
  [[nodiscard]] double miss() const { return miss_; }

 private:
  Result<double> median(std::span<const std::uint64_t> then, std::uint64_t last, std::size_t n) {
    const std::vector<std::uint64_t> same(n, last);
    DEMARC_TRY(std::vector<float> times, memory_->reread(first_, then, same));
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(n / 2),
                     times.end());
    return static_cast<double>(times[n / 2]);
  }

  TimedMemory* memory_;
  std::uint64_t first_;
  double hit_ = 0;
  double miss_ = 0;
  double threshold_ = 0;
};

// The chase of Algorithm 2: lines are added until the start is evicted; the line that did it is
// dropped and collected, until the collected lines evict the start by themselves.
Result<std::vector<std::uint64_t>> collect_evictors(const MemoryFacts& facts, std::uint64_t first,
                                                    EvictionTest& evicts,
                                                    const Progress& progress) {
  const std::uint64_t memory_bytes = std::uint64_t{1} << facts.address_bits;
  std::vector<std::uint64_t> chase;
  std::uint64_t next = first;
  const auto grow = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      next = (next + facts.line_bytes) % memory_bytes;
      chase.push_back(next);
    }
  };
  std::vector<std::uint64_t> evictors;
  const std::size_t max_lines = 64 * facts.l2_bytes / facts.line_bytes;
  grow(facts.l2_bytes / facts.line_bytes / 4);
  std::size_t known_safe = 0;  // this many lines at the front do not evict
  constexpr std::size_t max_evictors = 256;
  while (evictors.size() < max_evictors) {
    for (;;) {
      DEMARC_TRY(const bool gone, evicts(chase));
      if (gone) break;
      known_safe = chase.size();
      if (chase.size() > max_lines) return evictors;
      grow(std::max<std::size_t>(chase.size() / 8, 64));
    }
    std::size_t low = known_safe;     // does not evict
    std::size_t high = chase.size();  // evicts
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      DEMARC_TRY(const bool gone, evicts(std::span(chase).first(middle)));
      (gone ? high : low) = middle;
    }
    evictors.push_back(chase[high - 1]);
    chase.erase(chase.begin() + static_cast<std::ptrdiff_t>(high - 1));
    known_safe = high - 1;
    report_progress(progress, 0.3 * static_cast<double>(evictors.size()) / 48,
                    "set hash: growing the chase");
    DEMARC_TRY(const bool enough, evicts(evictors));
    if (enough) return evictors;
  }
  return evictors;
}

// Leaves out every line that the eviction does not need.
Result<std::vector<std::uint64_t>> prune(std::vector<std::uint64_t> lines, EvictionTest& evicts) {
  for (std::size_t i = lines.size(); i-- > 0;) {
    auto fewer = lines;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    DEMARC_TRY(const bool still, evicts(fewer));
    if (still) lines = std::move(fewer);
  }
  return lines;
}

}  // namespace

Result<HashFinding> find_set_hash(TimedMemory& memory, const HashOptions& options, Random& random,
                                  const Progress& progress) {
  const MemoryFacts& facts = memory.facts();
  HashFinding finding;
  finding.what = "set";
  const std::uint64_t first = random_lines(facts, 1, random).front();
  EvictionTest evicts(memory, first);
  DEMARC_TRY(const bool apart, evicts.calibrate(random));
  if (!apart) {
    finding.reason = fmt::format("a cache hit ({:.0f} cycles) cannot be told from a miss ({:.0f})",
                                 evicts.hit(), evicts.miss());
    return finding;
  }
  finding.threshold = evicts.threshold();
  DEMARC_TRY(std::vector<std::uint64_t> evictors, collect_evictors(facts, first, evicts, progress));
  DEMARC_TRY(const bool enough, evicts(evictors));
  if (!enough) {
    finding.reason = fmt::format("{} lines that seemed to evict the start do not evict it together",
                                 evictors.size());
    return finding;
  }
  DEMARC_TRY(evictors, prune(std::move(evictors), evicts));
  finding.ways = static_cast<std::uint32_t>(evictors.size());
  evictors.pop_back();
  const TimeAgainst time = [&](std::span<const std::uint64_t> candidates) {
    return memory.reread(first, evictors, candidates);
  };
  constexpr std::uint64_t max_measurements = 8'000'000;
  DEMARC_CHECK(
      collect_and_solve(facts, first, time, options, max_measurements, random, progress, finding));
  DEMARC_CHECK(confirm(facts, first, time, options, random, finding));
  report_progress(progress, 1, "set hash");
  return finding;
}

}  // namespace demarc::probe
