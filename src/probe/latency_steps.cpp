// Finds the steps of a latency curve: the peaks of its slope over the logarithm of the footprint.
#include "demarc/probe/latency_steps.hpp"

#include <algorithm>
#include <cmath>

namespace demarc::probe {
namespace {

constexpr double noises_of_a_step = 6;     // a rise of less is noise
constexpr double share_of_a_step = 0.003;  // of the latency; a rise of less is drift
// Two peaks of the slope are two steps where it falls to at most so much of the lower one between,
// and by so many times the noise of a point; the noise of a slope is half of that.
constexpr double highest_saddle = 0.7;
constexpr double noises_of_a_saddle = 2;
// The right one begins where the slope has gone up by this share from the saddle to its peak.
constexpr double foot_of_a_peak = 0.25;
// Up to this share of its peak the slope is that of a latency that stands still.
constexpr double flat_share = 0.1;

// The curve that never falls and is nearest to the points (pool adjacent violators).
std::vector<double> rising(std::span<const CurvePoint> curve) {
  struct Pool {
    double sum;
    std::size_t count;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const CurvePoint& point : curve) {
    pools.push_back({point.cycles, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].sum += pools.back().sum;
      pools[pools.size() - 2].count += pools.back().count;
      pools.pop_back();
    }
  }
  std::vector<double> level;
  for (const Pool& pool : pools) level.insert(level.end(), pool.count, pool.mean());
  return level;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A part of the curve that rises: intervals [first, last] between points.
struct Rise {
  std::size_t first, last;
  double cost;
  double peak;        // of the slope
  std::size_t crest;  // where it is
};

class Slopes {
 public:
  explicit Slopes(std::span<const double> level) {
    for (std::size_t i = 0; i + 1 < level.size(); ++i) raw_.push_back(level[i + 1] - level[i]);
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      const double before = i == 0 ? raw_[i] : raw_[i - 1];
      const double after = i + 1 == raw_.size() ? raw_[i] : raw_[i + 1];
      smooth_.push_back((before + 2 * raw_[i] + after) / 4);
    }
  }
  [[nodiscard]] std::size_t size() const { return raw_.size(); }
  [[nodiscard]] double at(std::size_t i) const { return smooth_[i]; }

  [[nodiscard]] Rise rise(std::size_t first, std::size_t last) const {
    Rise found{first, last, 0, 0, first};
    for (std::size_t i = first; i <= last; ++i) {
      found.cost += raw_[i];
      if (smooth_[i] <= found.peak) continue;
      found.peak = smooth_[i];
      found.crest = i;
    }
    return found;
  }
  [[nodiscard]] double lowest(std::size_t first, std::size_t last) const {
    return *std::min_element(smooth_.begin() + static_cast<std::ptrdiff_t>(first),
                             smooth_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  }
  // The slope where two neighbouring rises meet.
  [[nodiscard]] double saddle(const Rise& left, const Rise& right) const {
    return std::min(smooth_[left.last], smooth_[right.first]);
  }

 private:
  std::vector<double> raw_;
  std::vector<double> smooth_;
};

// Cut at every lowest place of the slope.
std::vector<Rise> all_rises(const Slopes& slopes) {
  std::vector<Rise> rises;
  std::size_t first = 0;
  bool falling = false;
  for (std::size_t i = 1; i < slopes.size(); ++i) {
    const double change = slopes.at(i) - slopes.at(i - 1);
    if (falling && change > 0) {
      rises.push_back(slopes.rise(first, i - 1));
      first = i;
    }
    if (change != 0) falling = change < 0;
  }
  rises.push_back(slopes.rise(first, slopes.size() - 1));
  return rises;
}

// Joins neighbours that are one step: no saddle between them is deep, or one is too small to be a
// step and no standstill divides them.
void join_rises(const Slopes& slopes, double least_cost, double noise, std::vector<Rise>& rises) {
  for (std::size_t i = 0; i + 1 < rises.size();) {
    const Rise& left = rises[i];
    const Rise& right = rises[i + 1];
    const double saddle = slopes.saddle(left, right);
    const double lower = std::min(left.peak, right.peak);
    const bool shallow =
        saddle > highest_saddle * lower || lower - saddle < noises_of_a_saddle * noise;
    const bool small = std::min(left.cost, right.cost) < least_cost && saddle > flat_share * lower;
    if (!shallow && !small) {
      ++i;
      continue;
    }
    rises[i] = slopes.rise(left.first, right.last);
    rises.erase(rises.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    i = i == 0 ? 0 : i - 1;
  }
}

// What lies between two peaks and is not higher than the saddle belongs to the left one.
void move_saddles(const Slopes& slopes, std::vector<Rise>& rises) {
  for (std::size_t i = 0; i + 1 < rises.size(); ++i) {
    const double saddle = slopes.saddle(rises[i], rises[i + 1]);
    const double foot = saddle + foot_of_a_peak * (rises[i + 1].peak - saddle);
    std::size_t last = rises[i + 1].crest - 1;
    while (last > rises[i].last && slopes.at(last) > foot) --last;
    rises[i] = slopes.rise(rises[i].first, last);
    rises[i + 1] = slopes.rise(last + 1, rises[i + 1].last);
  }
}

LatencyStep step_of(std::span<const CurvePoint> curve, std::span<const double> level,
                    const Slopes& slopes, const Rise& rise, double noise) {
  LatencyStep step;
  step.cycles_before = level[rise.first];
  step.cycles_after = level[rise.last + 1];
  std::size_t begin = rise.first;
  // The lowest of many points lies below what they stand for: their mean does not.
  for (int round = 0; round < 2; ++round) {
    const double most = step.cycles_before + std::max(0.1 * step.cost(), 2 * noise);
    begin = rise.first;
    double sum = level[begin];
    while (begin < rise.last && level[begin + 1] <= most) sum += level[++begin];
    step.cycles_before = sum / static_cast<double>(begin - rise.first + 1);
  }
  std::size_t end = begin + 1;
  while (level[end] < step.cycles_before + 0.9 * step.cost()) ++end;
  step.begin_pages = curve[begin].pages;
  step.after_pages = curve[begin + 1].pages;
  step.end_pages = curve[end].pages;
  // A rise that the last footprint measured still belongs to has not been seen to end.
  const bool last = rise.last + 1 == slopes.size();
  step.to_level =
      last ? end < rise.last
           : slopes.lowest(rise.crest, rise.last) <= std::max(flat_share * rise.peak, noise);
  return step;
}

}  // namespace

LatencySteps find_steps(std::span<const CurvePoint> curve, double least_cost) {
  LatencySteps found;
  if (curve.empty()) return found;
  const std::vector<double> level = rising(curve);
  std::vector<double> distances;
  std::vector<double> spreads;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    distances.push_back(std::abs(curve[i].cycles - level[i]));
    spreads.push_back(curve[i].spread);
  }
  // Three values of a normal distribution lie 1.7 of its deviations apart.
  found.noise_cycles =
      std::max(1.5 * median(std::move(distances)), median(std::move(spreads)) / 1.7);
  found.base_cycles = level.front();
  found.least_cost = std::max(
      {least_cost, noises_of_a_step * found.noise_cycles, share_of_a_step * found.base_cycles});
  if (curve.size() < 2) return found;
  const Slopes slopes(level);
  std::vector<Rise> rises = all_rises(slopes);
  join_rises(slopes, found.least_cost, found.noise_cycles, rises);
  move_saddles(slopes, rises);
  for (const Rise& rise : rises) {
    if (rise.cost >= found.least_cost)
      found.steps.push_back(step_of(curve, level, slopes, rise, found.noise_cycles));
  }
  return found;
}

}  // namespace demarc::probe
