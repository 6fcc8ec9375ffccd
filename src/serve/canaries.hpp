// The canaries of a server: for each tenant that wants one, a program in a lease of the tenant, as
// any other program has, which prints once a second how long its reads took. A program and not the
// server, because only clients of MPS run at the same time as the tenants' kernels: a kernel of the
// server's own context would take the whole card for its turn. And not the tenant's programs,
// because a thread of ours in them would disturb them, and there may be none.
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/process.hpp"
#include "demarc/serve/canary_gauge.hpp"
#include "demarc/serve/ledger.hpp"

namespace demarc::serve {

// One that runs.
class CanaryProgram {
 public:
  [[nodiscard]] static Result<CanaryProgram> start(const std::vector<std::string>& command);
  [[nodiscard]] pid_t process() const { return child_.pid(); }
  // The numbers that it has printed since; a line that is none is left out.
  [[nodiscard]] std::vector<double> take();
  // How it has ended, with its last words; nothing while it runs.
  [[nodiscard]] std::optional<std::string> end();
  void ask_to_end() { child_.signal(SIGTERM); }

 private:
  explicit CanaryProgram(Process child) : child_(std::move(child)) {}
  Process child_;
  std::string rest_;  // the beginning of a line
};

// The canary that a tenant's configuration asks for.
struct CanaryWish {
  std::string tenant;
  std::optional<double> baseline_cycles = {};
  friend bool operator==(const CanaryWish&, const CanaryWish&) = default;
};

struct CanariesPlan {
  // The program and its arguments.
  std::function<std::vector<std::string>(const std::string& tenant)> command;
  std::function<void(const std::string& line)> tell;
  std::chrono::seconds restart_after{30};  // one that has ended
};

class Canaries {
 public:
  using Clock = CanaryGauge::Clock;
  explicit Canaries(CanariesPlan plan) : plan_(std::move(plan)) {}

  // From the next look on these are wanted, and no others.
  void want(const std::vector<CanaryWish>& wishes);
  // Reads what canaries have printed and starts those that are missing. `quiet`: no program has a
  // lease; launches between two quiet looks are quiet. A tenant with other TPCs or colours than at
  // the last look has a new gauge, because its reads go another way.
  void look(Clock::time_point now, bool quiet, const Ledger& ledger);
  // Tells all of them to end; the next look starts them again.
  void ask_to_end();
  // Whether none runs.
  [[nodiscard]] bool ended();
  // Whether this process is one of them.
  [[nodiscard]] bool has(pid_t process) const;
  [[nodiscard]] CanaryReading reading(const std::string& tenant, Clock::time_point now) const;

 private:
  struct Canary {
    CanaryWish wish;
    CanaryGauge gauge;
    std::optional<std::pair<gpu::TpcSet, color::ColorSet>> place = {};
    std::optional<CanaryProgram> program = {};
    Clock::time_point start_at = {};  // not before
    std::string said = {};            // why it ended, in the words that were told last
  };
  void look_at(Canary& canary, Clock::time_point now, bool quiet);
  void say(Canary& canary, const std::string& why, Clock::time_point now);

  CanariesPlan plan_;
  bool quiet_ = false;  // at the last look
  std::map<std::string, Canary> canaries_;
};

}  // namespace demarc::serve
