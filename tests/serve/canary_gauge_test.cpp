// What a canary's times say: the baseline, the slowdown, and when neither is known.
#include "demarc/serve/canary_gauge.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace demarc::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A launch per second.
struct Launches {
  explicit Launches(std::optional<double> baseline = {}) : gauge(baseline) {}
  void add(double cycles, bool quiet = true) { gauge.add(cycles, quiet, now += seconds(1)); }
  void add_window(double cycles) {
    for (std::size_t i = 0; i < CanaryGauge::window; ++i) add(cycles);
  }
  [[nodiscard]] CanaryReading reading() const { return gauge.reading(now); }
  CanaryGauge gauge;
  CanaryGauge::Clock::time_point now{};
};

TEST(CanaryGauge, knows_nothing_before_the_first_launch) {
  EXPECT_EQ(Launches().reading(), CanaryReading());
}

TEST(CanaryGauge, knows_no_slowdown_without_a_baseline) {
  Launches launches;
  for (std::size_t i = 0; i < CanaryGauge::window - 1; ++i) launches.add(200);
  EXPECT_EQ(launches.reading(), CanaryReading()) << "one quiet launch is missing";
  launches.add(200);
  EXPECT_EQ(launches.reading(), (CanaryReading{1.0, 200.0}));
}

TEST(CanaryGauge, takes_no_baseline_while_programs_run) {
  Launches launches;
  for (int i = 0; i < 100; ++i) launches.add(200, false);
  EXPECT_EQ(launches.reading(), CanaryReading());
  for (std::size_t i = 0; i < CanaryGauge::window - 1; ++i) launches.add(200);
  launches.add(200, false);
  launches.add(200);
  EXPECT_EQ(launches.reading(), CanaryReading()) << "quiet launches that are not in a row";
}

TEST(CanaryGauge, takes_the_median_of_quiet_launches) {
  Launches launches;
  for (const double cycles : {900.0, 210.0, 1.0, 205.0, 208.0, 2.0, 800.0, 207.0, 211.0}) {
    launches.add(cycles);
  }
  EXPECT_EQ(launches.reading().baseline_cycles, 208.0);
}

TEST(CanaryGauge, takes_the_least_median) {
  Launches launches;
  launches.add_window(220);
  launches.add_window(200);
  EXPECT_EQ(launches.reading().baseline_cycles, 200.0);
  launches.add_window(240);
  EXPECT_EQ(launches.reading(), (CanaryReading{1.2, 200.0}))
      << "a neighbour that is not a program of a tenant";
}

TEST(CanaryGauge, begins_each_window_anew) {
  Launches launches;
  launches.add_window(220);
  for (std::size_t i = 0; i < CanaryGauge::window - 1; ++i) launches.add(200);
  EXPECT_EQ(launches.reading().baseline_cycles, 220.0);
  launches.add(200);
  EXPECT_EQ(launches.reading().baseline_cycles, 200.0);
}

TEST(CanaryGauge, tells_the_slowdown_of_the_last_launch) {
  Launches launches;
  launches.add_window(200);
  launches.add(300, false);
  EXPECT_EQ(launches.reading().slowdown, 1.5);
  launches.add(190, false);
  EXPECT_EQ(launches.reading().slowdown, 0.95) << "as it is, and not at least 1";
}

TEST(CanaryGauge, knows_no_slowdown_once_launches_have_stopped) {
  Launches launches;
  launches.add_window(200);
  launches.now += CanaryGauge::fresh;
  EXPECT_EQ(launches.reading(), (CanaryReading{1.0, 200.0}));
  launches.now += milliseconds(1);
  EXPECT_EQ(launches.reading(), (CanaryReading{{}, 200.0})) << "the baseline stays";
  launches.add(400, false);
  EXPECT_EQ(launches.reading().slowdown, 2.0);
}

TEST(CanaryGauge, keeps_the_baseline_of_the_configuration) {
  Launches launches(250.0);
  EXPECT_EQ(launches.reading(), (CanaryReading{{}, 250.0}));
  launches.add(500, false);
  EXPECT_EQ(launches.reading(), (CanaryReading{2.0, 250.0}));
  launches.add_window(200);
  EXPECT_EQ(launches.reading(), (CanaryReading{0.8, 250.0}));
}

TEST(CanaryGauge, learns_nothing_from_times_that_cannot_be) {
  Launches launches(250.0);
  for (const double cycles : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    launches.add(cycles);
    EXPECT_EQ(launches.reading().slowdown, std::nullopt) << cycles;
  }
}

}  // namespace
}  // namespace demarc::serve
