// Makes the page that compares dispatch policies over loads, mixes and machine sizes.
#include <algorithm>

#include "demarc/base/text.hpp"
#include "demarc/report/schedule_page.hpp"
#include "demarc/sim/dispatch/tb_compare.hpp"
#include "schedule_cells.hpp"

namespace demarc::report {
namespace {

using sim::TbMix;
using Groups = std::vector<std::vector<std::string>>;

std::string group_name(const std::vector<std::string>& group) {
  return joined(group, ", ");
}

// Every measure over all loads and sizes.
Table overall_table(const sim::TbStudy& study, TbMix mix, const Groups& groups) {
  Table table;
  table.caption = fmt::format(
      "Over all loads and sizes, each policy against {} on the same workloads: 1.00 is the same, "
      "1.10 is 10 % more. Less is better for both ANTT, more for the others.",
      sim::compare_baseline);
  table.columns = {{"policy"}};
  for (const sim::TbMeasure& measure : sim::tb_measures()) {
    table.columns.push_back({std::string(measure.title), Align::right});
  }
  for (const auto& group : groups) {
    std::vector<Cell> row{Cell(group_name(group))};
    for (const sim::TbMeasure& measure : sim::tb_measures()) {
      const sim::Estimate ratio = ratio_to_baseline(study, {mix}, group.front(), measure);
      Cell cell = estimate_cell(ratio, study.runs);
      // Coloured where the whole interval lies on one side.
      if (study.runs > 1 && (ratio.low > 1 || ratio.high < 1)) {
        cell.tone = (ratio.mean < 1) == measure.less_is_better ? Tone::good : Tone::bad;
      }
      row.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

HeatMap ratio_map(const sim::TbStudy& study, TbMix mix, const Groups& groups,
                  const sim::TbMeasure& measure) {
  HeatMap map;
  map.title =
      fmt::format("{}: {} is better", measure.title, measure.less_is_better ? "less" : "more");
  map.row_name = "policy";
  map.column_name = mix == TbMix::given ? "SMs" : "SMs, load";
  map.value_name = fmt::format("times {}'s", sim::compare_baseline);
  map.middle = 1;
  map.decimals = 2;
  for (const auto& group : groups) map.row_labels.push_back(group.front());
  for (const std::uint32_t sms : study_sizes(study)) {
    for (const std::uint32_t level : study_levels(study)) {
      const auto column = static_cast<std::uint32_t>(map.column_labels.size());
      map.column_labels.push_back(mix == TbMix::given ? fmt::format("{}", sms)
                                                      : fmt::format("{}, {} %", sms, level));
      for (std::uint32_t row = 0; row < groups.size(); ++row) {
        map.cells.push_back(
            {row, column,
             ratio_to_baseline(study, {mix, level, sms}, groups[row].front(), measure).mean});
      }
    }
  }
  map.rows = static_cast<std::uint32_t>(map.row_labels.size());
  map.columns = static_cast<std::uint32_t>(map.column_labels.size());
  return map;
}

void add_ratio_maps(Page& page, const sim::TbStudy& study, TbMix mix, const Groups& groups) {
  HeatMaps maps{
      .title = fmt::format("Each policy against {}, {}", sim::compare_baseline, mix_title(mix)),
      .caption =
          "Mean over seeds of the ratio, by number of SMs and load. Policies with the same "
          "figures are named once. All maps share one scale."};
  for (const sim::TbMeasure& measure : sim::tb_measures()) {
    if (measure.name == "antt-queue" || measure.name == "stp" || measure.name == "fairness") {
      maps.maps.push_back(ratio_map(study, mix, groups, measure));
    }
  }
  page.heat_maps(maps);
}

// For each mix the policies with the least ANTT from arrival.
void add_compare_result(Page& page, const sim::TbStudy& study) {
  const sim::TbMeasure& antt = *sim::find_tb_measure("antt-queue").value();
  std::vector<KeyFigure> cards;
  for (const TbMix mix : sim::tb_mixes) {
    const Groups groups = equal_policies(study, {mix});
    if (groups.empty()) continue;
    const auto ratio = [&](const std::vector<std::string>& group) {
      return ratio_to_baseline(study, {mix}, group.front(), antt);
    };
    const auto best = std::min_element(
        groups.begin(), groups.end(),
        [&](const auto& a, const auto& b) { return ratio(a).mean < ratio(b).mean; });
    cards.push_back(
        {.name = fmt::format("Least ANTT, {}", mix_title(mix)),
         .value = group_name(*best),
         .note = fmt::format("{}x of {}'s, from arrival",
                             estimate_cell(ratio(*best), study.runs).text, sim::compare_baseline)});
  }
  page.key_figures(cards);
}

// Values of the policies side by side, by machine size, at the middle load.
Chart size_chart(const sim::TbStudy& study, TbMix mix, const Groups& groups) {
  const auto levels = study_levels(study);
  const std::uint32_t level = levels[levels.size() / 2];
  const auto sizes = study_sizes(study);
  Chart chart;
  chart.title = mix == TbMix::given ? std::string("ANTT with queueing, workloads given")
                                    : fmt::format("ANTT with queueing at a load of {} %, {}", level,
                                                  mix_title(mix));
  chart.caption =
      "Mean and 95 % interval over seeds. The intervals hold the spread between workloads, which "
      "all policies share; the ratios above do not.";
  chart.x = {.name = "machine"};
  chart.y = {.name = "ANTT with queueing", .low = 0};
  for (const std::uint32_t sms : sizes) chart.x.categories.push_back(fmt::format("{} SMs", sms));
  for (const auto& group : groups) {
    Series series{group_name(group), SeriesKind::bar, {}};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto at =
          std::find_if(study.cells.begin(), study.cells.end(), [&](const sim::TbCell& cell) {
            return cell.mix == mix && cell.level == level && cell.sms == sizes[i] &&
                   cell.policy == group.front();
          });
      if (at == study.cells.end() || at->runs.empty()) continue;
      const sim::Estimate value = at->antt_queue();
      series.points.push_back(
          {static_cast<double>(i), value.mean, std::max(value.low, 0.0), value.high, {}});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::string schedule_compare_page(const sim::TbStudy& study, const std::string& command) {
  Page page("Dispatch policies compared",
            "simulated, not measured: loads, mixes and machine sizes");
  page.heading("Result");
  page.prose(fmt::format(
      "ANTT: the mean over the finished kernels of their time over their time alone; less is "
      "better. Every policy gets the same workloads and is set against `{0}`, a round robin that "
      "skips full SMs: 1.00 is the same as `{0}`.",
      sim::compare_baseline));
  add_compare_result(page, study);
  page.heading("How to read it");
  page.prose(
      "The corrected rules hold. Most of what differs between workloads falls out of the ratios, "
      "seed by seed. Policies whose figures are the same in every run share a line.\n\n"
      "- ANTT counts from the first block of a kernel; with queueing it counts from arrival.\n"
      "- STP: stand-alone time of the finished kernels per tick.\n"
      "- SM use: of the first resource, with each block's last tick.\n"
      "- finished: share of the arrived kernels that ended. ANTT leaves out the others, which "
      "flatters an overloaded policy: read both.\n"
      "- fairness: Jain's index of the kernels' speed; 1 when all are slowed alike.\n\n"
      "Under overload the queue grows until the run ends, so that there ANTT with queueing depends "
      "on the length of the run.");
  for (const TbMix mix : sim::tb_mixes) {
    const Groups groups = equal_policies(study, {mix});
    if (groups.empty()) continue;
    page.heading(std::string(mix_title(mix)));
    page.table(overall_table(study, mix, groups));
    add_ratio_maps(page, study, mix, groups);
    page.chart(size_chart(study, mix, groups));
    add_all_numbers(page, study.cells, mix);
  }
  add_study_context(page, study, command);
  return page.html();
}

}  // namespace demarc::report
