// Makes the page that sets the figures of the SimTBS paper beside reproduced ones.
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
using sim::TbLine;
using sim::TbMix;
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
  for (const TbLine& line : sim::paper_lines) {
    Series series{std::string(line.name), SeriesKind::line, {}};
    for (const TbCell& cell : study.cells) {
      if (!(cell.line() == line) || cell.mix != mix || cell.runs.empty()) continue;
      const Estimate e = reading(cell);
      const double low = chart.y.logarithmic ? std::max(e.low, std::min(e.mean, 1.0)) : e.low;
      series.points.push_back({double(cell.level), e.mean, low, e.high, {}});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  if (!published.empty()) chart.series.push_back(published_points(std::move(published)));
  return chart;
}

// Figure 6: the paper's bars beside ours.
Chart figure6(const sim::TbStudy& study) {
  Chart chart;
  chart.title = "Figure 6: ANTT at a load of 80 %";
  chart.caption = "Turnaround counts from arrival. Ours: mean and 95 % interval over seeds.";
  chart.x = {.name = "policy", .categories = {"RR", "BFA", "DFA"}};
  chart.y = {.name = "ANTT", .low = 0};
  chart.series.push_back({"published", SeriesKind::bar, {{0, 2.28}, {1, 1.41}, {2, 1.35}}});
  Series series{"ours", SeriesKind::bar, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    const TbCell* cell = study.find(sim::paper_lines[i], TbMix::uniform, 80);
    if (cell == nullptr || cell->runs.empty()) continue;
    const Estimate e = cell->antt_queue();
    series.points.push_back({static_cast<double>(i), e.mean, e.low, e.high, {}});
  }
  chart.series.push_back(std::move(series));
  return chart;
}

struct PublishedFigure {
  const char* what;
  std::optional<double> published;
  std::size_t line;  // of paper_lines
  TbMix mix;
  std::uint32_t level;
  Reading reading;
};

std::vector<PublishedFigure> published_figures() {
  enum : std::size_t { rr, bfa, dfa, rr_without_stop, rr_that_skips };
  const Reading antt = &TbCell::antt_queue;
  const Reading use = &TbCell::utilization;
  return {{"Figure 6: ANTT of RR at 10 % (equal to BFA)", {}, rr, TbMix::uniform, 10, antt},
          {"Figure 6: ANTT of BFA at 10 % (equal to RR)", {}, bfa, TbMix::uniform, 10, antt},
          {"Figure 6: ANTT of RR at 80 %", 2.28, rr, TbMix::uniform, 80, antt},
          {"Figure 6: ANTT of BFA at 80 %", 1.41, bfa, TbMix::uniform, 80, antt},
          {"Figure 6: ANTT of DFA at 80 %", 1.35, dfa, TbMix::uniform, 80, antt},
          {"RR without the stop at the wrap", {}, rr_without_stop, TbMix::uniform, 80, antt},
          {"Round robin that skips full SMs", {}, rr_that_skips, TbMix::uniform, 80, antt},
          {"Figure 7: SM use of RR at 80 %", {}, rr, TbMix::uniform, 80, use},
          {"Figure 7: SM use of BFA at 80 %", {}, bfa, TbMix::uniform, 80, use},
          {"Figure 7: SM use of DFA at 80 %", {}, dfa, TbMix::uniform, 80, use},
          {"Figure 8: SM use of RR at 125 %", {}, rr, TbMix::uniform, 125, use},
          {"Figure 8: SM use of BFA at 125 %", 76.1, bfa, TbMix::uniform, 125, use},
          {"Figure 8: SM use of DFA at 125 %", 76.4, dfa, TbMix::uniform, 125, use},
          {"Figure 9: ANTT of DFA at 120 %", 2.3, dfa, TbMix::extreme, 120, antt},
          {"Figure 9: ANTT of BFA at 120 %", 10.4, bfa, TbMix::extreme, 120, antt},
          {"Figure 9: SM use of DFA at 120 %", 86.9, dfa, TbMix::extreme, 120, use}};
}

// Whether a number printed with two or three digits is what one more of our workloads may give: it
// lies within their 95 % prediction interval, or 2 % of the mean.
bool comes_out(const Estimate& ours, std::size_t runs, double published) {
  const double more = (ours.high - ours.mean) * std::sqrt(static_cast<double>(runs) + 1);
  return std::abs(ours.mean - published) <= std::max(more, 0.02 * published);
}

// For workloads of one's own there is no published figure: the policies side by side.
Chart given_chart(const sim::TbStudy& study) {
  Chart chart;
  chart.title = "ANTT of the workloads given";
  chart.caption = "Turnaround counts from arrival; mean and 95 % interval over workloads.";
  chart.x = {.name = "policy"};
  chart.y = {.name = "ANTT", .low = 0};
  Series series{"ANTT", SeriesKind::bar, {}};
  for (const TbLine& line : sim::paper_lines) {
    const TbCell* cell = study.find(line, TbMix::given, 0, study.cells.front().sms);
    if (cell == nullptr || cell->runs.empty()) continue;
    const Estimate e = cell->antt_queue();
    series.points.push_back({double(chart.x.categories.size()), e.mean, e.low, e.high, {}});
    chart.x.categories.emplace_back(line.name);
  }
  chart.series.push_back(std::move(series));
  return chart;
}

void add_round_robin(Page& page) {
  page.heading("What the published round robin does");
  page.prose(
      "The paper's round robin is not the one of the textbooks. Two properties of the program make "
      "its penalty:\n\n"
      "- When the next SM is full, it does not move on to the one after: it asks the same SM again "
      "and gives up for this tick, although others have room.\n"
      "- In the version of the paper, a tick also ends whenever the pointer passes the last SM, so "
      "that at most as many blocks as there are SMs start in one tick.\n\n"
      "Three curves take both away, one after the other: `rr` under the rules of 2020, `rr` "
      "without the stop at the wrap (2021), and a round robin that skips full SMs (`rr-skip`). "
      "What remains of the gap to BFA is what balancing by use is worth. All have the costs of "
      "2020.\n\n"
      "ANTT leaves out kernels that do not finish, which flatters an overloaded policy: read it "
      "beside the share of kernels finished and ANTT with queueing.");
}

}  // namespace

Table schedule_published_table(const sim::TbStudy& study) {
  Table table;
  table.columns = {{"figure"}, {"published", Align::right}, {"ours", Align::right}};
  std::size_t numbers = 0;
  std::size_t agreeing = 0;
  for (const PublishedFigure& figure : published_figures()) {
    auto& row = table.rows.emplace_back();
    row = {figure.what, figure.published ? Cell(fmt::format("{}", *figure.published)) : Cell("")};
    numbers += figure.published ? std::size_t{1} : std::size_t{0};
    const TbCell* cell = study.find(sim::paper_lines[figure.line], figure.mix, figure.level);
    if (cell == nullptr || cell->runs.empty()) {
      row.emplace_back("");
      continue;
    }
    const Estimate ours = figure.reading(*cell);
    Cell shown = estimate_cell(ours, cell->runs.size());
    if (figure.published) {
      const bool agrees = comes_out(ours, cell->runs.size(), *figure.published);
      agreeing += agrees ? std::size_t{1} : std::size_t{0};
      shown.tone = agrees ? Tone::good : Tone::bad;
    }
    row.push_back(std::move(shown));
  }
  table.caption = fmt::format(
      "The program of May 2020, its machine and its workloads; mean ± half of the 95 % interval "
      "over "
      "seeds. ANTT counts from arrival; SM use is in per cent. A published number comes out when "
      "it "
      "lies within what one more workload gives (95 %) or 2 % of our mean: {} of {} do.",
      agreeing, numbers);
  return table;
}

std::string schedule_study_page(const sim::TbStudy& study, const std::string& command) {
  Page page("Thread-block scheduling: the published curves and the corrected ones",
            "SimTBS, Figures 6 to 9, 16 SMs of 8 units");
  page.heading("Result");
  page.prose(
      "ANTT: the mean over the finished kernels of their time, from arrival, over their time "
      "alone; 1 is undisturbed.");
  if (!study.options.workloads.empty()) {
    page.chart(given_chart(study));
    add_all_numbers(page, study.cells, TbMix::given);
    add_round_robin(page);
    add_study_context(page, study, command);
    return page.html();
  }
  page.table(schedule_published_table(study));
  add_round_robin(page);
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
  add_study_context(page, study, command);
  return page.html();
}

}  // namespace demarc::report
