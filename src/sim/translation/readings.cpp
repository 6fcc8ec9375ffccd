// Writes the runs of a study side by side: a column for each, a row for each figure.
#include "demarc/sim/translation/study.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::size_t name_width = 60;

std::string row(std::string_view name, const Published* paper,
                const std::vector<std::string>& values) {
  std::string line =
      fmt::format("{:<{}} {:<15} {:<21}", name, name_width, paper == nullptr ? "" : paper->words,
                  paper == nullptr ? "" : paper->place);
  for (const std::string& value : values) line += fmt::format(" {:>11}", value);
  while (line.back() == ' ') line.pop_back();
  return line + "\n";
}

template <class Value>
std::vector<std::string> of_each(const Study& study, Value value) {
  std::vector<std::string> values;
  for (const StudyRun& run : study.runs) values.push_back(value(run));
  return values;
}

std::string gmmu_fill_of(const Settings& settings) {
  for (const SettingInfo& info : setting_table()) {
    if (info.name == "gmmu_fill") return info.get(settings);
  }
  return "";
}

// "1.10 no"
std::string judged(const Claim& claim) {
  return fmt::format("{} {:<3}", claim.shown(), claim.holds() ? "yes" : "no");
}

}  // namespace

std::string readings_text(const Study& study) {
  const Comparison& first = study.runs.front().comparison;
  std::string text = row("gmmu_fill", nullptr, of_each(study, [](const StudyRun& run) {
                           return gmmu_fill_of(run.comparison.settings);
                         }));
  text += row("split (*: fitted)", nullptr, of_each(study, [](const StudyRun& run) {
                const Split split = run.comparison.settings.split;
                return std::string(to_string(split)) + (split == Split::native ? "*" : "");
              }));
  text += fmt::format("{:<{}} {:<15} {}\n", "figure", name_width, "paper", "place");
  for (std::size_t app = 0; app < first.apps.size(); ++app) {
    const std::string& name = first.apps[app].name;
    if (published_speedup(name) != nullptr) continue;  // a claim below
    text +=
        row(name + ": D over C", nullptr, of_each(study, [app](const StudyRun& run) {
              return fmt::format("{:.2f}    ", Comparison::speedup(run.comparison.apps[app], 1));
            }));
  }
  const std::vector<Claim> claims = claims_of(first);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].paper == nullptr) continue;
    text += row(claims[i].name, claims[i].paper, of_each(study, [i](const StudyRun& run) {
                  return judged(claims_of(run.comparison)[i]);
                }));
  }
  text += row("reproduced", nullptr, of_each(study, [](const StudyRun& run) {
                return reproduced_text(claims_of(run.comparison));
              }));
  text += fmt::format("A number of the paper is reproduced if ours lies within {:.0f} % of it.\n",
                      100 * reproduced_within);
  text += fitted_text(first);
  for (const StudyRun& run : study.runs) {
    if (run.comparison.settings.split != Split::native) continue;
    text += fmt::format("fitted: split=native: {}, chosen when the paper's figures were known\n",
                        splits_of_applications(run.comparison));
    break;
  }
  return text + "settings of " + study.runs.front().variant.name + "\n" +
         settings_text(first.settings);
}

}  // namespace demarc::sim::translation
