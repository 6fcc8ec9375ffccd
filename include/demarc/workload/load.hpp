// Turns what a user names into a launch with its PTX. The user names a launch file, a bundled
// workload, or a PTX file with grid, block and arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::ptx {
struct Module;
}

namespace demarc::workload {

struct LaunchRequest {
  std::string launch_file;  // path, or "bundled:NAME"; or
  gpu::LaunchText text;     // a PTX file (or "bundled:NAME") with its launch; one of the two
  bool text_given = false;  // the command line had --kernel, --grid, --block, --args or --shared
  bool seed_given = false;  // text.seed replaces the seed of the launch file
  gpu::LaunchFileOptions options;      // scale and parameters, for launch files
  std::vector<std::string> variables;  // gpu::parse_variable(); replace those of a launch file
  std::uint32_t target = 90;           // of bundled modules: sm_90
  bool target_given = false;           // an error together with a module that is not bundled
};

struct LoadedLaunch {
  gpu::Launch launch;
  std::string ptx;       // the module's text
  std::string ptx_name;  // its file, for messages
};

// A positional "bundled:NAME" without any launch option means the bundled workload's own launch. If
// no kernel is named, it is the only entry of the module; if there are several, an error lists
// them. Kernels and variables may have the names that people write (find_symbol()); the launch gets
// the module's names. Files of contents and of a check must exist and fit.
[[nodiscard]] Result<LoadedLaunch> load_launch(const LaunchRequest& request);

// The kernel of a loaded launch that `name` means. An error lists the kernels of the launch.
[[nodiscard]] Result<std::string> kernel_of(const gpu::Launch& launch, std::string_view name);

// Keeps only the launches of that kernel, on the contents that the whole launch begins with. Unless
// these are all launches, there is nothing to check the outputs against.
[[nodiscard]] Result<void> keep_kernel(gpu::Launch& launch, std::string_view name);

// A __constant__ variable that a kernel names and that neither the module nor the launch sets.
struct UnsetConstant {
  std::string kernel;
  std::string variable;
};
// Such variables of the launch's kernels; each pair is listed once.
[[nodiscard]] std::vector<UnsetConstant> unset_constants(const ptx::Module& module,
                                                         const gpu::Launch& launch);

// Names of the entries of a PTX text, in order.
[[nodiscard]] std::vector<std::string> entry_names(std::string_view ptx);

}  // namespace demarc::workload
