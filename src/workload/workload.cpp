// Lists the bundled workloads, and finds their launches and their PTX for a target.
#include "demarc/workload/workload.hpp"

#include <algorithm>

#include "bundled.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/near_names.hpp"
#include "demarc/workload/short_names.hpp"
#include "workload_kernels_ptx.hpp"

namespace demarc::workload {
namespace {

// Only what lists of workloads show: the launch file is read in full, with all its checks, by
// instance().
Workload describe(const BundledLaunch& bundled) {
  Workload workload;
  workload.name = bundled.name;
  workload.launch_text = bundled.text;
  const Json json = own_json(bundled.text);
  if (!json.is_object()) return workload;
  workload.summary = json.value("summary", "");
  workload.source = json.value("source", "");
  workload.groups = json.value("groups", std::vector<std::string>{});
  if (json.contains("scales")) {
    for (const auto& [name, ignored] : json["scales"].items()) workload.scales.push_back(name);
  }
  return workload;
}

}  // namespace

std::span<const Workload> all() {
  static const std::vector<Workload> workloads = [] {
    std::vector<Workload> list;
    for (const BundledLaunch& bundled : bundled_launches()) list.push_back(describe(bundled));
    return list;
  }();
  return workloads;
}

Result<const Workload*> find(std::string_view name) {
  const std::string full = full_name(name);
  std::vector<std::string> typed;  // what people may have meant to type
  for (const Workload& workload : all()) {
    if (workload.name == full) return &workload;
    const std::string shorter = short_name(workload.name);
    typed.push_back(workload.name);
    if (!shorter.empty()) typed.push_back(shorter);
  }
  return invalid_input("there is no bundled workload '{}'{}", name,
                       did_you_mean(name, typed, "demarc list workloads"));
}

Result<gpu::Launch> instance(std::string_view name, const gpu::LaunchFileOptions& options) {
  DEMARC_TRY(const Workload* workload, find(name));
  return gpu::parse_launch_json(workload->launch_text, fmt::format("bundled:{}", name), {},
                                options);
}

Result<std::string> ptx_text(const gpu::Launch& launch, std::uint32_t target) {
  const auto name = gpu::bundled_name(launch.ptx);
  if (!name) return read_file(launch.ptx);
  const auto* module = gpu::find_ptx(embedded::workload_kernels(), *name, target);
  if (module != nullptr) return std::string(module->text);
  const auto targets = targets_of(*name);
  if (targets.empty())
    return invalid_input("{}: there is no bundled module of that name", launch.ptx);
  return invalid_input("{}: there is no PTX for sm_{} or below; the lowest is sm_{}", launch.ptx,
                       target, targets.front());
}

std::vector<std::uint32_t> targets_of(std::string_view module) {
  std::vector<std::uint32_t> targets;
  for (const auto& embedded : embedded::workload_kernels()) {
    if (embedded.name == module) targets.push_back(embedded.target);
  }
  std::sort(targets.begin(), targets.end());
  return targets;
}

}  // namespace demarc::workload
