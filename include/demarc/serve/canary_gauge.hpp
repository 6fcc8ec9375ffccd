// What a tenant's canary says of interference: how long its reads take now, over how long they take
// while no program runs. It knows no card and no clock.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace demarc::serve {

// What the gauge knows; an absent number is not known.
struct CanaryReading {
  std::optional<double> slowdown = {};         // 1 is none
  std::optional<double> baseline_cycles = {};  // per read
  friend bool operator==(const CanaryReading&, const CanaryReading&) = default;
};

class CanaryGauge {
 public:
  using Clock = std::chrono::steady_clock;
  // Quiet launches in a row whose median may be the baseline: one that was late, or early, is not.
  static constexpr std::size_t window = 9;
  // After so long without a launch it is not known how slow the canary is now.
  static constexpr std::chrono::seconds fresh{5};

  // `baseline`: of the configuration. None: the least median of a window.
  explicit CanaryGauge(std::optional<double> baseline = {})
      : configured_(baseline.has_value()), baseline_(baseline) {}

  // A launch took so many cycles per read. `quiet`: no program had a lease at that time. A time
  // that no launch can take (not finite, or not above 0) says nothing.
  void add(double cycles, bool quiet, Clock::time_point now);
  [[nodiscard]] CanaryReading reading(Clock::time_point now) const;

 private:
  bool configured_;
  std::optional<double> baseline_;
  std::vector<double> quiet_;  // since the last launch that was not, at most `window`
  std::optional<double> last_;
  Clock::time_point last_at_{};
};

}  // namespace demarc::serve
