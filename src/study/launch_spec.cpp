// Reads launch files at one of their scales.
#include "launch_spec.hpp"

#include <string>

namespace demarc::study {
namespace {

constexpr std::string_view prefix = "launch:";
constexpr std::string_view extension = ".json";

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
    options.scale = path.substr(at + 1);
    if (options.scale.empty()) {
      return invalid_input("'{}': name one of the file's scales behind the '@', or leave it out",
                           spec);
    }
    path = path.substr(0, at);
  }
  DEMARC_TRY(gpu::Launch launch, gpu::read_launch(std::string(path), options));
  if (!launch.variables.empty()) {
    return invalid_input(
        "{}: it sets the variable '{}' of its module, which `demarc emulate` and `demarc run` do "
        "and a study does not",
        path, launch.variables.front().name);
  }
  return launch;
}

}  // namespace demarc::study
