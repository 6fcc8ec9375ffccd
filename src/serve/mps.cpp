// Starts and ends the daemon of MPS by its own program.
#include "mps.hpp"

#include <algorithm>
#include <filesystem>

#include "demarc/base/process.hpp"
#include "demarc/cuda/mps_clients.hpp"

namespace demarc::serve {
namespace {

using cuda::mps_control;

constexpr double patience_seconds = 20;

Environment environment_of(const std::string& folder) {
  return {{"CUDA_MPS_PIPE_DIRECTORY", folder}, {"CUDA_MPS_LOG_DIRECTORY", folder}};
}

Result<void> start_daemon(const std::string& folder, const std::string& card) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return missing_capability("mps: cannot make {}: {}", folder, failed.message());
  ProcessOptions options;
  options.own_group = false;
  options.set = environment_of(folder);
  options.set.emplace_back("CUDA_VISIBLE_DEVICES", card);
  const auto ended = run_process({mps_control, "-d"}, options, patience_seconds);
  if (!ended) {
    return missing_capability("mps: '{} -d' does not start: {}; the NVIDIA driver brings it",
                              mps_control, ended.error().message);
  }
  if (ended->exit_code == 0) return {};
  return missing_capability("mps: '{} -d' does not start: {}", mps_control, ended->words());
}

}  // namespace

Result<std::unique_ptr<Mps>> Mps::start(MpsUse use, const std::string& folder,
                                        const std::string& card) {
  const bool tries =
      use == MpsUse::on || (use == MpsUse::automatic && !find_program(mps_control).empty());
  if (!tries) return std::unique_ptr<Mps>(new Mps(""));
  DEMARC_CHECK(start_daemon(folder, card));
  return std::unique_ptr<Mps>(new Mps(folder));
}

Result<void> Mps::end_work_of(std::span<const pid_t> processes) const {
  if (folder_.empty()) return {};
  return cuda::end_mps_clients(environment_of(folder_), [&](pid_t client) {
    return std::find(processes.begin(), processes.end(), client) != processes.end();
  });
}

Mps::~Mps() {
  if (folder_.empty()) return;
  ProcessOptions options;
  options.set = environment_of(folder_);
  static_cast<void>(run_process({"/bin/sh", "-c", fmt::format("echo quit | {}", mps_control)},
                                options, patience_seconds));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace demarc::serve
