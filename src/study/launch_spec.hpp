// What the specs of workloads mean: launch files, and bundled workloads at a scale.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "demarc/launch/launch.hpp"

namespace demarc::study {

// Whether a workload's spec is "launch:FILE.json" or, with one of the file's scales,
// "launch:FILE.json@SCALE".
[[nodiscard]] bool is_launch_file(std::string_view spec);

// Of such a spec. Errors: those of gpu::read_launch(), a scale that the file does not have.
[[nodiscard]] Result<gpu::Launch> read_launch_file(std::string_view spec);

// "NAME", "NAME@SCALE" or "NAME@PARAMETER=VALUE+PARAMETER=VALUE..." of a bundled workload.
// Parameters change those of its default size, and are the same on every device.
struct BundledSpec {
  std::string name;  // in full
  std::optional<std::string> scale;
  std::map<std::string, std::int64_t> parameters;
};
// An error where nothing follows the '@', and for a parameter that is no name with a whole number.
[[nodiscard]] Result<BundledSpec> read_bundled_spec(const std::string& spec);

}  // namespace demarc::study
