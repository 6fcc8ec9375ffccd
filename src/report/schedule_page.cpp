#include "demarc/report/schedule_page.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "demarc/report/page.hpp"

namespace demarc::report {
namespace {

using sim::Estimate;
using sim::TbCell;
using sim::TbMix;
using sim::TbModel;
using Reading = std::function<Estimate(const TbCell&)>;

Point estimate_point(double x, const Estimate& e) {
  return {x, e.mean, e.low, e.high, {}};
}

Series level_series(const sim::TbStudy& study, std::string name, TbModel model, TbMix mix,
                    std::string_view policy, const Reading& reading, std::uint32_t sms = 16) {
  Series series{std::move(name), SeriesKind::line, {}};
  for (const TbCell& cell : study.cells) {
    if (cell.model != model || cell.mix != mix || cell.policy != policy || cell.sms != sms ||
        cell.memory != study.cells.front().memory || cell.runs.empty()) {
      continue;
    }
    series.points.push_back(estimate_point(cell.level, reading(cell)));
  }
  return series;
}

Chart level_chart(const sim::TbStudy& study, const std::string& title, const std::string& caption,
                  TbMix mix, const std::string& quantity, const Reading& reading) {
  Chart chart;
  chart.title = title;
  chart.caption = caption;
  chart.x = {.name = "nominal load", .unit = "%"};
  chart.y = {.name = quantity};
  struct Line {
    const char* name;
    TbModel model;
    const char* policy;
  };
  static constexpr Line lines[] = {
      {"RR, published 2020", TbModel::simtbs_2020, "rr"},
      {"BFA, published 2020", TbModel::simtbs_2020, "bfa"},
      {"DFA, published 2020", TbModel::simtbs_2020, "dfa"},
      {"RR, as of 2021 (no wrap stop)", TbModel::simtbs, "rr"},
      {"round robin that skips full SMs", TbModel::corrected, "rr-skip"},
      {"BFA, corrected", TbModel::corrected, "bfa"},
      {"DFA, corrected", TbModel::corrected, "dfa"}};
  for (const Line& line : lines) {
    Series series = level_series(study, line.name, line.model, mix, line.policy, reading);
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Cell estimate_cell(const Estimate& e, int decimals) {
  Cell cell(fmt::format("{:.{}f} ± {:.{}f}", e.mean, decimals, e.high - e.mean, decimals));
  cell.number = e.mean;
  return cell;
}

std::string_view mix_title(TbMix mix) {
  switch (mix) {
    case TbMix::uniform:
      return "uniform mix";
    case TbMix::extreme:
      return "extreme mix";
    case TbMix::multi:
      return "three resources";
  }
  return "";
}

Table study_cells(const std::vector<const TbCell*>& cells) {
  Table table;
  table.columns = {{"model"},
                   {"policy"},
                   {"memory", Align::right},
                   {"load %", Align::right},
                   {"ANTT", Align::right},
                   {"ANTT with queueing", Align::right},
                   {"STP", Align::right},
                   {"SM use %", Align::right},
                   {"with last tick %", Align::right},
                   {"finished", Align::right},
                   {"fairness", Align::right},
                   {"neighbours together", Align::right}};
  for (const TbCell* cell : cells) {
    if (cell->runs.empty()) continue;
    table.rows.push_back(
        {std::string(to_string(cell->model)), cell->policy,
         cell->memory == 0 ? Cell("scaled") : count_cell(cell->memory), count_cell(cell->level),
         estimate_cell(cell->antt(), 3), estimate_cell(cell->antt_queue(), 2),
         estimate_cell(cell->stp(), 3), estimate_cell(cell->utilization(), 1),
         estimate_cell(cell->utilization_full(), 1), percent_cell(cell->finished_share().mean),
         estimate_cell(cell->fairness(), 3), percent_cell(cell->neighbours_together().mean)});
  }
  return table;
}

Table published_against_ours(const sim::TbStudy& study) {
  struct Row {
    const char* what;
    const char* published;
    TbModel model;
    TbMix mix;
    const char* policy;
    std::uint32_t level;
    Reading reading;
  };
  constexpr TbModel paper = TbModel::simtbs_2020;
  const Reading antt = &TbCell::antt_queue;
  const Reading use = &TbCell::utilization;
  const Row rows[] = {
      {"Figure 6: ANTT of RR at 10 %", "equal to BFA", paper, TbMix::uniform, "rr", 10, antt},
      {"Figure 6: ANTT of BFA at 10 %", "equal to RR", paper, TbMix::uniform, "bfa", 10, antt},
      {"Figure 6: ANTT of RR at 80 %", "2.28", paper, TbMix::uniform, "rr", 80, antt},
      {"Figure 6: ANTT of BFA at 80 %", "1.41", paper, TbMix::uniform, "bfa", 80, antt},
      {"Figure 6: ANTT of DFA at 80 %", "1.35", paper, TbMix::uniform, "dfa", 80, antt},
      {"The same RR without the stop at the wrap", "", TbModel::simtbs, TbMix::uniform, "rr", 80,
       antt},
      {"Round robin that skips full SMs", "", TbModel::corrected, TbMix::uniform, "rr-skip", 80,
       antt},
      {"BFA beside it", "", TbModel::corrected, TbMix::uniform, "bfa", 80, antt},
      {"Figure 8: SM use of BFA at 125 %, per cent", "76.1", paper, TbMix::uniform, "bfa", 125,
       use},
      {"Figure 8: SM use of DFA at 125 %, per cent", "76.4", paper, TbMix::uniform, "dfa", 125,
       use},
      {"Figure 9: ANTT of DFA at 120 %, extreme mix", "2.3", paper, TbMix::extreme, "dfa", 120,
       antt},
      {"Figure 9: ANTT of BFA at 120 %, extreme mix", "10.4", paper, TbMix::extreme, "bfa", 120,
       antt}};
  Table table;
  table.caption =
      "Published figures and ours by the rules and workloads of 2020, under three capacities of "
      "global memory. The paper does not state its own, and no single one gives all figures: "
      "Figure 6 comes out with 250000 units, Figure 8 with 500000, Figure 9 with about a million. "
      "ANTT is read with queueing; without it Figure 6 does not come out with any. So each figure "
      "is a fit, not a confirmation. At every capacity RR is worst at 80 %, and a round robin that "
      "skips full SMs is beside BFA. Mean ± half of the 95 % interval over seeds.";
  table.columns = {{"figure"}, {"published", Align::right}};
  for (const std::uint32_t memory : sim::paper_memories) {
    table.columns.push_back({fmt::format("{} units", memory), Align::right});
  }
  for (const Row& row : rows) {
    std::vector<Cell> cells{row.what, row.published};
    for (const std::uint32_t memory : sim::paper_memories) {
      const TbCell* cell = study.find(row.model, row.mix, row.policy, row.level, 16, memory);
      cells.push_back(cell == nullptr || cell->runs.empty() ? Cell("")
                                                            : estimate_cell(row.reading(*cell), 2));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

void add_study_context(Page& page, const sim::TbStudy& study, const std::string& command) {
  page.context({.command = command,
                .seed = fmt::format("{} to {}", study.options.first_seed,
                                    study.options.first_seed + study.options.seeds - 1),
                .more = {{"ticks of each run", fmt::format("{}", study.options.ticks)},
                         {"confidence", "95 %, Student's t over seeds"}}});
}

}  // namespace

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
  page.table(published_against_ours(study));
  const Reading antt = &TbCell::antt;
  page.prose("The curves below are drawn with 250000 units.");
  page.heading("Figures 6 and 8: uniform requests");
  page.chart(level_chart(study, "ANTT, uniform mix",
                         "Figure 6 shows 10 and 80 %; Figure 8 the gain over RR.", TbMix::uniform,
                         "ANTT", antt));
  page.chart(level_chart(study, "ANTT with queueing, uniform mix", "", TbMix::uniform,
                         "ANTT with queueing", &TbCell::antt_queue));
  page.heading("Figure 7: use of the SMs");
  page.chart(level_chart(study, "SM use, uniform mix",
                         "Sampled after completions, as the program does: each block's last tick "
                         "is missing.",
                         TbMix::uniform, "SM use in per cent", &TbCell::utilization));
  page.chart(level_chart(study, "SM use with each block's last tick", "", TbMix::uniform,
                         "SM use in per cent", &TbCell::utilization_full));
  page.heading("Figure 9: extreme requests");
  page.chart(level_chart(study, "ANTT, extreme mix", "Requests of one unit or of a whole SM.",
                         TbMix::extreme, "ANTT", antt));
  page.chart(level_chart(study, "Share of kernels finished, extreme mix", "", TbMix::extreme,
                         "finished share", &TbCell::finished_share));
  for (const TbMix mix : {TbMix::uniform, TbMix::extreme}) {
    std::vector<const TbCell*> cells;
    for (const TbCell& cell : study.cells) {
      if (cell.mix == mix) cells.push_back(&cell);
    }
    page.begin_section(fmt::format("All numbers, {}", mix_title(mix)), true);
    page.table(study_cells(cells));
    page.end_section();
  }
  return page.html();
}

std::string schedule_compare_page(const sim::TbStudy& study, const std::string& command) {
  Page page("Dispatch policies compared", "loads, mixes and machine sizes");
  add_study_context(page, study, command);
  std::set<std::uint32_t> sizes;
  std::set<std::string> policies;
  for (const TbCell& cell : study.cells) {
    sizes.insert(cell.sms);
    policies.insert(cell.policy);
  }
  for (const TbMix mix : {TbMix::uniform, TbMix::extreme, TbMix::multi}) {
    page.heading(std::string(mix_title(mix)));
    for (const std::uint32_t sms : sizes) {
      Chart chart;
      chart.title = fmt::format("ANTT with queueing, {} SMs", sms);
      chart.x = {.name = "nominal load", .unit = "%"};
      chart.y = {.name = "ANTT with queueing", .logarithmic = true};
      std::vector<const TbCell*> cells;
      for (const std::string& policy : policies) {
        Series series =
            level_series(study, policy, TbModel::corrected, mix, policy, &TbCell::antt_queue, sms);
        if (!series.points.empty()) chart.series.push_back(std::move(series));
      }
      for (const TbCell& cell : study.cells) {
        if (cell.mix == mix && cell.sms == sms) cells.push_back(&cell);
      }
      if (cells.empty()) continue;
      page.chart(chart);
      page.begin_section(fmt::format("All numbers, {} SMs", sms), true);
      page.table(study_cells(cells));
      page.end_section();
    }
  }
  return page.html();
}

}  // namespace demarc::report
