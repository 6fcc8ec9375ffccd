// Workers and commands of a stage, and the MPS daemon whose clients they are.
#include "gpu/process_stage.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "demarc/card/mps_clients.hpp"

namespace demarc::study {
namespace {

// 0: there is no such process.
pid_t parent_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string word; file >> word;) {
    if (word != "PPid:") continue;
    file >> word;
    return static_cast<pid_t>(std::atoi(word.c_str()));
  }
  return 0;
}

bool is_below(pid_t pid, pid_t leader) {
  while (pid > 1 && pid != leader) pid = parent_of(pid);
  return pid == leader;
}

class ChoosingLane : public Lane {
 public:
  ChoosingLane(std::unique_ptr<Lane> device, std::unique_ptr<Lane> command)
      : device_(std::move(device)), command_(std::move(command)), current_(device_.get()) {}
  // A command has all memory of its part.
  Result<void> load(const Workload& workload) override {
    current_ = is_command(workload) ? command_.get() : device_.get();
    if (current_ != device_.get()) DEMARC_CHECK(device_->unload());
    return current_->load(workload);
  }
  Result<void> unload() override {
    DEMARC_CHECK(command_->unload());
    return device_->unload();
  }
  Result<std::vector<double>> sample(std::uint32_t count, double longest) override {
    return current_->sample(count, longest);
  }
  std::vector<double> last_runs() const override { return current_->last_runs(); }
  Result<Outputs> outputs() override { return current_->outputs(); }
  Result<void> start() override { return current_->start(); }
  Result<double> stop() override { return current_->stop(); }
  Result<void> visit_begins() override { return current_->visit_begins(); }
  Result<void> visit_ended() override { return current_->visit_ended(); }
  std::string remark() const override { return current_->remark(); }
  Result<void> finish() override {
    DEMARC_CHECK(command_->finish());
    return device_->finish();
  }

 private:
  std::unique_ptr<Lane> device_;
  std::unique_ptr<Lane> command_;
  Lane* current_;  // the device's until something is loaded
};

class ProcessStage : public Stage {
 public:
  explicit ProcessStage(const ProcessStagePlan& plan)
      : server_(plan.server), account_(plan.account) {}
  void add(std::unique_ptr<Lane> lane) { lanes_.push_back(std::move(lane)); }
  void set_account(std::string account) { account_ = std::move(account); }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return *lanes_.at(index); }
  Result<void> rest(std::uint32_t lane) override { return lanes_.at(lane)->unload(); }
  std::string account() const override { return account_; }

 private:
  std::shared_ptr<void> server_;  // ends after the lanes, which are its clients
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string account_;
};

}  // namespace

Result<std::unique_ptr<MpsDaemon>> MpsDaemon::start(const std::shared_ptr<StudyFolder>& folder,
                                                    const std::string& card) {
  std::error_code failed;
  std::filesystem::create_directory(folder->mps_folder(), failed);
  if (failed) {
    return missing_capability("mps: cannot make {}: {}", folder->mps_folder().string(),
                              failed.message());
  }
  std::unique_ptr<MpsDaemon> daemon(new MpsDaemon(folder));
  ProcessOptions options;
  options.own_group = false;  // it stays when its starter has ended
  options.set = folder->daemon_environment();
  options.set.emplace_back("CUDA_VISIBLE_DEVICES", card);
  const auto ended = run_process({cuda::mps_control, "-d"}, options, 20);
  if (!ended) {
    return missing_capability("mps: '{} -d' does not start: {}; the NVIDIA driver brings it",
                              cuda::mps_control, ended.error().message);
  }
  if (ended->exit_code != 0) {
    return missing_capability("mps: '{} -d' does not start: {}", cuda::mps_control, ended->words());
  }
  return daemon;
}

Environment MpsDaemon::environment() const {
  return {{"CUDA_MPS_PIPE_DIRECTORY", folder_->mps_folder().string()},
          {"CUDA_MPS_LOG_DIRECTORY", folder_->mps_folder().string()}};
}

void MpsDaemon::end_clients_below(pid_t leader) const {
  // The daemon is this study's alone; where it does not answer, all that is left is to kill them.
  static_cast<void>(cuda::end_mps_clients(
      folder_->daemon_environment(), [leader](pid_t client) { return is_below(client, leader); }));
}

MpsDaemon::~MpsDaemon() {
  folder_->end_daemon();
}

PartProcesses leased_part(std::vector<std::string> worker, Environment environment,
                          CommandLaneOptions command) {
  constexpr double patience_seconds = 300;
  constexpr double seconds_to_end_programs = 20;
  command.patience_seconds = patience_seconds;
  command.leave_seconds += seconds_to_end_programs;
  return {std::move(worker), std::move(environment), patience_seconds, std::move(command)};
}

std::unique_ptr<Lane> make_choosing_lane(std::unique_ptr<Lane> device,
                                         std::unique_ptr<Lane> command) {
  return std::make_unique<ChoosingLane>(std::move(device), std::move(command));
}

Result<std::unique_ptr<Stage>> make_process_stage(const ProcessStagePlan& plan) {
  // The stage from the beginning: where one of the workers does not start, those that did end
  // before the server.
  auto stage = std::make_unique<ProcessStage>(plan);
  std::vector<Lane*> workers;
  for (const PartProcesses& part : plan.parts) {
    DEMARC_TRY(auto worker, spawn_lane(part.worker, part.environment, part.patience_seconds));
    workers.push_back(worker.get());
    stage->add(make_choosing_lane(std::move(worker), make_command_lane(part.command)));
  }
  // They start at the same time. One that has nothing at work has nothing to stop.
  for (Lane* const worker : workers) DEMARC_CHECK(worker->stop());
  if (plan.ask_account) {
    DEMARC_TRY(std::string account, plan.ask_account());
    stage->set_account(std::move(account));
  }
  return stage;
}

}  // namespace demarc::study
