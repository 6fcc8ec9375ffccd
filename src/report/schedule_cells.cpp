// Makes the cells, tables and contexts that pages of dispatch studies have in common.
#include "schedule_cells.hpp"

#include <set>

#include "demarc/base/text.hpp"

namespace demarc::report {
namespace {

// No card: machines of so many SMs.
std::vector<ContextDevice> simulated_devices(const sim::TbStudy& study) {
  std::set<std::uint32_t> sizes;
  for (const sim::TbCell& cell : study.cells) sizes.insert(cell.sms);
  std::vector<std::string> names;
  names.reserve(sizes.size());
  for (const std::uint32_t sms : sizes) names.push_back(fmt::format("{}", sms));
  if (names.empty()) return {};
  return {{fmt::format("simulated machines of {} SMs", joined(names, ", "))}};
}

}  // namespace

Cell estimate_cell(const sim::Estimate& e, std::size_t runs) {
  Cell cell = digits_cell(e.mean);
  if (runs < 2) return cell;
  const std::size_t point = cell.text.find('.');
  const std::size_t decimals = point == std::string::npos ? 0 : cell.text.size() - point - 1;
  cell.text += fmt::format(" ± {:.{}f}", e.high - e.mean, decimals);
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
    table.rows.push_back(
        {std::string(to_string(cell.model)), cell.policy, std::string(to_string(cell.policy_rules)),
         count_cell(cell.sms), cell.mix == sim::TbMix::given ? Cell("") : count_cell(cell.level),
         estimate_cell(cell.antt(), cell.runs.size()),
         estimate_cell(cell.antt_queue(), cell.runs.size()),
         estimate_cell(cell.stp(), cell.runs.size()),
         estimate_cell(cell.utilization(), cell.runs.size()),
         estimate_cell(cell.utilization_full(), cell.runs.size()),
         percent_cell(cell.finished_share().mean), estimate_cell(cell.fairness(), cell.runs.size()),
         percent_cell(cell.neighbours_together().mean)});
  }
  page.begin_section(fmt::format("All numbers, {}", mix_title(mix)), true);
  page.table(table);
  page.end_section();
}

void add_study_context(Page& page, const sim::TbStudy& study, const std::string& command) {
  if (study.options.workloads.empty()) {
    page.context({.command = command,
                  .devices = simulated_devices(study),
                  .seed = fmt::format("{} to {}", study.options.first_seed,
                                      study.options.first_seed + study.options.seeds - 1),
                  .more = {{"ticks of each run", fmt::format("{}", study.options.ticks)},
                           {"confidence", "95 %, Student's t over seeds"}}});
    return;
  }
  std::vector<std::string> names;
  for (const sim::TbConfig& workload : study.options.workloads) names.push_back(workload.source);
  page.context({.command = command,
                .devices = simulated_devices(study),
                .more = {{"workloads", joined(names, ", ")},
                         {"confidence", "95 %, Student's t over workloads"}}});
}

}  // namespace demarc::report
