// The daemon of MPS for the programs of a server's tenants: they share the card at the same
// time, not in turns.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demarc/serve/config.hpp"
#include "demarc/serve/work_ender.hpp"

namespace demarc::serve {

// What a daemon is started for.
struct MpsPlan {
  MpsUse use = MpsUse::automatic;
  std::string folder;  // is made; belongs to this server alone
  std::string card;    // UUID
  std::function<void(const std::string& line)> tell = [](const std::string&) {};
  double end_seconds = 3;  // that a daemon has to quit, of the ten in which a server ends
};

class Mps {
 public:
  // First ends what a server that was killed left in the folder. missing_capability, in the
  // daemon's words, when it does not start; with MpsUse::automatic there is none where its program
  // is not in PATH, and a line says what that means. A line names each daemon that already runs for
  // others.
  [[nodiscard]] static Result<std::unique_ptr<Mps>> start(const MpsPlan& plan);
  ~Mps();  // ends the daemon, by force where it does not end within some seconds
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  // CUDA_MPS_PIPE_DIRECTORY of the programs; empty: no MPS.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  // Readable once the daemon has ended; -1: there is none, or its process was not found.
  [[nodiscard]] int process_file() const { return process_.get(); }

  // What these have on the card ends, so that they can be killed without harm to others. An error
  // where MPS does not say that it has, where it does not list the process, and where the process
  // has ended: then MPS is not told its number.
  [[nodiscard]] std::vector<Result<void>> end_work_of(const std::vector<WorkTarget>& targets) const;
  // The daemon's answers, all together, are waited for no longer than so many seconds from now on.
  void hurry(double seconds);

 private:
  Mps(const MpsPlan& plan, std::string folder) : plan_(plan), folder_(std::move(folder)) {}
  MpsPlan plan_;
  std::string folder_;
  OwnedFile process_;  // pidfd
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> until_{Clock::time_point::max()};
};

}  // namespace demarc::serve
