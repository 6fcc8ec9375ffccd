// Runs the points of a plan that a store does not hold: in processes of this machine, and on the
// ranks that mpirun started. Every point has a process of its own, so a point that crashes only
// becomes a row with an error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sweep/plan.hpp"
#include "demarc/sweep/store.hpp"
#include "demarc/sweep/transport.hpp"

namespace demarc::sweep {

// Runs a point's arguments as the program would, on this process's standard streams. Returns the
// exit code.
using RunCommand = std::function<int(const std::vector<std::string>& arguments)>;

// How far a sweep is.
struct State {
  std::uint64_t points = 0;  // points of the plan
  std::uint64_t held = 0;    // points that were there before
  std::uint64_t ran = 0;     // points that ran since, including those that failed
  std::uint64_t failed = 0;  // of both kinds
  double seconds = 0;        // since the beginning
  double point_seconds = 0;  // sum over the points that ran
};

// The processes of this machine in which points run. They are started before MPI, because a process
// with MPI is large and each point would copy it.
class Crew {
 public:
  // `jobs` points at a time; 0: as many as this process has cores. `plan` and `command` must
  // outlive it. missing_capability if no process can be started.
  [[nodiscard]] static Result<Crew> start(const Plan& plan, unsigned jobs,
                                          const RunCommand& command);
  Crew(Crew&&) noexcept;
  Crew& operator=(Crew&&) noexcept;
  ~Crew();

  struct Members;
  [[nodiscard]] Members& members() { return *members_; }

 private:
  explicit Crew(std::unique_ptr<Members> members);
  std::unique_ptr<Members> members_;
};

struct RunOptions {
  bool retry = false;                          // run failed points again
  std::uint64_t most = 0;                      // the largest number of points to run; 0: all
  std::function<void(const State&)> progress;  // called now and then; may be empty
};

// Runs on rank 0, or if there is one rank. It is an error if the store cannot be written or no
// process can be started.
[[nodiscard]] Result<State> run_sweep(const Plan& plan, Store& store, Crew& crew, Transport* ranks,
                                      const RunOptions& options);

// Runs on the other ranks: runs what rank 0 sends, until it sends no more.
[[nodiscard]] Result<void> serve_rank(Crew& crew, Transport& ranks);

}  // namespace demarc::sweep
