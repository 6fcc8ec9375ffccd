// What the specs of workloads mean: launch files, and bundled workloads at a scale.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "demarc/gpu/launch.hpp"

namespace demarc::study {

// Whether a workload's spec is "launch:FILE.json" or, with one of the file's scales,
// "launch:FILE.json@SCALE".
[[nodiscard]] bool is_launch_file(std::string_view spec);

// Of such a spec. Errors: those of gpu::read_launch(), a scale that the file does not have.
[[nodiscard]] Result<gpu::Launch> read_launch_file(std::string_view spec);

// "NAME" or "NAME@SCALE" of a bundled workload.
struct BundledSpec {
  std::string name;  // in full
  std::optional<std::string> scale;
};
// An error where nothing follows the '@'.
[[nodiscard]] Result<BundledSpec> read_bundled_spec(const std::string& spec);

}  // namespace demarc::study
