// The control daemon of MPS for the programs of a server's tenants: they share the card at the same
// time, not in turns.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

#include "demarc/serve/config.hpp"

namespace demarc::serve {

class Mps {
 public:
  // In the folder, which is made, for the card with that UUID. missing_capability when it does not
  // start; with MpsUse::automatic there is none where its program is not in PATH.
  [[nodiscard]] static Result<std::unique_ptr<Mps>> start(MpsUse use, const std::string& folder,
                                                          const std::string& card);
  ~Mps();  // ends the daemon
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  // CUDA_MPS_PIPE_DIRECTORY of the programs; empty: no MPS.
  [[nodiscard]] const std::string& folder() const { return folder_; }

  // What these have on the card ends, so that they can be killed without harm to others. An error
  // where MPS does not say that it has.
  [[nodiscard]] Result<void> end_work_of(std::span<const pid_t> processes) const;

 private:
  explicit Mps(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace demarc::serve
