// From what a user names to a launch with its PTX: a launch file, a bundled workload, or a PTX file
// with grid, block and arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/gpu/launch.hpp"

namespace demarc::ptx {
struct Module;
}

namespace demarc::workload {

struct LaunchRequest {
  std::string launch_file;  // path, or "bundled:NAME"; or
  gpu::LaunchText text;     // a PTX file (or "bundled:NAME") with its launch; one of the two
  bool text_given =
      false;  // any of --kernel, --grid, --block, --args, --shared stood on the command line
  bool seed_given = false;             // text.seed replaces the seed of the launch file
  gpu::LaunchFileOptions options;      // scale and parameters, for launch files
  std::vector<std::string> variables;  // gpu::parse_variable(); replace those of a launch file
  std::uint32_t target = 90;           // of bundled modules: sm_90
  bool target_given = false;           // an error beside a module that is not bundled
};

struct LoadedLaunch {
  gpu::Launch launch;
  std::string ptx;       // the module's text
  std::string ptx_name;  // its file, for messages
};

// A positional "bundled:NAME" without any launch option means the bundled workload's own launch. A
// kernel left out is the only entry of the module; an error lists the entries when there are
// several. Kernels and variables may have the names that people write (find_symbol()); the launch
// then has the module's. Files of contents and of a check must be there and fit.
[[nodiscard]] Result<LoadedLaunch> load_launch(const LaunchRequest& request);

// The kernel of a loaded launch that `name` means. An error lists its kernels.
[[nodiscard]] Result<std::string> kernel_of(const gpu::Launch& launch, std::string_view name);

// Leaves of a launch what runs that kernel, on the contents that the whole launch begins with;
// unless that is all of it, there is nothing to check its outputs against.
[[nodiscard]] Result<void> keep_kernel(gpu::Launch& launch, std::string_view name);

// A __constant__ variable that a kernel names and that neither the module nor the launch sets.
struct UnsetConstant {
  std::string kernel;
  std::string variable;
};
// Of the launch's kernels, each pair once.
[[nodiscard]] std::vector<UnsetConstant> unset_constants(const ptx::Module& module,
                                                         const gpu::Launch& launch);

// Names of the entries of a PTX text, in order.
[[nodiscard]] std::vector<std::string> entry_names(std::string_view ptx);

}  // namespace demarc::workload
