// Makes the cells, tables and contexts that pages of dispatch studies have in common.
#include "schedule_cells.hpp"

#include "demarc/base/text.hpp"

namespace demarc::report {

Cell estimate_cell(const sim::Estimate& e, int decimals, std::size_t runs) {
  if (runs < 2) return number_cell(e.mean, decimals);
  Cell cell(fmt::format("{:.{}f} ± {:.{}f}", e.mean, decimals, e.high - e.mean, decimals));
  cell.number = e.mean;
  return cell;
}

std::string_view mix_title(sim::TbMix mix) {
  switch (mix) {
    case sim::TbMix::uniform:
      return "uniform mix";
    case sim::TbMix::extreme:
      return "extreme mix";
    case sim::TbMix::multi:
      return "three resources";
    case sim::TbMix::given:
      return "workloads given";
  }
  return "";
}

void add_all_numbers(Page& page, const std::vector<sim::TbCell>& cells, sim::TbMix mix) {
  Table table;
  table.columns = {{"model"},
                   {"policy"},
                   {"policy as of"},
                   {"SMs", Align::right},
                   {"load %", Align::right},
                   {"ANTT", Align::right},
                   {"ANTT with queueing", Align::right},
                   {"STP", Align::right},
                   {"SM use %", Align::right},
                   {"with last tick %", Align::right},
                   {"finished", Align::right},
                   {"fairness", Align::right},
                   {"neighbours together", Align::right}};
  for (const sim::TbCell& cell : cells) {
    if (cell.mix != mix || cell.runs.empty()) continue;
    table.rows.push_back({std::string(to_string(cell.model)), cell.policy,
                          std::string(to_string(cell.policy_rules)), count_cell(cell.sms),
                          cell.mix == sim::TbMix::given ? Cell("") : count_cell(cell.level),
                          estimate_cell(cell.antt(), 3, cell.runs.size()),
                          estimate_cell(cell.antt_queue(), 2, cell.runs.size()),
                          estimate_cell(cell.stp(), 3, cell.runs.size()),
                          estimate_cell(cell.utilization(), 1, cell.runs.size()),
                          estimate_cell(cell.utilization_full(), 1, cell.runs.size()),
                          percent_cell(cell.finished_share().mean),
                          estimate_cell(cell.fairness(), 3, cell.runs.size()),
                          percent_cell(cell.neighbours_together().mean)});
  }
  page.begin_section(fmt::format("All numbers, {}", mix_title(mix)), true);
  page.table(table);
  page.end_section();
}

void add_study_context(Page& page, const sim::TbStudy& study, const std::string& command) {
  if (study.options.workloads.empty()) {
    page.context({.command = command,
                  .seed = fmt::format("{} to {}", study.options.first_seed,
                                      study.options.first_seed + study.options.seeds - 1),
                  .more = {{"ticks of each run", fmt::format("{}", study.options.ticks)},
                           {"confidence", "95 %, Student's t over seeds"}}});
    return;
  }
  std::vector<std::string> names;
  for (const sim::TbConfig& workload : study.options.workloads) names.push_back(workload.source);
  page.context({.command = command,
                .more = {{"workloads", joined(names, ", ")},
                         {"confidence", "95 %, Student's t over workloads"}}});
}

}  // namespace demarc::report
