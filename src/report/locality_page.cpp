// Makes the page of a locality study: tables, maps, trees of addresses.
#include "demarc/report/locality_page.hpp"

#include <fmt/format.h>

#include "demarc/base/json.hpp"
#include "demarc/base/rounding.hpp"

namespace demarc::report {
namespace {

HeatMap heat_map_of(const locality::LocalityMap& whole, const std::string& what) {
  const locality::LocalityMap map = locality::coarsened(whole, max_map_cells);
  HeatMap result;
  result.empty = fmt::format("no two {}s touch the same place.", what);
  result.rows = result.columns = ceil_div(map.size, map.bin);
  result.symmetric = true;
  const std::string unit = map.bin == 1 ? "" : fmt::format(" / {}", map.bin);
  result.row_name = what + " i" + unit;
  result.column_name = what + " j" + unit;
  if (map.bin > 1)
    result.caption = fmt::format(
        " Too large to draw cell by cell: each cell is the sum over {0} x {0} pairs of {1}s; "
        "`--json --maps` gives every pair.",
        map.bin, what);
  result.cells.reserve(map.cells.size());
  for (const locality::MapCell& cell : map.cells)
    result.cells.push_back({cell.row, cell.column, static_cast<double>(cell.value)});
  return result;
}

// Operations, parameters, indices and constants in colours of their own.
std::uint32_t group_of(const std::string& reg, const std::string& opcode) {
  if (!opcode.empty()) return 0;
  if (!reg.empty() && reg.front() == '[') return 2;
  return !reg.empty() && reg.front() == '%' ? 3 : 5;
}

std::string trees_of(const locality::Analysis& analysis, std::vector<Graph>& graphs,
                     std::size_t max_nodes) {
  const Json json = own_json(analysis.trees_json);
  if (!json.is_object() || !json.contains("loads")) return "";
  std::string left_out;
  for (const Json& load : json["loads"]) {
    const Json& tree = load["tree"];
    const std::string title = load.value("instruction", std::string());
    if (tree.size() > max_nodes) {
      left_out += fmt::format("{}line {} ({} nodes)", left_out.empty() ? "" : ", ",
                              load.value("line", 0), tree.size());
      continue;
    }
    Graph graph;
    graph.title = title;
    graph.caption = fmt::format("Line {} of the PTX.", load.value("line", 0));
    for (const locality::Access& access : analysis.all.accesses)
      if (access.line == load.value("line", 0U))
        graph.caption += fmt::format(" Address: {}; {}.", access.expression,
                                     locality::to_string(access.access_class));
    for (const Json& node : tree) {
      const std::string reg = node.value("reg", std::string());
      const std::string opcode = node.value("opcode", std::string());
      graph.nodes.push_back(
          {opcode.empty() ? reg : fmt::format("{}\n{}", opcode, reg), "", group_of(reg, opcode)});
      const auto parent = node.value("parent", std::int64_t{-1});
      if (parent >= 0)
        graph.edges.push_back({static_cast<std::uint32_t>(parent),
                               static_cast<std::uint32_t>(graph.nodes.size() - 1), ""});
    }
    graphs.push_back(std::move(graph));
  }
  return left_out;
}

}  // namespace

void add_locality_summary(Page& page, const LocalityStudy& study) {
  const locality::Analysis& a = study.analysis;
  const locality::Sensitivity& s = study.sensitivity;
  std::vector<KeyFigure> figures{
      {"Degree of sharing between blocks", three_digits(a.inter.degree_of_sharing),
       fmt::format("{} of {} blocks share a place", a.inter.sharing_blocks, a.all.blocks())},
      {"Degree of sharing between threads of a block", three_digits(a.intra.degree_of_sharing),
       fmt::format("{} % of the threads share a place",
                   three_digits(100 * a.intra.appearance_frequency))}};
  if (study.no_prediction.empty()) {
    figures.push_back(
        {"L1 hit rate, predicted", three_digits(100 * s.whole.l1_hit_rate) + " %", study.device});
    figures.push_back({"L2 hit rate, predicted", three_digits(100 * s.whole.l2_hit_rate) + " %",
                       three_digits(100 * s.half.l2_hit_rate) + " % with half the L2"});
  }
  page.key_figures(figures);
  Table table{fmt::format("Global accesses of {} ({}x{}x{} blocks of {}x{}x{} threads); method: {}",
                          a.kernel, a.grid.x, a.grid.y, a.grid.z, a.block.x, a.block.y, a.block.z,
                          locality::to_string(a.method)),
              {{"line", Align::right},
               {"instruction"},
               {"address"},
               {"class"},
               {"executed", Align::right},
               {"sectors per request", Align::right},
               {"from"}},
              {}};
  for (const locality::Access& access : a.all.accesses)
    table.rows.push_back({count_cell(access.line), "`" + access.instruction + "`",
                          "`" + access.expression + "`", locality::to_string(access.access_class),
                          count_cell(static_cast<std::int64_t>(access.executed)),
                          digits_cell(access.sectors_per_request),
                          locality::to_string(access.source)});
  page.table(table);
  std::string advice;
  for (const std::string& one : a.advice) advice += "- " + one + "\n";
  if (!advice.empty()) page.prose(advice);
}

void add_locality_maps(Page& page, const LocalityStudy& study) {
  const locality::Analysis& a = study.analysis;
  const std::string unit = fmt::format("{}, granularity {}", locality::to_string(a.count),
                                       locality::to_string(a.granularity));
  HeatMap inter = heat_map_of(a.inter.map, "block");
  inter.title = study.name + ": map between blocks";
  inter.value_name = unit;
  inter.caption =
      fmt::format("SpScore {}, PAVER degree of sharing {}.", three_digits(a.inter.spscore),
                  three_digits(a.inter.paver_degree_of_sharing)) +
      inter.caption;
  page.heat_map(inter);
  HeatMap intra = heat_map_of(a.intra.map, "thread");
  intra.title = fmt::format("{}: map between threads of block {}", study.name, a.intra.map_block);
  intra.value_name = unit;
  intra.caption = fmt::format("{} of the {} blocks differ in more than their place.",
                              a.intra.distinct_blocks, a.all.blocks()) +
                  intra.caption;
  page.heat_map(intra);
}

void add_syntax_trees(Page& page, const LocalityStudy& study) {
  std::vector<Graph> graphs;
  const std::string left_out = trees_of(study.analysis, graphs, 400);
  for (const Graph& graph : graphs) page.graph(graph);
  if (!left_out.empty()) page.prose("Too large to draw: " + left_out + ".");
}

std::string locality_page(const LocalityStudy& study, const std::string& command) {
  const locality::Analysis& a = study.analysis;
  Page page(
      "Data locality of " + study.name,
      fmt::format("kernel {}, {} blocks of {} threads", a.kernel, a.all.blocks(), a.all.threads()));
  page.heading("Result");
  page.prose(degree_of_sharing_words);
  add_locality_summary(page, study);
  std::string notes;
  for (const std::string& finding : a.findings) notes += "- Finding: " + finding + "\n";
  for (const std::string& note : a.notes) notes += "- " + note + "\n";
  for (const std::string& note : {study.no_prediction, incomplete_prediction(study)})
    if (!note.empty()) notes += "- " + note + "\n";
  if (!notes.empty()) {
    page.heading("Notes");
    page.prose(notes);
  }
  page.heading("Maps");
  add_locality_maps(page, study);
  if (!study.pages.empty()) page.heading("Pages");
  for (const locality::PageSplit& split : study.pages) {
    HeatMap map;
    map.title = fmt::format("Pages of {} bytes by GPU", split.page_bytes);
    map.row_name = "GPU";
    map.column_name = "page";
    map.value_name = "accesses";
    map.rows = split.gpus;
    map.columns = static_cast<std::uint32_t>(split.first_pages.size());
    map.caption = fmt::format(
        "{} pages; {} % of the accesses go to pages of several GPUs; {} % are "
        "remote when every page lies where it is touched most. Prefers {} translation.",
        split.pages, three_digits(100 * split.shared_access_share),
        three_digits(100 * split.remote_access_share),
        locality::to_string(locality::judge_translation(split).architecture));
    for (std::uint32_t g = 0; g < split.gpus; ++g)
      for (std::uint32_t p = 0; p < map.columns; ++p)
        if (split.accesses[g][p] > 0)
          map.cells.push_back({g, p, static_cast<double>(split.accesses[g][p])});
    page.heat_map(map);
  }
  page.heading("Syntax trees");
  add_syntax_trees(page, study);
  page.context({.command = command,
                .devices = {{study.device + " (a description)"}},
                .seed = fmt::format("{} (contents of buffers)", study.seed)});
  return page.html();
}

}  // namespace demarc::report
