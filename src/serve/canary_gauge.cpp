// Finds the baseline of a canary, and how slow the canary is.
#include "demarc/serve/canary_gauge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace demarc::serve {

void CanaryGauge::add(double cycles, bool quiet, Clock::time_point now) {
  if (!std::isfinite(cycles) || cycles <= 0) return;
  last_ = cycles;
  last_at_ = now;
  if (configured_) return;
  if (!quiet) return quiet_.clear();
  quiet_.push_back(cycles);
  if (quiet_.size() < window) return;
  std::vector<double> sorted = std::exchange(quiet_, {});
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[window / 2];
  baseline_ = std::min(baseline_.value_or(median), median);
}

CanaryReading CanaryGauge::reading(Clock::time_point now) const {
  CanaryReading reading{.baseline_cycles = baseline_};
  if (baseline_ && last_ && now - last_at_ <= fresh) reading.slowdown = *last_ / *baseline_;
  return reading;
}

}  // namespace demarc::serve
