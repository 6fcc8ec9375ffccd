// `demarc serve` from its configuration to its end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "demarc/serve/config.hpp"
#include "demarc/serve/server.hpp"

namespace demarc::serve {

// What a server does about programs that the last server of the card left when it was killed.
enum class Survivors { refuse, wait, end };
[[nodiscard]] Result<Survivors> parse_survivors(std::string_view text);

struct ServePlan {
  std::string config;                                      // path
  std::optional<std::uint32_t> card = {};                  // instead of the configuration's
  std::string socket = {};                                 // the same, unless empty
  std::optional<MpsUse> mps = {};                          // the same
  std::optional<double> end_when_idle = {};                // seconds without a connection
  std::function<void(const std::string& line)> tell = {};  // a line for the log
  Survivors survivors = Survivors::refuse;
  std::string program = "demarc";  // path of demarc, which canaries are
};

// Owns the card until SIGTERM or SIGINT comes, or no client was connected for so long. Reads the
// configuration again at SIGHUP. Call it while the process has only one thread. At its end it ends
// all programs with a lease, because nothing would keep them apart from those of the next server;
// it gives back the memory, ends the daemon of MPS, and then alone makes room for the next server.
// This takes less than 10 s: what does not end in time is killed, and a call that does not return
// ends with the process.
[[nodiscard]] Result<void> run(const ServePlan& plan);

// Reads the configuration; the plan's own values come before it.
[[nodiscard]] Result<Config> plan_config(const ServePlan& plan);

// What the loop of run() tells of a server.
struct ServeEvents {
  std::function<void()> rests = [] {};                // before `terms` is asked: canaries end
  std::function<void()> changed = [] {};              // it has the tenants that `terms` gave
  std::function<void(bool used)> used = [](bool) {};  // whether there are connections; every turn
  std::function<void()> looks = [] {};                // once a second
  std::function<void()> ends = [] {};                 // it begins to end
};

class Signals;

// The loop of run(). It goes on until a signal ends it, or no client was connected for so many
// seconds. At SIGHUP it asks `terms` for the tenants again. check_failed if programs with a lease,
// or children of theirs, do not end. missing_capability if the daemon of MPS has ended, and with it
// the last program.
[[nodiscard]] Result<void> serve_until_told(
    Server& server, const Signals& signals,
    const std::function<Result<std::vector<Terms>>()>& terms,
    const std::function<void(const std::string& line)>& tell,
    std::optional<double> end_when_idle = {}, const ServeEvents& events = {});

}  // namespace demarc::serve
