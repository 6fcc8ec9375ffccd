// Figures as the JSON that the page's scripts draw. Bulk numbers travel as base64 of little-endian
// arrays.
#pragma once

#include "demarc/base/json.hpp"
#include "demarc/report/figures.hpp"

namespace demarc::report {

[[nodiscard]] Json heat_map_json(const HeatMap& map);
[[nodiscard]] Json heat_maps_json(const HeatMaps& maps);
[[nodiscard]] Json chart_json(const Chart& chart);
[[nodiscard]] Json distribution_json(const Distribution& distribution);
[[nodiscard]] Json runs_json(const Runs& runs);
[[nodiscard]] Json graph_json(const Graph& graph);
[[nodiscard]] Json timeline_json(const Timeline& timeline);

}  // namespace demarc::report
