// Reads the specs of workloads, and launch files at one of their scales.
#include "workload_spec.hpp"

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/split.hpp"
#include "demarc/study/plan.hpp"
#include "demarc/workload/short_names.hpp"

namespace demarc::study {
namespace {

// What follows `prefix`; none if `text` does not begin with it.
std::optional<std::string> behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return std::string(text.substr(prefix.size()));
}

Result<std::string> scale_in(std::string_view text, std::size_t at) {
  if (at + 1 < text.size()) return std::string(text.substr(at + 1));
  return invalid_input("'{}': name one of its scales after the '@', or leave the '@' out", text);
}

// A path may have an '@' of its own: a scale follows the extension.
Result<LaunchSpec> parse_launch_spec(std::string_view text, std::string path) {
  LaunchSpec file{std::move(path), {}};
  const std::size_t at = file.path.rfind('@');
  if (at == std::string::npos || !std::string_view(file.path).substr(0, at).ends_with(".json")) {
    return file;
  }
  DEMARC_TRY(file.scale, scale_in(text, text.size() - file.path.size() + at));
  file.path.resize(at);
  return file;
}

Result<BundledSpec> parse_bundled_spec(std::string_view text) {
  const std::size_t at = text.find('@');
  BundledSpec bundled{workload::full_name(text.substr(0, at)), std::nullopt, {}};
  if (at == std::string_view::npos) return bundled;
  DEMARC_TRY(const std::string size, scale_in(text, at));
  if (size.find('=') == std::string::npos) {
    bundled.scale = size;
    return bundled;
  }
  for (const std::string_view item : split_at(size, '+')) {
    const std::size_t equals = item.find('=');
    const auto value = parse_i64(equals < item.size() ? item.substr(equals + 1) : "", item);
    if (equals == 0 || !value) {
      return invalid_input("'{}': '{}' is not PARAMETER=NUMBER; separate several by '+'", text,
                           item);
    }
    bundled.parameters.emplace(item.substr(0, equals), *value);
  }
  return bundled;
}

// The launch file and all that it names.
std::vector<std::string> files_of_launch(const LaunchSpec& file) {
  std::vector<std::string> files{file.path};
  const auto launch = read_launch_file(file);
  if (!launch) return files;
  if (!gpu::bundled_name(launch->ptx)) files.push_back(launch->ptx);
  for (const gpu::Buffer& buffer : launch->buffers) {
    if (!buffer.fill.file.empty()) files.push_back(buffer.fill.file);
  }
  for (const auto& [buffer, path] : launch->check.files) files.push_back(path);
  return files;
}

std::vector<std::string> files_of(const std::string& text) {
  const auto spec = parse_workload_spec(text);
  if (!spec) return {};
  if (const auto* launch = std::get_if<LaunchSpec>(&*spec)) return files_of_launch(*launch);
  if (const auto* stream = std::get_if<StreamSpec>(&*spec)) return {stream->path};
  if (const auto* copies = std::get_if<CopySpec>(&*spec); copies && !copies->launch_file.empty()) {
    return {copies->launch_file};
  }
  return {};
}

std::string digest_of(const std::vector<std::string>& files) {
  std::uint64_t digest = 0;
  for (const std::string& file : files) {
    const auto text = read_file(file);
    if (!text) return "not read";
    digest = hash_of(digest, hash_of(*text));
  }
  return fmt::format("{:016x}", digest);
}

}  // namespace

Contents contents_of(const Plan& plan) {
  Contents contents;
  for (const auto* list : {&plan.victims, &plan.aggressors}) {
    for (const Workload& workload : *list) {
      const auto files = files_of(workload.spec);
      if (!files.empty()) contents[workload.spec] = digest_of(files);
    }
  }
  return contents;
}

Result<WorkloadSpec> parse_workload_spec(std::string_view text) {
  if (auto path = behind(text, "launch:")) return parse_launch_spec(text, std::move(*path));
  if (auto path = behind(text, "stream:")) return StreamSpec{std::move(*path)};
  if (auto line = behind(text, command_prefix)) return CommandSpec{std::move(*line)};
  for (const std::string copies : {"copy_in", "copy_out"}) {
    if (text == copies) return CopySpec{copies == "copy_in", {}};
    if (auto path = behind(text, copies + ":")) {
      return CopySpec{copies == "copy_in", std::move(*path)};
    }
  }
  return parse_bundled_spec(text);
}

Result<gpu::Launch> read_launch_file(const LaunchSpec& file) {
  gpu::LaunchFileOptions options;
  options.scale = file.scale;
  DEMARC_TRY(gpu::Launch launch, gpu::read_launch(file.path, options));
  if (!launch.variables.empty()) {
    return invalid_input(
        "{}: it sets the variable '{}' of its module; only `demarc emulate` and `demarc run` "
        "support this, studies do not",
        file.path, launch.variables.front().name);
  }
  DEMARC_CHECK(gpu::refuse_fixed_addresses(launch));
  DEMARC_CHECK(gpu::refuse_clusters(launch, "a study does"));
  DEMARC_CHECK(gpu::refuse_tensor_maps(launch, "a study does"));
  for (const gpu::KernelLaunch& kernel : launch.kernels)
    DEMARC_CHECK(gpu::refuse_images(kernel, "a study does"));
  return launch;
}

}  // namespace demarc::study
