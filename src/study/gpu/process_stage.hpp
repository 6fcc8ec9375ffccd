// Modes that divide a GPU between processes: one worker a lane.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "demarc/study/executor.hpp"
#include "demarc/study/remote_lane.hpp"

namespace demarc::study {

// The control daemon of MPS, of our own, in a folder of our own: clients are those that get
// environment(). Ended with the object.
class MpsDaemon {
 public:
  // missing_capability where nvidia-cuda-mps-control is missing or does not start.
  static Result<std::unique_ptr<MpsDaemon>> start(std::uint32_t device);
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;
  [[nodiscard]] Environment environment() const;

 private:
  explicit MpsDaemon(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// Workers `argv`, one for each of `environments`. The daemon, if any, lives as long as the stage.
[[nodiscard]] Result<std::unique_ptr<Stage>> make_process_stage(
    const std::vector<std::string>& argv, const std::vector<Environment>& environments,
    double settle_seconds, std::unique_ptr<MpsDaemon> daemon, std::string account);

// A lane that hands "cmd:" workloads to `command` and all others to `device`.
[[nodiscard]] std::unique_ptr<Lane> make_choosing_lane(std::unique_ptr<Lane> device,
                                                       std::unique_ptr<Lane> command);

}  // namespace demarc::study
