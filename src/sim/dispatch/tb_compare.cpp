// Compares dispatch policies with a baseline, seed by seed, and prints the ratios.
#include "demarc/sim/dispatch/tb_compare.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "demarc/base/text.hpp"

namespace demarc::sim {
namespace {

constexpr TbMeasure all_measures[] = {
    {"antt", "ANTT", true, [](const TbMetrics& m) { return m.antt; }},
    {"antt-queue", "ANTT with queueing", true, [](const TbMetrics& m) { return m.antt_queue; }},
    {"stp", "STP", false, [](const TbMetrics& m) { return m.stp; }},
    {"use", "SM use", false, [](const TbMetrics& m) { return m.utilization_full[0]; }},
    {"finished", "finished", false, [](const TbMetrics& m) { return m.finished_share; }},
    {"fairness", "fairness", false, [](const TbMetrics& m) { return m.fairness; }},
};

bool selected(const TbCell& cell, const TbSelection& selection) {
  return cell.mix == selection.mix && (selection.level == 0 || cell.level == selection.level) &&
         (selection.sms == 0 || cell.sms == selection.sms);
}

const TbCell* same_setting(const TbStudy& study, const TbCell& cell, std::string_view policy) {
  return study.find({cell.model, cell.policy_rules, policy, {}}, cell.mix, cell.level, cell.sms);
}

bool same_figures(const TbCell& a, const TbCell& b) {
  return a.runs.size() == b.runs.size() &&
         std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(),
                    [](const TbMetrics& x, const TbMetrics& y) {
                      return std::all_of(
                          std::begin(all_measures), std::end(all_measures),
                          [&](const TbMeasure& measure) { return measure.of(x) == measure.of(y); });
                    });
}

bool equal_everywhere(const TbStudy& study, const TbSelection& selection, std::string_view a,
                      std::string_view b) {
  for (const TbCell& cell : study.cells) {
    if (cell.policy != a || !selected(cell, selection)) continue;
    const TbCell* other = same_setting(study, cell, b);
    if (other == nullptr || !same_figures(cell, *other)) return false;
  }
  return true;
}

// One seed gives no interval.
std::string plus_minus(const Estimate& e, std::size_t seeds) {
  if (seeds < 2) return fmt::format("{:.3f}", e.mean);
  return fmt::format("{:.3f} ±{:.3f}", e.mean, e.high - e.mean);
}

struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // name, then a cell a column

  void print(std::string& out) const {
    std::size_t names = 12;
    for (const auto& row : rows) names = std::max(names, row[0].size());
    append(out, "{:<{}}", "policy", names);
    for (const std::string& column : columns) append(out, "  {:>18}", column);
    out += "\n";
    for (const auto& row : rows) {
      append(out, "{:<{}}", row[0], names);
      for (std::size_t c = 1; c < row.size(); ++c) append(out, "  {:>18}", row[c]);
      out += "\n";
    }
    out += "\n";
  }
};

std::string_view direction(const TbMeasure& measure) {
  return measure.less_is_better ? "less is better" : "more is better";
}

}  // namespace

std::span<const TbMeasure> tb_measures() {
  return all_measures;
}

Result<const TbMeasure*> find_tb_measure(std::string_view name) {
  std::string known;
  for (const TbMeasure& measure : all_measures) {
    if (measure.name == name) return &measure;
    known += known.empty() ? "" : ", ";
    known += measure.name;
  }
  return invalid_input("unknown measure '{}': known are {}", name, known);
}

std::string_view to_string(TbMix mix) {
  switch (mix) {
    case TbMix::uniform:
      return "uniform";
    case TbMix::extreme:
      return "extreme";
    case TbMix::multi:
      return "multi";
    case TbMix::given:
      return "given";
  }
  return "";
}

Estimate ratio_to_baseline(const TbStudy& study, const TbSelection& selection,
                           std::string_view policy, const TbMeasure& measure) {
  std::vector<double> logarithms(study.runs);
  std::vector<std::size_t> cells(study.runs);
  for (const TbCell& cell : study.cells) {
    if (cell.policy != policy || !selected(cell, selection)) continue;
    const TbCell* base = same_setting(study, cell, compare_baseline);
    // A run that ended out of memory is missing, and then the seeds no longer stand beside each
    // other.
    if (base == nullptr || base->runs.size() != cell.runs.size()) continue;
    for (std::size_t seed = 0; seed < cell.runs.size(); ++seed) {
      const double value = measure.of(cell.runs[seed]);
      const double reference = measure.of(base->runs[seed]);
      if (!(value > 0) || !(reference > 0)) continue;  // nothing finished
      logarithms[seed] += std::log(value / reference);
      ++cells[seed];
    }
  }
  std::vector<double> samples;
  for (std::size_t seed = 0; seed < cells.size(); ++seed) {
    if (cells[seed] == 0) continue;
    samples.push_back(std::exp(logarithms[seed] / static_cast<double>(cells[seed])));
  }
  return estimate(samples);
}

std::vector<std::vector<std::string>> equal_policies(const TbStudy& study,
                                                     const TbSelection& selection) {
  std::vector<std::vector<std::string>> groups;
  std::set<std::string> seen;
  for (const TbCell& cell : study.cells) {
    if (!selected(cell, selection) || !seen.insert(cell.policy).second) continue;
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return equal_everywhere(study, selection, group.front(), cell.policy);
    });
    if (at == groups.end()) {
      groups.push_back({cell.policy});
    } else {
      at->push_back(cell.policy);
    }
  }
  return groups;
}

std::vector<std::uint32_t> study_levels(const TbStudy& study) {
  std::set<std::uint32_t> levels;
  for (const TbCell& cell : study.cells) levels.insert(cell.level);
  return {levels.begin(), levels.end()};
}

std::vector<std::uint32_t> study_sizes(const TbStudy& study) {
  std::set<std::uint32_t> sizes;
  for (const TbCell& cell : study.cells) sizes.insert(cell.sms);
  return {sizes.begin(), sizes.end()};
}

std::string compare_table(const TbStudy& study, const TbMeasure& measure) {
  std::string out;
  const auto sizes = study_sizes(study);
  const bool given = !study.options.workloads.empty();
  const std::string_view what = given ? "workload" : "seed";
  append(out,
         "{} {}{}{}. Each figure is the policy's over that of {} on the same workload, {} by {}:\n"
         "1.000 is the same. {} Policies with equal figures share a line.\n\n",
         study.runs, what, study.runs == 1 ? "" : "s",
         given ? "" : fmt::format(", {} ticks", study.options.ticks), compare_baseline, what, what,
         study.runs == 1 ? fmt::format("One {} gives no interval.", what)
                         : fmt::format("Mean ± half of the 95 % interval over {}s.", what));
  for (const TbMix mix : tb_mixes) {
    const auto groups = equal_policies(study, {mix});
    if (groups.empty()) continue;
    TextTable table;
    for (const TbMeasure& m : all_measures) table.columns.emplace_back(m.title);
    for (const auto& group : groups) {
      table.rows.push_back({joined(group, ", ")});
      for (const TbMeasure& m : all_measures) {
        table.rows.back().push_back(
            plus_minus(ratio_to_baseline(study, {mix}, group.front(), m), study.runs));
      }
    }
    append(out, "{} (ANTT: less is better)\n",
           given ? "workloads given" : fmt::format("{} mix, all loads and sizes", to_string(mix)));
    table.print(out);
  }
  for (const TbMix mix : tb_mixes) {
    for (const std::uint32_t level : study_levels(study)) {
      const auto groups = equal_policies(study, {mix, level});
      if (groups.empty()) continue;
      TextTable table;
      for (const std::uint32_t sms : sizes) table.columns.push_back(fmt::format("{} SMs", sms));
      table.rows.push_back({fmt::format("{} itself", compare_baseline)});
      for (const std::uint32_t sms : sizes) {
        const TbCell& any = study.cells.front();
        const TbCell* cell =
            study.find({any.model, any.policy_rules, compare_baseline, {}}, mix, level, sms);
        std::vector<double> values;
        if (cell != nullptr) {
          for (const TbMetrics& run : cell->runs) values.push_back(measure.of(run));
        }
        table.rows.back().push_back(plus_minus(estimate(values), study.runs));
      }
      for (const auto& group : groups) {
        table.rows.push_back({joined(group, ", ")});
        for (const std::uint32_t sms : sizes) {
          table.rows.back().push_back(plus_minus(
              ratio_to_baseline(study, {mix, level, sms}, group.front(), measure), study.runs));
        }
      }
      append(out, "{}: {} ({})\n",
             given ? "workloads given" : fmt::format("{} mix, load {} %", to_string(mix), level),
             measure.title, direction(measure));
      table.print(out);
    }
  }
  return out;
}

}  // namespace demarc::sim
