// Makes the page that sets the figures of the SimTBS paper beside reproduced ones.
#include "demarc/report/schedule_page.hpp"

#include <algorithm>
#include <functional>

#include "demarc/base/text.hpp"
#include "demarc/sim/dispatch/tb_claims.hpp"
#include "schedule_cells.hpp"

namespace demarc::report {
namespace {

using sim::Estimate;
using sim::Published;
using sim::TbCell;
using sim::TbClaim;
using sim::TbLine;
using sim::TbMix;
using Reading = std::function<Estimate(const TbCell&)>;

struct PaperPoint {
  double load;
  const Published& said;
  const char* policy;
};

// Numbers that the paper's text names, drawn beside the curves.
Series paper_points(const std::vector<PaperPoint>& points) {
  Series series{"paper", SeriesKind::scatter, {}};
  for (const PaperPoint& point : points) {
    series.points.push_back({point.load,
                             point.said.value,
                             {},
                             {},
                             fmt::format("{}: {}", point.policy, point.said.words)});
  }
  return series;
}

Chart level_chart(const sim::TbStudy& study, const std::string& title, const std::string& caption,
                  TbMix mix, Axis y, const Reading& reading,
                  const std::vector<PaperPoint>& points = {}) {
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
  if (!points.empty()) chart.series.push_back(paper_points(points));
  return chart;
}

// Figure 6. Of its bars the paper's text names one.
Chart figure6(const sim::TbStudy& study) {
  Chart chart;
  chart.title = "Figure 6: ANTT at a load of 80 %";
  chart.caption = "Turnaround counts from arrival. Ours: mean and 95 % interval over seeds.";
  chart.x = {.name = "policy", .categories = {"RR", "BFA", "DFA"}};
  chart.y = {.name = "ANTT", .low = 0};
  chart.series.push_back({"paper", SeriesKind::bar, {{0, sim::simtbs_paper::rr_at_80.value}}});
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
      "with the share of kernels finished and ANTT with queueing.");
}

}  // namespace

Table schedule_published_table(const sim::TbStudy& study) {
  Table table;
  table.columns = {{"figure"},
                   {"paper", Align::right},
                   {"place"},
                   {"ours", Align::right},
                   {"within", Align::right},
                   {"reproduced"},
                   {"program of 2020, our runs", Align::right}};
  const std::vector<TbClaim> claims = tb_claims(study);
  for (const TbClaim& claim : claims) {
    auto& row = table.rows.emplace_back();
    row.emplace_back(claim.name);
    row.emplace_back(claim.paper == nullptr ? std::string() : std::string(claim.paper->words));
    row.emplace_back(claim.paper == nullptr ? std::string() : std::string(claim.paper->place));
    row.push_back(claim.ours ? estimate_cell(*claim.ours, claim.runs) : Cell());
    const bool judged = claim.ours && claim.limits;
    if (judged) row.back().tone = claim.holds() ? Tone::good : Tone::bad;
    row.emplace_back(judged ? claim.range() : std::string());
    row.emplace_back(!judged ? "" : claim.holds() ? "yes" : "no");
    row.emplace_back(claim.program ? fmt::format("{}", *claim.program) : std::string());
  }
  table.caption = fmt::format(
      "The program of May 2020, its machine and its workloads; mean ± half of the 95 % interval "
      "over seeds. ANTT counts from arrival; SM use is in per cent. A number of the paper is "
      "reproduced if ours lies within what one more workload gives (95 %) or 2 % of it; the limits "
      "of statements without a number are ours. Reproduced: {}. The last column is not in the "
      "paper: means over six workloads that the program's own generator drew, and their ratios.",
      reproduced_text(claims));
  return table;
}

std::string schedule_study_page(const sim::TbStudy& study, const std::string& command) {
  Page page("Thread-block scheduling: the paper's curves and the corrected ones",
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
                         {{125, sim::simtbs_paper::bfa_use_at_125, "BFA"},
                          {125, sim::simtbs_paper::dfa_use_at_125, "DFA"}}));
  page.chart(level_chart(study, "SM use with each block's last tick, uniform mix", "",
                         TbMix::uniform, use, &TbCell::utilization_full));
  page.heading("Figure 9: extreme requests");
  page.chart(
      level_chart(study, "ANTT with queueing, extreme mix",
                  "Requests of one unit or of a whole SM. The paper says that DFA stays below 4 up "
                  "to 120 %.",
                  TbMix::extreme, queueing, &TbCell::antt_queue,
                  {{120, sim::simtbs_paper::dfa_to_120, "DFA"}}));
  page.chart(level_chart(study, "ANTT without queueing, extreme mix", "", TbMix::extreme, antt,
                         &TbCell::antt));
  page.chart(level_chart(study, "Share of kernels finished, extreme mix", "What ANTT leaves out.",
                         TbMix::extreme, {.name = "finished share"}, &TbCell::finished_share));
  for (const TbMix mix : {TbMix::uniform, TbMix::extreme}) add_all_numbers(page, study.cells, mix);
  add_study_context(page, study, command);
  return page.html();
}

}  // namespace demarc::report
