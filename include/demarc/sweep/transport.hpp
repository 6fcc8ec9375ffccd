// Messages between the ranks of a sweep. MPI is loaded only when it is needed, so the program also
// works without it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"

namespace demarc::sweep {

struct RankMessage {
  std::uint32_t from = 0;
  std::string text;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  virtual void send(std::uint32_t to, const std::string& text) = 0;
  // Ends the job on all ranks with this exit code, because a rank that cannot go on would keep the
  // others waiting.
  virtual void abandon(int exit_code) = 0;
  // The next message that has come, or nothing.
  [[nodiscard]] virtual std::optional<RankMessage> receive() = 0;
};

// Whether mpirun, or Slurm's srun, has started this process together with others.
[[nodiscard]] bool started_by_mpi();

// The ranks of that job, by libdemarc_mpi.so beside the program. missing_capability if the library
// is not there, because the program was built without MPI.
[[nodiscard]] Result<std::unique_ptr<Transport>> open_mpi();

}  // namespace demarc::sweep
