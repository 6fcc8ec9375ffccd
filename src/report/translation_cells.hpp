// What the pages of address translation have in common.
#pragma once

#include <string>
#include <utility>

#include "demarc/report/page.hpp"
#include "demarc/sim/translation/study.hpp"

namespace demarc::report {

// 0 of nothing.
[[nodiscard]] double share_percent(std::uint64_t part, std::uint64_t whole);

[[nodiscard]] Axis app_axis(const sim::translation::Comparison& comparison);

// A bar for each application.
template <class Quantity>
Series app_bars(const sim::translation::Comparison& comparison, std::string name,
                Quantity quantity) {
  Series series{std::move(name), SeriesKind::bar, {}};
  for (std::size_t i = 0; i < comparison.apps.size(); ++i)
    series.points.push_back({static_cast<double>(i), quantity(comparison.apps[i]), {}, {}, {}});
  return series;
}

// The command, the GPUs that were simulated, and every setting.
[[nodiscard]] Context translation_context(const sim::translation::Settings& settings,
                                          const std::string& command);

}  // namespace demarc::report
