// The figures that a Page can show, as plain data. Titles, names and labels are plain text; the
// page escapes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace demarc::report {

struct Axis {
  std::string name = {};
  std::string unit = {};
  bool logarithmic = false;
  std::optional<double> low = {};
  std::optional<double> high = {};
  std::vector<std::string> categories = {};  // not empty: x is an index into them
  std::optional<double> base = {};           // bars begin at this value; 1 for ratios
};

// True if the largest of these positive values would flatten the others on a linear axis, because
// it is more than eight times their median.
[[nodiscard]] bool needs_logarithm(std::vector<double> values);

// A cell of a sparse matrix; cells that are not listed are empty (zero).
struct HeatCell {
  std::uint32_t row = 0;
  std::uint32_t column = 0;
  double value = 0;
};

// The input is sparse or dense. A map of few cells with `decimals` is a table with the values in
// its cells. Other maps are zoomable pictures, square if the map is symmetric. A million cells are
// drawn without delay. A map without cells is a sentence.
struct HeatMap {
  std::string title = {};
  std::string caption = {};
  std::string row_name = "row";
  std::string column_name = "column";
  std::string value_name = "value";
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<HeatCell> cells = {};
  bool symmetric = false;  // (r, c) also stands for (c, r)
  bool logarithmic = false;
  // Ends of the colour scale. If absent, they come from the values. A given end stands for all
  // values beyond it; the scale says so ("≥ 4").
  std::optional<double> low = {};
  std::optional<double> high = {};
  // For ratios: the neutral value, mostly 1. The scale is logarithmic, has two colours, and reaches
  // as far below this value as above. `low` is not used.
  std::optional<double> middle = {};
  std::vector<std::string> row_labels = {};  // empty: the index
  std::vector<std::string> column_labels = {};
  // Not empty: a click on a cell shows the Runs of the key "OPENS|row label|column label".
  std::string opens = {};
  std::optional<int> decimals = {};  // writes the values into the cells if these are large enough
  std::string empty = "nothing to show.";  // text after the title of a map without cells
};

// Small maps beside each other. All have the scale of the first, which needs low and high or a
// middle.
struct HeatMaps {
  std::string title = {};
  std::string caption = {};
  std::vector<HeatMap> maps = {};
};

enum class SeriesKind { line, scatter, bar };

struct Point {
  double x = 0;
  double y = 0;
  std::optional<double> low = {};  // ends of the error bar
  std::optional<double> high = {};
  std::string label = {};  // shown when pointed at
};

struct Series {
  std::string name = {};
  SeriesKind kind = SeriesKind::line;
  std::vector<Point> points = {};
  std::optional<std::uint32_t> color = {};  // index into the page's palette; default: its place
};

struct ReferenceLine {
  std::string name = {};
  double value = 0;
  bool vertical = false;  // at x = value instead of y = value
};

struct Chart {
  std::string title = {};
  std::string caption = {};
  Axis x = {};
  Axis y = {};
  std::vector<Series> series = {};
  std::vector<ReferenceLine> lines = {};
  bool diagonal = false;  // draws y = x
};

struct Sample {
  std::string name = {};
  std::vector<double> values = {};
};

enum class DistributionView { box, histogram };

// A box shows median and quartiles. From a thousand values on, the whiskers reach p1 and p99, and
// points show the extremes. With fewer values the whiskers reach the extremes. A histogram has
// equal bins.
struct Distribution {
  std::string title = {};
  std::string caption = {};
  Axis value = {};
  std::vector<Sample> samples = {};
  DistributionView view = DistributionView::box;
  std::uint32_t bins = 40;
};

// The runs behind a number: a click on a cell that names the key shows them.
struct Runs {
  std::string key = {};
  std::string command = {};  // repeats them
  Distribution times = {};
};

struct GraphNode {
  std::string label = {};   // newlines separate lines
  std::string detail = {};  // shown when pointed at
  std::uint32_t group = 0;  // colour
};

struct GraphEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string label = {};
};

// A tree or any directed graph. It is laid out in layers, from the nodes without predecessors
// downwards. Cycles are allowed; an edge that closes one is drawn dashed.
struct Graph {
  std::string title = {};
  std::string caption = {};
  std::vector<GraphNode> nodes = {};
  std::vector<GraphEdge> edges = {};
};

struct Interval {
  std::uint32_t track = 0;
  double start = 0;
  double end = 0;
  std::string label = {};
  std::uint32_t group = 0;  // index into Timeline::groups: its colour
};

struct Timeline {
  std::string title = {};
  std::string caption = {};
  std::string unit = {};  // unit of start and end
  std::vector<std::string> tracks = {};
  std::vector<std::string> groups = {};
  std::vector<Interval> intervals = {};
};

}  // namespace demarc::report
