// Reads launch files at one of their scales, and names of bundled workloads.
#include "launch_spec.hpp"

#include <algorithm>
#include <string>

#include "demarc/base/numbers.hpp"
#include "demarc/workload/short_names.hpp"

namespace demarc::study {
namespace {

constexpr std::string_view prefix = "launch:";
constexpr std::string_view extension = ".json";

Result<std::string> scale_in(std::string_view spec, std::size_t at) {
  if (at + 1 < spec.size()) return std::string(spec.substr(at + 1));
  return invalid_input("'{}': name one of its scales after the '@', or leave the '@' out", spec);
}

}  // namespace

bool is_launch_file(std::string_view spec) {
  return spec.starts_with(prefix);
}

// A path may have an '@' of its own: a scale follows the extension.
Result<gpu::Launch> read_launch_file(std::string_view spec) {
  std::string_view path = spec.substr(prefix.size());
  gpu::LaunchFileOptions options;
  const std::size_t at = path.rfind('@');
  if (at != std::string_view::npos && path.substr(0, at).ends_with(extension)) {
    DEMARC_TRY(options.scale, scale_in(spec, prefix.size() + at));
    path = path.substr(0, at);
  }
  DEMARC_TRY(gpu::Launch launch, gpu::read_launch(std::string(path), options));
  if (!launch.variables.empty()) {
    return invalid_input(
        "{}: it sets the variable '{}' of its module; only `demarc emulate` and `demarc run` "
        "support this, studies do not",
        path, launch.variables.front().name);
  }
  DEMARC_CHECK(gpu::refuse_fixed_addresses(launch));
  DEMARC_CHECK(gpu::refuse_clusters(launch, "a study does"));
  DEMARC_CHECK(gpu::refuse_tensor_maps(launch, "a study does"));
  for (const gpu::KernelLaunch& kernel : launch.kernels)
    DEMARC_CHECK(gpu::refuse_images(kernel, "a study does"));
  return launch;
}

Result<BundledSpec> read_bundled_spec(const std::string& spec) {
  const std::size_t at = spec.find('@');
  BundledSpec bundled{workload::full_name(spec.substr(0, at)), std::nullopt, {}};
  if (at == std::string::npos) return bundled;
  DEMARC_TRY(const std::string behind, scale_in(spec, at));
  if (behind.find('=') == std::string::npos) {
    bundled.scale = behind;
    return bundled;
  }
  for (std::size_t begin = 0; begin <= behind.size();) {
    const std::size_t end = std::min(behind.find('+', begin), behind.size());
    const std::string item = behind.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = item.find('=');
    const auto value = parse_i64(equals < item.size() ? item.substr(equals + 1) : "", item);
    if (equals == 0 || !value) {
      return invalid_input("'{}': '{}' is not PARAMETER=NUMBER; separate several by '+'", spec,
                           item);
    }
    bundled.parameters.emplace(item.substr(0, equals), *value);
  }
  return bundled;
}

}  // namespace demarc::study
