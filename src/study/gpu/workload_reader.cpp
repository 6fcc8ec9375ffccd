// Finds what a workload's spec names: a bundled launch, a launch file, copies.
#include "gpu/workload_reader.hpp"

#include <algorithm>
#include <map>

#include "demarc/workload/workload.hpp"
#include "launch_spec.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t copied_bytes = std::uint64_t{256} << 20U;  // by "copy_in" and "copy_out"

struct CopyName {
  std::string_view name;
  CopyDirection direction;
};
constexpr CopyName copy_names[] = {{"copy_in", CopyDirection::to_card},
                                   {"copy_out", CopyDirection::to_host}};

// "copy_in" and "copy_out" copy some memory; with ":FILE.json" the first buffer of a launch file.
Result<std::optional<LoadedLaunch>> copies_of(std::string_view spec) {
  for (const CopyName& known : copy_names) {
    if (!spec.starts_with(known.name)) continue;
    const std::string_view rest = spec.substr(known.name.size());
    LoadedLaunch loaded;
    loaded.copies = known.direction;
    if (rest.starts_with(":")) {
      DEMARC_TRY(loaded.launch, gpu::read_launch(std::string(rest.substr(1))));
      return loaded;
    }
    if (!rest.empty()) continue;
    loaded.launch.name = spec;
    loaded.launch.buffers.resize(1);
    loaded.launch.buffers.front().name = "data";
    loaded.launch.buffers.front().bytes = copied_bytes;
    loaded.launch.kernels.resize(1);
    return loaded;
  }
  return std::nullopt;
}

Result<gpu::Launch> launch_of(const std::string& spec) {
  if (is_launch_file(spec)) return read_launch_file(spec);
  if (spec.starts_with("cmd:")) {
    return invalid_input("'{}' is a command: it can be an aggressor, but not a victim",
                         spec.substr(4));
  }
  DEMARC_TRY(const BundledSpec wanted, read_bundled_spec(spec));
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

Result<LoadedLaunch> read_workload(const std::string& spec, std::uint32_t target) {
  DEMARC_TRY(auto copies, copies_of(spec));
  if (copies) return std::move(*copies);
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
  if (spec.starts_with("cmd:")) return missing_capability("a command brings compiled code, no PTX");
  if (spec.starts_with("stream:")) return missing_capability("an access stream has no PTX");
  DEMARC_TRY(const auto copies, copies_of(spec));
  if (copies) return missing_capability("copies by the copy engines have no PTX");
  WorkloadCode code;
  DEMARC_TRY(code.launch, launch_of(spec));
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
