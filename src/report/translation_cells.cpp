// Makes what the pages of address translation have in common: shares, axes and contexts.
#include "translation_cells.hpp"

#include <fmt/format.h>

namespace demarc::report {

double share_percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Axis app_axis(const sim::translation::Comparison& comparison) {
  Axis axis{.name = "application"};
  for (const auto& app : comparison.apps) axis.categories.push_back(app.name);
  return axis;
}

Context translation_context(const sim::translation::Settings& settings,
                            const std::string& command) {
  Context context{.command = command,
                  .devices = {{fmt::format("{} simulated GPUs", settings.gpus)}},
                  .seed = "none: every run is the same"};
  for (const auto& info : sim::translation::setting_table())
    context.more.emplace_back(info.name, info.get(settings));
  return context;
}

}  // namespace demarc::report
