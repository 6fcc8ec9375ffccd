// Computes the speed-ups of the architectures under each split of the work.
#include <array>

#include "demarc/base/json.hpp"
#include "demarc/sim/translation/study.hpp"

namespace demarc::sim::translation {

Result<std::vector<Comparison>> compare_splits(const Settings& settings,
                                               const std::vector<std::string>& names,
                                               const std::vector<Architecture>& architectures,
                                               unsigned threads, const Progress& progress) {
  std::vector<ComparisonRequest> requests;
  for (const Split split : {Split::roundrobin, Split::contiguous, Split::native}) {
    requests.push_back({settings, names, architectures});
    requests.back().settings.split = split;
  }
  return compare_all(requests, threads, progress);
}

std::string splits_json(const std::vector<Comparison>& splits) {
  Json columns = Json::array();
  for (const Comparison& comparison : splits) {
    columns.push_back({{"split", to_string(comparison.settings.split)},
                       {"result", own_json(to_json(comparison))}});
  }
  const Json document{{"schema", "demarc.translate.splits/1"}, {"splits", std::move(columns)}};
  return json_text(document, 2) + "\n";
}

std::string splits_of_applications(const Comparison& comparison) {
  std::string text;
  for (const Split split : {Split::contiguous, Split::roundrobin, Split::dim0}) {
    std::string names;
    for (const ApplicationResult& app : comparison.apps) {
      if (app.split == split) names += (names.empty() ? "" : ", ") + app.name;
    }
    if (names.empty()) continue;
    text += fmt::format("{}{} in {}", text.empty() ? "" : " and ", to_string(split), names);
  }
  return text;
}

namespace {

// The last two cells of a row.
std::string in_paper(const Published* paper) {
  return paper == nullptr ? "\n" : fmt::format("{:>12}  {}\n", paper->words, paper->place);
}

}  // namespace

std::string splits_text(const std::vector<Comparison>& splits, TextParts parts) {
  const Comparison& first = splits.front();
  std::string text;
  for (std::size_t i = 1; i < first.architectures.size(); ++i) {
    const bool published = first.architectures[i] == Architecture::distributed;
    text +=
        fmt::format("speed-up of {} over {} by split of the work\n{:<6}",
                    to_string(first.architectures[i]), to_string(first.architectures[0]), "app");
    for (const Comparison& comparison : splits)
      text += fmt::format("{:>12}", to_string(comparison.settings.split));
    text += published ? fmt::format("{:>12}  {}\n", "paper", "place") : "\n";
    for (std::size_t app = 0; app < first.apps.size(); ++app) {
      text += fmt::format("{:<6}", first.apps[app].name);
      for (const Comparison& comparison : splits)
        text += fmt::format("{:>12.2f}", Comparison::speedup(comparison.apps[app], i));
      text += in_paper(published ? published_speedup(first.apps[app].name) : nullptr);
    }
    text += fmt::format("{:<6}", "mean");
    for (const Comparison& comparison : splits)
      text += fmt::format("{:>12.2f}", comparison.mean_speedup(i));
    // The paper's mean is over all nine.
    const bool all = first.apps.size() == application_table().size();
    text += in_paper(published && all ? &translation_paper::mean_speedup : nullptr);
  }
  if (parts == TextParts::results) return text;
  text += fitted_text(splits.back());
  return text + fmt::format("settings of {}\n", to_string(first.settings.split)) +
         settings_text(first.settings);
}

}  // namespace demarc::sim::translation
