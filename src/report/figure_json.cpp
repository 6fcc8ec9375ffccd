// Writes figures as the JSON that the scripts of a page draw.
#include "figure_json.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "demarc/study/statistics.hpp"

namespace demarc::report {
namespace {

static_assert(std::endian::native == std::endian::little, "pages carry little-endian arrays");

template <class T>
std::string base64_of(const std::vector<T>& values) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::span bytes = std::as_bytes(std::span(values));
  const auto at = [&bytes](std::size_t i) {
    return i < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i]) : 0U;
  };
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = (at(i) << 16U) | (at(i + 1) << 8U) | at(i + 2);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : digits[(group >> (18U - 6U * k)) & 63U];
  }
  return out;
}

// The values as 32-bit floats where that loses nothing, else as 64-bit ones.
Json packed(const std::vector<double>& values) {
  std::vector<float> narrow;
  narrow.reserve(values.size());
  for (const double value : values) {
    const auto rounded = static_cast<float>(value);
    if (static_cast<double>(rounded) != value && !std::isnan(value))
      return {{"f64", base64_of(values)}};
    narrow.push_back(rounded);
  }
  return {{"f32", base64_of(narrow)}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json axis_json(const Axis& axis) {
  return {{"name", axis.name},          {"unit", axis.unit},
          {"log", axis.logarithmic},    {"low", or_null(axis.low)},
          {"high", or_null(axis.high)}, {"categories", axis.categories},
          {"base", or_null(axis.base)}};
}

const char* series_kind_name(SeriesKind kind) {
  switch (kind) {
    case SeriesKind::line:
      return "line";
    case SeriesKind::scatter:
      return "scatter";
    case SeriesKind::bar:
      return "bar";
  }
  return "line";
}

bool has_percentiles(const std::vector<double>& values) {
  return values.size() >= study::p99_least_runs;
}

// Minimum, lower whisker, quartiles, upper whisker, maximum; nothing of no values.
Json box_of(const std::vector<double>& sorted) {
  Json box = Json::array();
  if (sorted.empty()) return box;
  const bool percentiles = has_percentiles(sorted);
  const double low = percentiles ? 0.01 : 0;
  const double high = percentiles ? 0.99 : 1;
  for (const double q : {0.0, low, 0.25, 0.5, 0.75, high, 1.0})
    box.push_back(study::quantile(sorted, q));
  return box;
}

}  // namespace

bool needs_logarithm(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return !values.empty() && values.front() > 0 && values.back() > 8 * values[values.size() / 2];
}

Json heat_map_json(const HeatMap& map) {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> columns;
  std::vector<double> values;
  for (const HeatCell& cell : map.cells) {
    rows.push_back(cell.row);
    columns.push_back(cell.column);
    values.push_back(cell.value);
  }
  return {{"kind", "heat_map"},
          {"title", map.title},
          {"caption", map.caption},
          {"row_name", map.row_name},
          {"column_name", map.column_name},
          {"value_name", map.value_name},
          {"rows", map.rows},
          {"columns", map.columns},
          {"symmetric", map.symmetric},
          {"log", map.logarithmic},
          {"low", or_null(map.low)},
          {"high", or_null(map.high)},
          {"middle", or_null(map.middle)},
          {"empty", map.empty},
          {"decimals", or_null(map.decimals)},
          {"row_labels", map.row_labels},
          {"column_labels", map.column_labels},
          {"opens", map.opens},
          {"r", {{"u32", base64_of(rows)}}},
          {"c", {{"u32", base64_of(columns)}}},
          {"v", packed(values)}};
}

Json heat_maps_json(const HeatMaps& maps) {
  Json list = Json::array();
  for (const HeatMap& map : maps.maps) list.push_back(heat_map_json(map));
  return {{"kind", "heat_maps"},
          {"title", maps.title},
          {"caption", maps.caption},
          {"maps", std::move(list)}};
}

Json chart_json(const Chart& chart) {
  Json series = Json::array();
  for (const Series& one : chart.series) {
    Json points = Json::array();
    for (const Point& point : one.points) {
      Json value = {point.x, point.y};
      if (point.low || point.high || !point.label.empty()) {
        value.push_back(point.low.value_or(point.y));
        value.push_back(point.high.value_or(point.y));
        value.push_back(point.label);
      }
      points.push_back(std::move(value));
    }
    series.push_back({{"name", one.name},
                      {"kind", series_kind_name(one.kind)},
                      {"points", std::move(points)},
                      {"color", or_null(one.color)}});
  }
  Json lines = Json::array();
  for (const ReferenceLine& line : chart.lines)
    lines.push_back({{"name", line.name}, {"value", line.value}, {"vertical", line.vertical}});
  return {{"kind", "chart"},           {"title", chart.title},      {"caption", chart.caption},
          {"x", axis_json(chart.x)},   {"y", axis_json(chart.y)},   {"series", std::move(series)},
          {"lines", std::move(lines)}, {"diagonal", chart.diagonal}};
}

Json distribution_json(const Distribution& distribution) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  std::vector<std::vector<double>> sorted;
  for (const Sample& sample : distribution.samples) {
    std::vector<double> values = sample.values;
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    std::sort(values.begin(), values.end());
    if (!values.empty()) {
      low = std::min(low, values.front());
      high = std::max(high, values.back());
    }
    sorted.push_back(std::move(values));
  }
  if (!(low <= high)) low = high = 0;
  const std::uint32_t bins = std::max(distribution.bins, 1U);
  const double width = high > low ? (high - low) / bins : 1.0;
  Json samples = Json::array();
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::vector<double>& values = sorted[i];
    Json sample = {{"name", distribution.samples[i].name}, {"count", values.size()}};
    if (distribution.view == DistributionView::box) {
      sample["box"] = box_of(values);
      sample["whiskers"] = has_percentiles(values) ? Json{"p1", "p99"} : Json{"min", "max"};
    } else {
      std::vector<std::uint64_t> counts(bins, 0);
      for (const double value : values)
        ++counts[std::min<std::size_t>(static_cast<std::size_t>((value - low) / width), bins - 1)];
      sample["counts"] = counts;
    }
    samples.push_back(std::move(sample));
  }
  return {{"kind", distribution.view == DistributionView::box ? "box" : "histogram"},
          {"title", distribution.title},
          {"caption", distribution.caption},
          {"value", axis_json(distribution.value)},
          {"start", low},
          {"width", width},
          {"samples", std::move(samples)}};
}

Json runs_json(const Runs& runs) {
  return {{"kind", "runs"},
          {"key", runs.key},
          {"command", runs.command},
          {"plot", distribution_json(runs.times)}};
}

Json graph_json(const Graph& graph) {
  Json nodes = Json::array();
  for (const GraphNode& node : graph.nodes)
    nodes.push_back({{"label", node.label}, {"detail", node.detail}, {"group", node.group}});
  Json edges = Json::array();
  for (const GraphEdge& edge : graph.edges)
    if (edge.from < graph.nodes.size() && edge.to < graph.nodes.size())
      edges.push_back({edge.from, edge.to, edge.label});
  return {{"kind", "graph"},
          {"title", graph.title},
          {"caption", graph.caption},
          {"nodes", std::move(nodes)},
          {"edges", std::move(edges)}};
}

Json timeline_json(const Timeline& timeline) {
  std::vector<std::uint32_t> tracks;
  std::vector<std::uint32_t> groups;
  std::vector<double> starts;
  std::vector<double> ends;
  Json labels = Json::array();
  for (const Interval& interval : timeline.intervals) {
    tracks.push_back(interval.track);
    groups.push_back(interval.group);
    starts.push_back(interval.start);
    ends.push_back(interval.end);
    labels.push_back(interval.label);
  }
  return {{"kind", "timeline"},
          {"title", timeline.title},
          {"caption", timeline.caption},
          {"unit", timeline.unit},
          {"tracks", timeline.tracks},
          {"groups", timeline.groups},
          {"t", {{"u32", base64_of(tracks)}}},
          {"g", {{"u32", base64_of(groups)}}},
          {"s", packed(starts)},
          {"e", packed(ends)},
          {"labels", std::move(labels)}};
}

}  // namespace demarc::report
