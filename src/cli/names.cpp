// Collects names from the tables that have them.
#include "names.hpp"

#include <fmt/format.h>

#include "demarc/device/device.hpp"
#include "demarc/partition/mode.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/translation/settings.hpp"
#include "demarc/workload/short_names.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::cli {
namespace {

std::vector<KnownName> names_of_workloads() {
  std::vector<KnownName> names;
  for (const workload::Workload& one : workload::all()) {
    names.push_back({one.name, workload::short_name(one.name), one.summary});
  }
  return names;
}

std::vector<KnownName> names_of_devices() {
  std::vector<KnownName> names;
  for (const std::string& name : gpu::builtin_device_names()) {
    const gpu::Device device = gpu::find_device(name).value();
    names.push_back({name, "",
                     fmt::format("{}, {} SMs, {}", device.name, device.topology.sm_count(),
                                 device.memory_system ? "with a memory system"
                                                      : "SMs and caches alone, no memory system")});
  }
  return names;
}

std::vector<KnownName> names_of_machines() {
  std::vector<KnownName> names;
  for (const std::string& name : sim::translation::builtin_machine_names()) {
    const auto machine = sim::translation::find_machine(name).value();
    names.push_back({name, "",
                     fmt::format("{} GPUs of {} compute units each, for demarc translate",
                                 machine.gpus, machine.cus)});
  }
  return names;
}

std::vector<KnownName> names_of_modes() {
  std::vector<KnownName> names;
  for (const partition::Mode mode : partition::all_modes()) {
    names.push_back(
        {std::string(to_string(mode)), "", std::string(partition::traits_of(mode).help)});
  }
  return names;
}

std::vector<KnownName> names_of_policies() {
  std::vector<KnownName> names;
  for (const sim::PolicyInfo& policy : sim::dispatch_policies()) {
    names.push_back({std::string(policy.name), "", std::string(policy.summary)});
  }
  return names;
}

// In the order of demarc list --help.
constexpr NameKind all_name_kinds[] = {
    {"workloads", names_of_workloads},  // of --victims, --aggressors, bundled:NAME
    {"devices", names_of_devices},      // of --device sim:NAME
    {"machines", names_of_machines},    // the same of translate
    {"modes", names_of_modes},          // of --modes
    {"policies", names_of_policies},    // of schedule --policy
};

}  // namespace

std::span<const NameKind> name_kinds() {
  return all_name_kinds;
}

}  // namespace demarc::cli
