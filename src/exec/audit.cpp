// Says what an outcome means: the table of findings, and the reports.
#include <algorithm>
#include <numeric>

#include "demarc/base/json.hpp"
#include "demarc/exec/confine.hpp"
#include "demarc/guest/program_report.hpp"

namespace demarc::cuda {
namespace {

using Severity = Finding::Severity;
using Paths = std::array<std::atomic<std::uint64_t>, launch_paths>;

std::uint64_t total(const Paths& paths) {
  return std::accumulate(paths.begin(), paths.end(), std::uint64_t{0});
}

// One thing that is looked for. `text` is a sentence, {} in it the count; `observed` is how severe
// it is where no partition was wanted.
struct FindingRow {
  const char* name;
  const char* text;
  Severity severity;
  Severity observed;
  std::uint64_t (*count)(const ProcessCounts& processes, const LaunchCounters& launches);
};

constexpr FindingRow finding_rows[] = {
    {"nothing_reached_the_gpu", "no process of the program reached the GPU: NOTHING WAS CONFINED",
     Severity::fails, Severity::fails,
     [](const ProcessCounts& processes, const LaunchCounters&) -> std::uint64_t {
       return processes.contexts + processes.kept_off + processes.stopped == 0 ? 1 : 0;
     }},
    {"processes_kept_off",
     "{} process(es) could not be confined, or chose another card, and were KEPT OFF the GPU",
     Severity::fails, Severity::fails,
     [](const ProcessCounts& processes, const LaunchCounters&) -> std::uint64_t {
       return processes.kept_off;
     }},
    {"processes_stopped", "{} process(es) could not be confined and were STOPPED", Severity::fails,
     Severity::fails,
     [](const ProcessCounts& processes, const LaunchCounters&) -> std::uint64_t {
       return processes.stopped;
     }},
    {"launches_outside", "{} launches ran OUTSIDE the partition, without its mask", Severity::fails,
     Severity::none,
     [](const ProcessCounts&, const LaunchCounters& launches) { return total(launches.unmasked); }},
    {"launches_refused",
     "{} launches could not be confined: their task descriptors are of an unknown version",
     Severity::fails, Severity::fails,
     [](const ProcessCounts&, const LaunchCounters& launches) { return total(launches.refused); }},
    {"empty_masks",
     "{} launches had a mask of their own without any TPC of the partition, and were REFUSED",
     Severity::fails, Severity::none,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.empty_masks;
     }},
    {"misunderstood_callbacks",
     "{} times the driver reported a launch in an unknown form; it was NOT CONFINED",
     Severity::fails, Severity::warns,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.misunderstood;
     }},
    {"unsafe_clusters",
     "{} launches had thread-block clusters that the partition could not have hosted",
     Severity::fails, Severity::fails,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.unsafe_clusters;
     }},
    {"other_domains",
     "{} launches had another memory synchronisation domain than their program should have",
     Severity::fails, Severity::fails,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.other_domains;
     }},
    {"unannounced_launches",
     "{} launches were announced by no call of the driver that Demarc saw, so nothing judged them",
     Severity::fails, Severity::fails,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.unannounced;
     }},
    {"unseen_launches",
     "{} launches passed the hook by: something in the program has switched it off",
     Severity::fails, Severity::fails,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.unseen;
     }},
    {"cooperative_refused",
     "refused cooperative launches, whose blocks do not fit into the partition at once: {}",
     Severity::warns, Severity::none,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.too_large;
     }},
    {"host_memory_refused", "refused calls that would have given kernels host memory: {}",
     Severity::warns, Severity::warns,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.host_memory_refused;
     }},
    {"calls_refused", "refused calls that would have left the colours of the tenant: {}",
     Severity::warns, Severity::warns,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.colored.refused;
     }},
    {"kernels_left_out", "kernels that cannot be coloured and were not loaded: {}", Severity::warns,
     Severity::warns,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.colored.left_out;
     }},
    {"plain_processes", "{} process(es) ran on memory WITHOUT A COLOUR (--allow-plain)",
     Severity::warns, Severity::warns,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.colored.plain;
     }},
    {"stale_graphs",
     "{} launches of CUDA graphs ran under an earlier mask, that of their graph's first launch",
     Severity::fails, Severity::none,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.stale_graphs;
     }},
    {"may_launch_kernels",
     "{} launches were of kernels that may launch kernels themselves; such launches were NEITHER "
     "CONFINED NOR COUNTED",
     Severity::fails, Severity::warns,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.launchers;
     }},
    {"launchers_not_told",
     "this card does not show which kernels launch kernels: if any of {} launches did so, its own "
     "launches were neither confined nor counted",
     Severity::fails, Severity::none,
     [](const ProcessCounts&, const LaunchCounters& launches) -> std::uint64_t {
       return launches.launchers_unknown;
     }},
};

std::string domain_text(const ConfineOutcome& outcome) {
  if (!outcome.sync_domain) return "launches keep their memory synchronisation domains\n";
  return fmt::format("launches have the memory synchronisation domain {}\n", *outcome.sync_domain);
}

// "TPCs 0-2 (6 SMs)", and where else the program was moved.
std::string tpcs_text(const ConfineOutcome& outcome) {
  std::string text = fmt::format("TPCs {} ({} SMs)", to_string(outcome.tpcs), outcome.sms);
  for (std::size_t i = 1; i < outcome.periods.size(); ++i) {
    text += fmt::format(", then TPCs {}", outcome.periods[i].tpcs);
  }
  return text;
}

std::string periods_text(const ConfineOutcome& outcome) {
  std::string text;
  if (outcome.periods.size() < 2) return text;
  for (const MaskPeriod& period : outcome.periods) {
    text +=
        fmt::format("{:>12}  launches with the mask of TPCs {}\n", period.launches, period.tpcs);
  }
  return text;
}

bool matters(const Finding& finding, Severity least) {
  return finding.count != 0 && finding.severity >= least;
}

}  // namespace

std::vector<Finding> look_for_findings(const ProcessCounts& processes,
                                       const LaunchCounters& launches, bool observed) {
  std::vector<Finding> findings;
  for (const FindingRow& row : finding_rows) {
    const std::uint64_t count = row.count(processes, launches);
    findings.push_back({row.name, fmt::format(fmt::runtime(row.text), count), count,
                        observed ? row.observed : row.severity});
  }
  return findings;
}

bool ConfineOutcome::holds() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return matters(finding, Severity::fails); });
}

std::string warnings(const ConfineOutcome& outcome) {
  std::string text;
  for (const Finding& finding : outcome.findings) {
    if (matters(finding, Severity::warns)) text += "demarc exec: " + finding.text + "\n";
  }
  if (!outcome.no_domain_because.empty()) {
    text +=
        "demarc exec: no memory synchronisation domain of its own: " + outcome.no_domain_because +
        "\n";
  }
  return text;
}

std::string audit_to_text(const ConfineOutcome& outcome) {
  const ProcessCounts& processes = outcome.processes;
  std::string text = outcome.observed
                         ? fmt::format("no partition ({} SMs): observed only", outcome.sms)
                         : "partition: " + tpcs_text(outcome);
  text += fmt::format("; {} process{} {}, {} kept off, {} stopped\n", processes.confined,
                      processes.confined == 1 ? "" : "es", outcome.observed ? "seen" : "confined",
                      processes.kept_off, processes.stopped);
  text +=
      "launches and blocks are counted by the masks in their descriptors, not by where they ran\n";
  text += periods_text(outcome) + domain_text(outcome);
  text += fmt::format("{:<16}{:>14}{:>16}{:>14}{:>10}\n", "launch path", "with the mask", "blocks",
                      "without it", "refused");
  for (std::size_t p = 0; p < launch_paths; ++p) {
    if (outcome.masked[p] + outcome.unmasked[p] + outcome.refused[p] == 0) continue;
    text += fmt::format("{:<16} {:>13} {:>15} {:>13} {:>9}\n",
                        to_string(static_cast<LaunchPath>(p)), outcome.masked[p],
                        outcome.masked_blocks[p], outcome.unmasked[p], outcome.refused[p]);
  }
  text += fmt::format("{} launches of CUDA graphs\n", outcome.graphs);
  return text + warnings(outcome);
}

std::string audit_to_json(const ConfineOutcome& outcome) {
  Json paths = Json::array();
  for (std::size_t p = 0; p < launch_paths; ++p) {
    paths.push_back(Json{{"path", to_string(static_cast<LaunchPath>(p))},
                         {"masked", outcome.masked[p]},
                         {"masked_blocks", outcome.masked_blocks[p]},
                         {"unmasked", outcome.unmasked[p]},
                         {"refused", outcome.refused[p]}});
  }
  Json periods = Json::array();
  for (const MaskPeriod& period : outcome.periods) {
    periods.push_back(Json{{"tpcs", period.tpcs}, {"launches", period.launches}});
  }
  Json findings = Json::object();
  for (const Finding& finding : outcome.findings) findings[finding.name] = finding.count;
  Json json{{"schema", "demarc.exec/2"},
            {"program_exit_code", outcome.program_exit_code},
            {"holds", outcome.holds()},
            {"observed", outcome.observed},
            {"tpcs", to_string(outcome.tpcs)},
            {"sms", outcome.sms},
            {"masks", periods},
            {"sync_domain", outcome.sync_domain ? Json(*outcome.sync_domain) : Json(nullptr)},
            {"no_sync_domain_because", outcome.no_domain_because},
            {"processes_confined", outcome.processes.confined},
            {"contexts", outcome.processes.contexts},
            {"counted_by", "masks in the launches' descriptors"},
            {"findings", findings},
            {"graphs", outcome.graphs},
            {"paths", paths}};
  if (outcome.report) json["tenant"] = json_of(*outcome.report);
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
