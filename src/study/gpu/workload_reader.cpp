// Finds what a workload's spec names: a bundled launch, a launch file, copies.
#include "gpu/workload_reader.hpp"

#include <algorithm>
#include <map>

#include "demarc/workload/workload.hpp"
#include "workload_spec.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t copied_bytes = std::uint64_t{256} << 20U;  // by "copy_in" and "copy_out"

Result<LoadedLaunch> copies_of(const CopySpec& copy) {
  LoadedLaunch loaded;
  loaded.copies = copy.to_card ? CopyDirection::to_card : CopyDirection::to_host;
  if (!copy.launch_file.empty()) {
    DEMARC_TRY(loaded.launch, gpu::read_launch(copy.launch_file));
    return loaded;
  }
  loaded.launch.name = copy.to_card ? "copy_in" : "copy_out";
  loaded.launch.buffers.resize(1);
  loaded.launch.buffers.front().name = "data";
  loaded.launch.buffers.front().bytes = copied_bytes;
  loaded.launch.kernels.resize(1);
  return loaded;
}

Result<gpu::Launch> bundled_launch(const BundledSpec& wanted) {
  DEMARC_TRY(const workload::Workload* bundled, workload::find(wanted.name));
  gpu::LaunchFileOptions options;
  options.parameters = wanted.parameters;
  if (wanted.scale) {
    options.scale = *wanted.scale;
  } else if (!wanted.parameters.empty()) {
    return workload::instance(wanted.name, options);
  } else if (std::find(bundled->scales.begin(), bundled->scales.end(), "large") !=
             bundled->scales.end()) {
    options.scale = "large";
  }
  return workload::instance(wanted.name, options);
}

// For a spec that has kernels.
Result<gpu::Launch> launch_of(const WorkloadSpec& spec) {
  if (std::holds_alternative<CommandSpec>(spec)) {
    return missing_capability("a command brings compiled code, no PTX");
  }
  if (std::holds_alternative<StreamSpec>(spec)) {
    return missing_capability("an access stream has no PTX");
  }
  if (std::holds_alternative<CopySpec>(spec)) {
    return missing_capability("copies by the copy engines have no PTX");
  }
  const auto* file = std::get_if<LaunchSpec>(&spec);
  return file != nullptr ? read_launch_file(*file) : bundled_launch(std::get<BundledSpec>(spec));
}

Result<LoadedLaunch> read_workload(const std::string& text, std::uint32_t target) {
  DEMARC_TRY(const WorkloadSpec spec, parse_workload_spec(text));
  if (const auto* copy = std::get_if<CopySpec>(&spec)) return copies_of(*copy);
  if (const auto* command = std::get_if<CommandSpec>(&spec)) {
    return invalid_input("'{}' is a command, and this lane runs kernels alone", command->line);
  }
  LoadedLaunch loaded;
  DEMARC_TRY(loaded.launch, launch_of(spec));
  DEMARC_TRY(loaded.ptx, workload::ptx_text(loaded.launch, target));
  const auto& buffers = loaded.launch.buffers;
  if (std::none_of(buffers.begin(), buffers.end(),
                   [](const gpu::Buffer& b) { return b.fill.kind == gpu::FillKind::pointers; })) {
    DEMARC_TRY(auto contents,
               gpu::initial_memory(loaded.launch, gpu::default_addresses(loaded.launch),
                                   gpu::Zeros::left_out));
    loaded.contents = std::make_shared<const gpu::Memory>(std::move(contents));
  }
  return loaded;
}

}  // namespace

Result<WorkloadCode> gpu_workload_code(const std::string& spec, std::uint32_t target) {
  DEMARC_TRY(const WorkloadSpec wanted, parse_workload_spec(spec));
  WorkloadCode code;
  DEMARC_TRY(code.launch, launch_of(wanted));
  DEMARC_TRY(code.ptx, workload::ptx_text(code.launch, target));
  return code;
}

WorkloadReader make_workload_reader(std::uint32_t target) {
  const auto known = std::make_shared<std::map<std::string, LoadedLaunch, std::less<>>>();
  return [target, known](const Workload& workload) -> Result<LoadedLaunch> {
    const auto found = known->find(workload.spec);
    if (found != known->end()) return found->second;
    DEMARC_TRY(auto loaded, read_workload(workload.spec, target));
    return known->emplace(workload.spec, std::move(loaded)).first->second;
  };
}

}  // namespace demarc::study
