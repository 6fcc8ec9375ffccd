// What the spec of a workload means: a bundled workload, a launch file, accesses, a command or
// copies.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "demarc/launch/launch.hpp"

namespace demarc::study {

// "NAME", "NAME@SCALE" or "NAME@PARAMETER=VALUE+PARAMETER=VALUE...". Parameters change those of the
// workload's default size, and are the same on every device.
struct BundledSpec {
  std::string name;  // in full
  std::optional<std::string> scale;
  std::map<std::string, std::int64_t> parameters;
};
// "launch:FILE.json" or, with one of the file's scales, "launch:FILE.json@SCALE".
struct LaunchSpec {
  std::string path;
  std::string scale;  // empty: the file's default
};
// "stream:FILE": accesses for a simulated GPU.
struct StreamSpec {
  std::string path;
};
// "cmd:COMMAND LINE"
inline constexpr std::string_view command_prefix = "cmd:";
struct CommandSpec {
  std::string line;
};
// "copy_in" and "copy_out" copy some memory; with ":FILE.json" the first buffer of a launch file.
struct CopySpec {
  bool to_card = false;
  std::string launch_file;
};
using WorkloadSpec = std::variant<BundledSpec, LaunchSpec, StreamSpec, CommandSpec, CopySpec>;

// An error where nothing follows an '@', and for a parameter that is not a name with a whole
// number.
[[nodiscard]] Result<WorkloadSpec> parse_workload_spec(std::string_view text);

// Errors: those of gpu::read_launch(), a scale that the file does not have, and what no study runs.
[[nodiscard]] Result<gpu::Launch> read_launch_file(const LaunchSpec& file);

}  // namespace demarc::study
