// Writes reports for people and for programs.

#include "demarc/sim/dispatch/tb_report.hpp"

#include <map>
#include <set>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "dispatch/metrics_json.hpp"

namespace demarc::sim {
namespace {

// Of the times that a block touches a place which one of its kernel has touched before: how often a
// block that is on its SM when it is placed touches that place too.
class SharingKept final : public TbObserver {
 public:
  SharingKept(const TbConfig& config, const std::map<std::uint32_t, BlockSharing>& sharing)
      : config_(config), sharing_(sharing) {}

  void placed(TbTicks tick, SmIndex sm, KernelIndex kernel, BlockNumber block) override {
    const BlockSharing* const sharing = sharing_of(kernel);
    if (sharing == nullptr) return;
    Kernel& state = kernels_[kernel];
    for (const SetIndex set : sharing->sets_of(block)) {
      const auto places = static_cast<double>(sharing->sets()[set].places);
      if (!state.touched.insert(set).second) all_ += places;
      if (state.present[{sm, set}]++ > 0) kept_ += places;
    }
    state.running[{sm, tick}].push_back(block);
  }
  void finished(TbTicks /*tick*/, SmIndex sm, KernelIndex kernel, TbTicks placed_tick,
                std::uint32_t blocks) override {
    const BlockSharing* const sharing = sharing_of(kernel);
    if (sharing == nullptr) return;
    Kernel& state = kernels_[kernel];
    const auto group = state.running.find({sm, placed_tick});
    for (; blocks > 0; --blocks) {
      for (const SetIndex set : sharing->sets_of(group->second.back())) {
        const auto present = state.present.find({sm, set});
        if (--present->second == 0) state.present.erase(present);
      }
      group->second.pop_back();
    }
    if (group->second.empty()) state.running.erase(group);
  }
  [[nodiscard]] double share() const { return all_ > 0 ? kept_ / all_ : 0; }

 private:
  using SetIndex = BlockSharing::SetIndex;
  struct Kernel {
    std::set<SetIndex> touched;
    std::map<std::pair<SmIndex, SetIndex>, std::uint32_t> present;  // blocks on the SM, of the set
    std::map<std::pair<SmIndex, TbTicks>, std::vector<BlockNumber>> running;  // by placement
  };

  [[nodiscard]] const BlockSharing* sharing_of(KernelIndex kernel) const {
    auto found = sharing_.find(config_.kernels[kernel].type);
    if (found == sharing_.end()) found = sharing_.find(0);
    return found == sharing_.end() ? nullptr : &found->second;
  }

  const TbConfig& config_;
  const std::map<std::uint32_t, BlockSharing>& sharing_;
  std::map<KernelIndex, Kernel> kernels_;
  double all_ = 0, kept_ = 0;
};

struct PolicyReport {
  std::string policy;
  double sharing_kept = 0;
  TbRun run;
  TbMetrics metrics;
  FiguresOfKernels kernels;
};

Result<std::vector<PolicyReport>> run_policies(const TbConfig& config,
                                               const TbStudyRequest& request) {
  std::vector<std::string> names = request.policies;
  if (names.empty()) {
    for (const PolicyInfo& info : dispatch_policies()) names.emplace_back(info.name);
  }
  std::vector<PolicyReport> reports;
  for (const std::string& name : names) {
    TbOptions options;
    options.model = request.model;
    options.policy = name;
    options.sharing = request.sharing;
    SharingKept kept(config, request.sharing);
    if (!request.sharing.empty()) options.observer = &kept;
    PolicyReport report;
    report.policy = name;
    DEMARC_TRY(report.run, simulate(config, options));
    report.sharing_kept = kept.share();
    DEMARC_TRY(report.metrics, tb_metrics(config, request.model, report.run));
    DEMARC_TRY(report.kernels, kernel_figures(config, request.model, report.run));
    reports.push_back(std::move(report));
  }
  return reports;
}

Json kernel_json(const TbConfig& config, const PolicyReport& report, KernelIndex k) {
  const TbKernel& kernel = config.kernels[k];
  const KernelOutcome& outcome = report.run.kernels[k];
  Json value{{"kernel", k.raw() + 1},
             {"line", kernel.line},
             {"type", kernel.type},
             {"start", kernel.start.raw()},
             {"blocks", kernel.n_tb}};
  if (outcome.first_run != KernelOutcome::never) value["first_run"] = outcome.first_run.raw();
  if (const auto& figures = report.kernels[k]) {
    value["end"] = outcome.end.raw();
    value["alone"] = figures->alone.raw();
    value["slowdown"] = figures->slowdown();
    value["queue_slowdown"] = figures->queue_slowdown();
  }
  return value;
}

std::string schedule_json(const TbConfig& config, const TbStudyRequest& request,
                          const std::vector<PolicyReport>& reports) {
  Json root{{"schema", "demarc.schedule/1"}, {"version", version()},
            {"config", config.source},       {"model", to_string(request.model)},
            {"sms", config.sm.n_sms},        {"policies", Json::array()}};
  for (const PolicyReport& report : reports) {
    Json entry{{"policy", report.policy}};
    entry.update(metrics_json(report.metrics));
    if (!request.sharing.empty()) entry["sharing_kept"] = report.sharing_kept;
    if (report.run.out_of_memory) entry["out_of_memory"] = *report.run.out_of_memory;
    if (request.kernels) {
      entry["kernel"] = Json::array();
      for (const KernelIndex k : config.kernels.keys()) {
        entry["kernel"].push_back(kernel_json(config, report, k));
      }
    }
    root["policies"].push_back(std::move(entry));
  }
  return json_text(root, 2) + "\n";
}

std::string schedule_table(const TbConfig& config, const TbStudyRequest& request,
                           const std::vector<PolicyReport>& reports) {
  std::string out;
  append(out, "{}: {} SMs, {} kernels, model {}\n", config.source, config.sm.n_sms,
         config.kernels.size(), to_string(request.model));
  append(out, "{:<13} {:>9} {:>8} {:>8} {:>9} {:>7} {:>8} {:>8} {:>8} {:>8}{}\n", "policy", "ticks",
         "finished", "ANTT", "ANTT+wait", "STP", "fairness", "SM use", "+last", "blocks/t",
         request.sharing.empty() ? "" : "     kept");
  for (const PolicyReport& report : reports) {
    const TbMetrics& m = report.metrics;
    append(out,
           "{:<13} {:>9} {:>7.1f}% {:>8.3f} {:>9.3f} {:>7.3f} {:>8.3f} {:>7.2f}% "
           "{:>7.2f}% {:>8.2f}{}{}\n",
           report.policy, m.ticks, 100 * m.finished_share, m.antt, m.antt_queue, m.stp, m.fairness,
           m.utilization[0], m.utilization_full[0], m.blocks_per_tick,
           request.sharing.empty() ? std::string()
                                   : fmt::format(" {:>7.1f}%", 100 * report.sharing_kept),
           report.run.out_of_memory ? "  ended: out of memory" : "");
    if (!request.kernels) continue;
    for (const KernelIndex k : report.kernels.keys()) {
      const auto& figures = report.kernels[k];
      if (!figures) {
        append(out, "  kernel {:>4} (line {}): not finished\n", k.raw() + 1,
               config.kernels[k].line);
        continue;
      }
      append(out, "  kernel {:>4} (line {}): alone {}, took {}, with waiting {}\n", k.raw() + 1,
             config.kernels[k].line, figures->alone, figures->time, figures->queue_time);
    }
  }
  return out;
}

}  // namespace

Json metrics_json(const TbMetrics& m) {
  return Json{{"ticks", m.ticks.raw()},
              {"kernels", m.kernels},
              {"finished", m.finished},
              {"finished_share", m.finished_share},
              {"antt", m.antt},
              {"antt_with_queueing", m.antt_queue},
              {"stp", m.stp},
              {"kernels_per_tick", m.kernels_per_tick},
              {"fairness", m.fairness},
              {"worst_slowdown", m.worst_slowdown},
              {"blocks_per_tick", m.blocks_per_tick},
              {"neighbours_together", m.neighbours_together},
              {"utilization_percent", m.utilization},
              {"utilization_with_last_tick_percent", m.utilization_full},
              {"memory_use", m.memory},
              {"memory_use_with_last_tick", m.memory_full}};
}

Result<TbStudyReport> report_schedule(const TbConfig& config, const TbStudyRequest& request) {
  DEMARC_TRY(const auto reports, run_policies(config, request));
  return TbStudyReport{schedule_table(config, request, reports),
                       schedule_json(config, request, reports)};
}

}  // namespace demarc::sim
