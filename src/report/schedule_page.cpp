#include "demarc/report/schedule_page.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "demarc/base/text.hpp"
#include "schedule_cells.hpp"

namespace demarc::report {
namespace {

using sim::Estimate;
using sim::TbCell;
using sim::TbMix;
using sim::TbModel;
using Reading = std::function<Estimate(const TbCell&)>;

// Numbers that the paper prints, drawn beside the curves.
Series published_points(std::vector<Point> points) {
  return {"published", SeriesKind::scatter, std::move(points)};
}

Chart level_chart(const sim::TbStudy& study, const std::string& title, const std::string& caption,
                  TbMix mix, Axis y, const Reading& reading, std::vector<Point> published = {}) {
  Chart chart;
  chart.title = title;
  chart.caption = caption;
  chart.x = {.name = "nominal load", .unit = "%"};
  chart.y = std::move(y);
  struct Line {
    const char* name;
    TbModel model;
    const char* policy;
  };
  static constexpr Line lines[] = {{"RR 2020", TbModel::simtbs_2020, "rr"},
                                   {"BFA 2020", TbModel::simtbs_2020, "bfa"},
                                   {"DFA 2020", TbModel::simtbs_2020, "dfa"},
                                   {"RR 2021", TbModel::simtbs, "rr"},
                                   {"RR that skips", TbModel::corrected, "rr-skip"},
                                   {"BFA corrected", TbModel::corrected, "bfa"},
                                   {"DFA corrected", TbModel::corrected, "dfa"}};
  for (const Line& line : lines) {
    Series series{line.name, SeriesKind::line, {}};
    for (const TbCell& cell : study.cells) {
      if (cell.model != line.model || cell.mix != mix || cell.policy != line.policy ||
          cell.memory != sim::paper_memories[0] || cell.runs.empty()) {
        continue;
      }
      const Estimate e = reading(cell);
      const double low = chart.y.logarithmic ? std::max(e.low, std::min(e.mean, 1.0)) : e.low;
      series.points.push_back({double(cell.level), e.mean, low, e.high, {}});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  if (!published.empty()) chart.series.push_back(published_points(std::move(published)));
  return chart;
}

// Figure 6 at 80 %: the paper's bars beside ours for each capacity.
Chart figure6(const sim::TbStudy& study) {
  Chart chart;
  chart.title = "Figure 6: ANTT with queueing at a load of 80 %";
  chart.caption = "Rules and workloads of 2020; mean and 95 % interval over seeds.";
  chart.x = {.name = "policy", .categories = {"RR", "BFA", "DFA"}};
  chart.y = {.name = "ANTT with queueing", .low = 0};
  chart.series.push_back({"published", SeriesKind::bar, {{0, 2.28}, {1, 1.41}, {2, 1.35}}});
  for (const std::uint32_t memory : sim::paper_memories) {
    Series series{fmt::format("{} units", grouped(memory)), SeriesKind::bar, {}};
    double x = 0;
    for (const char* policy : {"rr", "bfa", "dfa"}) {
      const TbCell* cell = study.find(TbModel::simtbs_2020, TbMix::uniform, policy, 80, 16, memory);
      if (cell != nullptr && !cell->runs.empty()) {
        const Estimate e = cell->antt_queue();
        series.points.push_back({x, e.mean, e.low, e.high, {}});
      }
      x += 1;
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

struct PublishedFigure {
  const char* what;
  std::optional<double> published;
  TbModel model;
  TbMix mix;
  const char* policy;
  std::uint32_t level;
  Reading reading;
};

std::vector<PublishedFigure> published_figures() {
  constexpr TbModel paper = TbModel::simtbs_2020;
  const Reading antt = &TbCell::antt_queue;
  const Reading use = &TbCell::utilization;
  return {
      {"Figure 6: ANTT of RR at 10 % (equal to BFA)", {}, paper, TbMix::uniform, "rr", 10, antt},
      {"Figure 6: ANTT of BFA at 10 % (equal to RR)", {}, paper, TbMix::uniform, "bfa", 10, antt},
      {"Figure 6: ANTT of RR at 80 %", 2.28, paper, TbMix::uniform, "rr", 80, antt},
      {"Figure 6: ANTT of BFA at 80 %", 1.41, paper, TbMix::uniform, "bfa", 80, antt},
      {"Figure 6: ANTT of DFA at 80 %", 1.35, paper, TbMix::uniform, "dfa", 80, antt},
      {"RR without the stop at the wrap", {}, TbModel::simtbs, TbMix::uniform, "rr", 80, antt},
      {"Round robin that skips full SMs",
       {},
       TbModel::corrected,
       TbMix::uniform,
       "rr-skip",
       80,
       antt},
      {"BFA, corrected, beside it", {}, TbModel::corrected, TbMix::uniform, "bfa", 80, antt},
      {"Figure 8: SM use of BFA at 125 %", 76.1, paper, TbMix::uniform, "bfa", 125, use},
      {"Figure 8: SM use of DFA at 125 %", 76.4, paper, TbMix::uniform, "dfa", 125, use},
      {"Figure 9: ANTT of DFA at 120 %", 2.3, paper, TbMix::extreme, "dfa", 120, antt},
      {"Figure 9: ANTT of BFA at 120 %", 10.4, paper, TbMix::extreme, "bfa", 120, antt},
      {"Figure 9: SM use of DFA at 120 %", 86.9, paper, TbMix::extreme, "dfa", 120, use}};
}

// Whether ours agrees with a number printed with two or three digits.
bool comes_out(const Estimate& ours, double published) {
  return (ours.low <= published && published <= ours.high) ||
         std::abs(ours.mean - published) <= 0.02 * published;
}

}  // namespace

Table schedule_published_table(const sim::TbStudy& study) {
  Table table;
  table.columns = {{"figure"}, {"published", Align::right}};
  std::vector<std::string> counts;
  std::size_t numbers = 0;
  std::size_t most = 0;
  const std::vector<PublishedFigure> figures = published_figures();
  for (const PublishedFigure& figure : figures) {
    table.rows.push_back(
        {figure.what, figure.published ? Cell(fmt::format("{}", *figure.published)) : Cell("")});
    numbers += figure.published ? std::size_t{1} : std::size_t{0};
  }
  for (const std::uint32_t memory : sim::paper_memories) {
    table.columns.push_back({fmt::format("{} units", grouped(memory)), Align::right});
    std::size_t agreeing = 0;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const PublishedFigure& figure = figures[i];
      const TbCell* cell =
          study.find(figure.model, figure.mix, figure.policy, figure.level, 16, memory);
      if (cell == nullptr || cell->runs.empty()) {
        table.rows[i].emplace_back("");
        continue;
      }
      const Estimate ours = figure.reading(*cell);
      Cell shown = estimate_cell(ours, 2, cell->runs.size());
      if (figure.published) {
        const bool agrees = comes_out(ours, *figure.published);
        agreeing += agrees ? std::size_t{1} : std::size_t{0};
        shown.tone = agrees ? Tone::good : Tone::bad;
      }
      table.rows[i].push_back(std::move(shown));
    }
    most = std::max(most, agreeing);
    counts.push_back(fmt::format("{} with {}", agreeing, grouped(memory)));
  }
  table.caption = fmt::format(
      "Rules and workloads of 2020, mean ± half of the 95 % interval over seeds; ANTT with "
      "queueing, SM use in per cent. The paper does not state the capacity of its global memory, "
      "so three are tried. A published number comes out when it lies within our interval or 2 % of "
      "our mean: of {} numbers, {} units.{} The capacities were chosen to meet the figures: each "
      "is a fit, "
      "not a confirmation.",
      numbers, joined(counts, ", "), most < numbers ? " No one capacity gives all figures." : "");
  return table;
}

std::string schedule_study_page(const sim::TbStudy& study, const std::string& command) {
  Page page("Thread-block scheduling: the published curves and the corrected ones",
            "SimTBS, Figures 6 to 9, 16 SMs of 8 units");
  add_study_context(page, study, command);
  page.heading("What the published round robin does");
  page.prose(
      "The paper's round robin is not the one of the textbooks. Two properties of the program make "
      "its penalty:\n\n"
      "- When the next SM is full, it does not move on to the one after: it asks the same SM again "
      "and gives up for this tick, although others have room.\n"
      "- In the version of the paper, a tick also ends whenever the pointer passes the last SM, so "
      "that at most as many blocks as there are SMs start in one tick.\n\n"
      "The curves below take both away, one after the other: `rr` under the rules of 2020, `rr` "
      "without the stop at the wrap (2021), and a round robin that skips full SMs (`rr-skip`). "
      "What "
      "remains of the gap to BFA is what balancing by use is worth.\n\n"
      "ANTT leaves out kernels that do not finish, which flatters an overloaded policy: read it "
      "beside the share of kernels finished and ANTT with queueing.");
  page.heading("Published numbers and ours");
  page.table(schedule_published_table(study));
  page.prose(fmt::format(
      "The curves below are drawn with {} units, the capacity chosen by Figure 6. Neither "
      "property touches BFA and DFA: their curves of 2020 and corrected cover each other where "
      "memory suffices.",
      grouped(sim::paper_memories[0])));
  const Axis antt{.name = "ANTT"};
  const Axis queueing{.name = "ANTT with queueing", .logarithmic = true};
  const Axis use{.name = "SM use", .unit = "%"};
  page.heading("Figures 6 and 8: ANTT, uniform requests");
  page.chart(figure6(study));
  page.chart(level_chart(study, "ANTT with queueing, uniform mix",
                         "Figure 8 shows the gain over RR.", TbMix::uniform, queueing,
                         &TbCell::antt_queue));
  page.chart(level_chart(study, "ANTT without queueing, uniform mix",
                         "From the first block on: waiting before it is left out.", TbMix::uniform,
                         antt, &TbCell::antt));
  page.heading("Figures 7 and 8: use of the SMs");
  page.chart(level_chart(study, "SM use, uniform mix",
                         "Sampled after completions, as the program does: each block's last tick "
                         "is missing.",
                         TbMix::uniform, use, &TbCell::utilization,
                         {{125, 76.1, {}, {}, "BFA"}, {125, 76.4, {}, {}, "DFA"}}));
  page.chart(level_chart(study, "SM use with each block's last tick, uniform mix", "",
                         TbMix::uniform, use, &TbCell::utilization_full));
  page.heading("Figure 9: extreme requests");
  page.chart(
      level_chart(study, "ANTT with queueing, extreme mix",
                  "Requests of one unit or of a whole SM. Point at a published point for its "
                  "policy.",
                  TbMix::extreme, queueing, &TbCell::antt_queue,
                  {{120, 2.3, {}, {}, "DFA"}, {120, 10.4, {}, {}, "BFA"}}));
  page.chart(level_chart(study, "ANTT without queueing, extreme mix", "", TbMix::extreme, antt,
                         &TbCell::antt));
  page.chart(level_chart(study, "Share of kernels finished, extreme mix", "What ANTT leaves out.",
                         TbMix::extreme, {.name = "finished share"}, &TbCell::finished_share));
  for (const TbMix mix : {TbMix::uniform, TbMix::extreme}) add_all_numbers(page, study.cells, mix);
  return page.html();
}

}  // namespace demarc::report
