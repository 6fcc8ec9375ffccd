// Runs several applications and architectures, and writes text and JSON.
#include "demarc/sim/translation/report.hpp"

#include <mutex>
#include <optional>

#include "demarc/base/json.hpp"
#include "demarc/base/parallel.hpp"
#include "demarc/base/version.hpp"
#include "demarc/sim/translation/study.hpp"

namespace demarc::sim::translation {
namespace {

Json tlb_json(const TlbCounts& counts) {
  return {{"hits", counts.hits}, {"joined", counts.joined}, {"misses", counts.misses}};
}

Json summary_json(const Summary& s) {
  return {{"cycles", s.cycles.raw()},
          {"line_accesses", s.lines},
          {"walks", s.walks()},
          {"iommu_accesses", s.iommu_accesses},
          {"gmmu_walks", s.gmmu_walks},
          {"gmmu_bypassed", s.gmmu_bypassed},
          {"tlb_hit_share", s.tlb_hit_share()},
          {"gmmu_hit_share", s.gmmu_hit_share()},
          {"l1_tlb", tlb_json(s.l1_tlb)},
          {"l2_tlb", tlb_json(s.l2_tlb)},
          {"first_touches", s.first_touches},
          {"remote_owned", s.remote_owned},
          {"remote_lines", s.remote_lines},
          {"migrations", s.migrations},
          {"pages_owned", s.pages_owned},
          {"link_bytes", s.link_bytes},
          {"busiest_link", s.busiest_link},
          {"iommu_utilisation", s.iommu_utilisation},
          {"gmmu_utilisation", s.gmmu_utilisation},
          {"iommu_queue_wait_cycles", s.iommu_queue_wait.raw()},
          {"gmmu_queue_wait_cycles", s.gmmu_queue_wait.raw()}};
}

}  // namespace

double Comparison::speedup(const ApplicationResult& app, std::size_t i) {
  return static_cast<double>(app.summaries[0].cycles.raw()) /
         static_cast<double>(app.summaries[i].cycles.raw());
}

double Comparison::mean_speedup(std::size_t i) const {
  double sum = 0;
  for (const auto& app : apps) sum += speedup(app, i);
  return apps.empty() ? 0.0 : sum / static_cast<double>(apps.size());
}

namespace {

struct Run {
  const Settings* settings;
  const Application* application;
  Architecture architecture;
  Summary* summary;
  Timeline* timeline;
};

// The last ones first: the table of applications ends with the longest.
Result<void> run_all(const std::vector<Run>& runs, unsigned threads, const Progress& progress) {
  std::mutex mutex;
  std::size_t done = 0;
  std::optional<Error> failure;
  std::size_t failed = 0;
  parallel_for(runs.size(), threads, [&](std::size_t i) {
    const std::size_t at = runs.size() - 1 - i;
    const Run& run = runs[at];
    // A single run reports its own progress, several report those that are over.
    const Progress& inner = runs.size() == 1 ? progress : Progress();
    auto result = simulate(*run.settings, run.architecture, *run.application, inner, run.timeline);
    const std::lock_guard lock(mutex);
    report_progress(progress, static_cast<double>(++done) / static_cast<double>(runs.size()),
                    run.application->name());
    if (result) {
      *run.summary = std::move(*result);
    } else if (!failure || at < failed) {  // the same error on any number of threads
      failure = result.error();
      failed = at;
    }
  });
  if (failure) return tl::unexpected(*failure);
  return {};
}

}  // namespace

Result<std::vector<Comparison>> compare_all(const std::vector<ComparisonRequest>& requests,
                                            unsigned threads, const Progress& progress) {
  std::vector<Comparison> comparisons;
  std::vector<std::unique_ptr<Application>> applications;
  std::vector<Run> runs;
  for (const ComparisonRequest& request : requests) {
    DEMARC_CHECK(validate(request.settings));
    Comparison comparison{request.settings, request.architectures, {}};
    for (const std::string& name : request.apps)
      comparison.apps.push_back({name, std::vector<Summary>(request.architectures.size())});
    comparisons.push_back(std::move(comparison));
  }
  for (Comparison& comparison : comparisons) {
    for (ApplicationResult& app : comparison.apps) {
      DEMARC_TRY(auto application, make_application(app.name, comparison.settings));
      app.bytes = application->bytes();
      app.split = split_under(comparison.settings, *application);
      applications.push_back(std::move(application));
      for (std::size_t i = 0; i < comparison.architectures.size(); ++i) {
        runs.push_back({&comparison.settings, applications.back().get(),
                        comparison.architectures[i], &app.summaries[i], nullptr});
      }
    }
  }
  DEMARC_CHECK(run_all(runs, threads, progress));
  return comparisons;
}

Result<Comparison> compare(const Settings& settings, const std::vector<std::string>& names,
                           const std::vector<Architecture>& architectures, unsigned threads,
                           const Progress& progress) {
  DEMARC_TRY(auto comparisons, compare_all({{settings, names, architectures}}, threads, progress));
  return std::move(comparisons.front());
}

Result<Comparison> compare_application(const Settings& settings, const Application& application,
                                       const std::vector<Architecture>& architectures,
                                       unsigned threads, const Progress& progress,
                                       std::vector<Timeline>* timelines) {
  DEMARC_CHECK(validate(settings));
  Comparison comparison{settings, architectures, {}};
  comparison.apps.push_back({std::string(application.name()),
                             std::vector<Summary>(architectures.size()), application.bytes(),
                             split_under(settings, application)});
  if (timelines != nullptr) timelines->assign(architectures.size(), {});
  std::vector<Run> runs;
  for (std::size_t i = 0; i < architectures.size(); ++i) {
    runs.push_back({&settings, &application, architectures[i], &comparison.apps[0].summaries[i],
                    timelines != nullptr ? &(*timelines)[i] : nullptr});
  }
  DEMARC_CHECK(run_all(runs, threads, progress));
  return comparison;
}

std::string to_json(const Comparison& comparison) {
  Json settings;
  for (const SettingInfo& info : setting_table())
    settings[std::string(info.name)] = info.get(comparison.settings);
  Json apps = Json::array();
  for (const auto& app : comparison.apps) {
    Json entry{{"name", app.name}, {"bytes", app.bytes}, {"split", to_string(app.split)}};
    for (std::size_t i = 0; i < comparison.architectures.size(); ++i) {
      entry[std::string(to_string(comparison.architectures[i]))] = summary_json(app.summaries[i]);
    }
    if (comparison.architectures.size() > 1) entry["speedup"] = Comparison::speedup(app, 1);
    apps.push_back(std::move(entry));
  }
  Json result{{"schema", "demarc.translate/1"},
              {"version", version()},
              {"revision", revision()},
              {"settings", std::move(settings)},
              {"apps", std::move(apps)}};
  if (comparison.architectures.size() > 1) result["mean_speedup"] = comparison.mean_speedup(1);
  return json_text(result, 2) + "\n";
}

std::string to_text(const Comparison& comparison, TextParts parts) {
  std::string text = fmt::format("{:<4} {:<12} {:>12} {:>8} {:>9} {:>9} {:>10} {:>10} {:>8}\n",
                                 "app", "architecture", "cycles", "speed-up", "TLB hits",
                                 "GMMU hits", "IOMMU acc.", "walks", "remote");
  for (const auto& app : comparison.apps) {
    for (std::size_t i = 0; i < comparison.architectures.size(); ++i) {
      const Summary& s = app.summaries[i];
      text +=
          fmt::format("{:<4} {:<12} {:>12} {:>8.2f} {:>8.2f}% {:>8.1f}% {:>10} {:>10} {:>7.1f}%\n",
                      i == 0 ? app.name : "", to_string(comparison.architectures[i]), s.cycles,
                      Comparison::speedup(app, i), 100 * s.tlb_hit_share(),
                      100 * s.gmmu_hit_share(), s.iommu_accesses, s.walks(),
                      100.0 * static_cast<double>(s.remote_lines) / static_cast<double>(s.lines));
    }
  }
  for (std::size_t i = 1; i < comparison.architectures.size(); ++i) {
    text +=
        fmt::format("mean speed-up of {} over {}: {:.2f}\n", to_string(comparison.architectures[i]),
                    to_string(comparison.architectures[0]), comparison.mean_speedup(i));
  }
  if (parts == TextParts::results) return text;
  text += "split of the work: ";
  text += comparison.settings.split == Split::native
              ? fmt::format("native: {}", splits_of_applications(comparison))
              : to_string(comparison.settings.split);
  text += "; another gives other speed-ups (--split, --splits)\n" + fitted_text(comparison);
  for (const auto& app : comparison.apps)
    text += fmt::format("{}: {} bytes of data\n", app.name, app.bytes);
  return text + "settings\n" + settings_text(comparison.settings);
}

}  // namespace demarc::sim::translation
