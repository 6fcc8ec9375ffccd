#include "gpu/process_stage.hpp"

#include <cstdlib>
#include <filesystem>

namespace demarc::study {
namespace {

constexpr const char* mps_control = "nvidia-cuda-mps-control";

// Runs a shell line to its end; false when it fails or takes longer than `seconds`.
bool run_line(const std::string& line, const Environment& environment, double seconds) {
  ProcessOptions options;
  options.set = environment;
  const auto ended = run_process({"/bin/sh", "-c", line}, options, seconds);
  return ended && ended->exit_code == 0;
}

class ChoosingLane : public Lane {
 public:
  ChoosingLane(std::unique_ptr<Lane> device, std::unique_ptr<Lane> command)
      : device_(std::move(device)), command_(std::move(command)) {}
  Result<void> load(const Workload& workload) override {
    current_ = workload.spec.starts_with("cmd:") ? command_.get() : device_.get();
    return current_->load(workload);
  }
  Result<std::vector<double>> sample(std::uint32_t count, double longest) override {
    return current_->sample(count, longest);
  }
  std::vector<double> last_runs() const override {
    return current_ == nullptr ? std::vector<double>() : current_->last_runs();
  }
  Result<Outputs> outputs() override { return current_->outputs(); }
  Result<void> start() override { return current_->start(); }
  Result<double> stop() override { return current_->stop(); }

 private:
  std::unique_ptr<Lane> device_;
  std::unique_ptr<Lane> command_;
  Lane* current_ = nullptr;
};

class ProcessStage : public Stage {
 public:
  ProcessStage(std::vector<std::unique_ptr<Lane>> lanes, std::unique_ptr<MpsDaemon> daemon,
               std::string account)
      : daemon_(std::move(daemon)), lanes_(std::move(lanes)), account_(std::move(account)) {}
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return *lanes_.at(index); }
  std::string account() const override { return account_; }

 private:
  std::unique_ptr<MpsDaemon> daemon_;  // ends after the lanes, which are its clients
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string account_;
};

}  // namespace

Result<std::unique_ptr<MpsDaemon>> MpsDaemon::start(std::uint32_t device) {
  std::string folder = (std::filesystem::temp_directory_path() / "demarc-mps-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return missing_capability("mps: cannot make a folder like {}", folder);
  }
  auto daemon = std::unique_ptr<MpsDaemon>(new MpsDaemon(folder));
  Environment environment = daemon->environment();
  environment.emplace_back("CUDA_VISIBLE_DEVICES", std::to_string(device));
  if (!run_line(fmt::format("command -v {0} >/dev/null && {0} -d", mps_control), environment, 20)) {
    return missing_capability("mps: '{} -d' does not start; it comes with the NVIDIA driver",
                              mps_control);
  }
  return daemon;
}

Environment MpsDaemon::environment() const {
  return {{"CUDA_MPS_PIPE_DIRECTORY", folder_}, {"CUDA_MPS_LOG_DIRECTORY", folder_}};
}

MpsDaemon::~MpsDaemon() {
  (void)run_line(fmt::format("echo quit | {}", mps_control), environment(), 20);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<Lane> make_choosing_lane(std::unique_ptr<Lane> device,
                                         std::unique_ptr<Lane> command) {
  return std::make_unique<ChoosingLane>(std::move(device), std::move(command));
}

Result<std::unique_ptr<Stage>> make_process_stage(const std::vector<std::string>& argv,
                                                  const std::vector<Environment>& environments,
                                                  double settle_seconds,
                                                  std::unique_ptr<MpsDaemon> daemon,
                                                  std::string account) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const Environment& environment : environments) {
    DEMARC_TRY(auto worker, spawn_lane(argv, environment));
    lanes.push_back(
        make_choosing_lane(std::move(worker), make_command_lane({}, environment, settle_seconds)));
  }
  return std::make_unique<ProcessStage>(std::move(lanes), std::move(daemon), std::move(account));
}

}  // namespace demarc::study
