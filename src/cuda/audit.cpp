#include "demarc/base/json.hpp"
#include "demarc/cuda/confine.hpp"

namespace demarc::cuda {

std::string audit_to_text(const ConfineOutcome& outcome) {
  std::string text =
      fmt::format("partition: TPCs {} ({} SMs); {} process{} confined", to_string(outcome.tpcs),
                  outcome.sms, outcome.processes_hooked, outcome.processes_hooked == 1 ? "" : "es");
  if (outcome.processes_unhooked != 0) {
    text += fmt::format(", {} used the GPU UNCONFINED", outcome.processes_unhooked);
  }
  if (outcome.processes_stopped != 0) {
    text += fmt::format(", {} stopped because a launch could not be confined",
                        outcome.processes_stopped);
  }
  text += fmt::format("\n{:<16}{:>14}{:>16}{:>14}{:>10}\n", "launch path", "in partition", "blocks",
                      "outside", "refused");
  for (std::size_t p = 0; p < launch_paths; ++p) {
    if (outcome.masked[p] + outcome.unmasked[p] + outcome.refused[p] == 0) continue;
    text += fmt::format("{:<16} {:>13} {:>17} {:>13} {:>9}\n",
                        to_string(static_cast<LaunchPath>(p)), outcome.masked[p],
                        outcome.masked_blocks[p], outcome.unmasked[p], outcome.refused[p]);
  }
  text += fmt::format("{} launches of CUDA graphs, {} of them under an earlier mask\n",
                      outcome.graphs, outcome.stale_graphs);
  return text + warnings(outcome);
}

std::string warnings(const ConfineOutcome& outcome) {
  std::string text;
  if (outcome.stale_graphs != 0) {
    text += fmt::format("demarc exec: {} launches of CUDA graphs ran under an earlier mask\n",
                        outcome.stale_graphs);
  }
  if (outcome.launchers != 0) {
    text += fmt::format(
        "demarc exec: {} launches were of kernels that may launch kernels themselves: what those "
        "launched was NEITHER CONFINED NOR COUNTED\n",
        outcome.launchers);
  }
  return text;
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
  const Json json{{"schema", "demarc.exec/1"},
                  {"exit_code", outcome.exit_code},
                  {"tpcs", to_string(outcome.tpcs)},
                  {"sms", outcome.sms},
                  {"processes_hooked", outcome.processes_hooked},
                  {"processes_unhooked", outcome.processes_unhooked},
                  {"processes_stopped", outcome.processes_stopped},
                  {"may_launch_kernels", outcome.launchers},
                  {"graphs", outcome.graphs},
                  {"stale_graphs", outcome.stale_graphs},
                  {"paths", paths}};
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
