// Modes that divide a GPU between processes: one worker per lane, and one command next to it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demarc/study/executor.hpp"
#include "demarc/study/remote_lane.hpp"
#include "gpu/study_folder.hpp"

namespace demarc::study {

// The control daemon of MPS, of our own, in the folder of the study: clients are those that get
// environment(). Ended with the object.
class MpsDaemon {
 public:
  // For one card, named by its UUID. missing_capability where nvidia-cuda-mps-control is missing or
  // does not start.
  static Result<std::unique_ptr<MpsDaemon>> start(const std::shared_ptr<StudyFolder>& folder,
                                                  const std::string& card);
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;
  [[nodiscard]] Environment environment() const;
  // Ends the work on the GPU of the clients among `leader` and its descendants, before these are
  // ended: a client that ends in the middle of its work can take the others with it.
  void end_clients_below(pid_t leader) const;

 private:
  explicit MpsDaemon(std::shared_ptr<StudyFolder> folder) : folder_(std::move(folder)) {}
  std::shared_ptr<StudyFolder> folder_;
};

// What serves one part: kernels by a worker, commands next to it.
struct PartProcesses {
  std::vector<std::string> worker;
  Environment environment;        // the worker's
  double patience_seconds = 120;  // for an answer of the worker, the first one included
  CommandLaneOptions command;
};

// A part whose worker and commands run as tenants. Their server measures the colours of all of its
// memory before it serves, kernels are compiled again, and what a program left running is ended
// before `demarc exec` is, so the part may take longer than others.
[[nodiscard]] PartProcesses leased_part(std::vector<std::string> worker, Environment environment,
                                        CommandLaneOptions command);

struct ProcessStagePlan {
  std::vector<PartProcesses> parts;
  std::shared_ptr<void> server;  // ends after the lanes, which are its clients
  std::string account;
  // If it is there, it gives the account once all workers have answered.
  std::function<Result<std::string>()> ask_account = {};
};

// Returns once all workers have answered. Errors: those of the first worker that did not.
[[nodiscard]] Result<std::unique_ptr<Stage>> make_process_stage(const ProcessStagePlan& plan);

// A lane that hands "cmd:" workloads to `command` and all others to `device`.
[[nodiscard]] std::unique_ptr<Lane> make_choosing_lane(std::unique_ptr<Lane> device,
                                                       std::unique_ptr<Lane> command);

}  // namespace demarc::study
