// `demarc serve` from its configuration to its end.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "demarc/serve/config.hpp"
#include "demarc/serve/server.hpp"

namespace demarc::serve {

struct ServePlan {
  std::string config;                                      // path
  std::optional<std::uint32_t> card = {};                  // instead of the configuration's
  std::string socket = {};                                 // the same, unless empty
  std::optional<MpsUse> mps = {};                          // the same
  std::optional<double> end_when_idle = {};                // seconds without a connection
  std::function<void(const std::string& line)> tell = {};  // a line for the log
};

// Owns the card until SIGTERM or SIGINT comes, or nobody was connected for so long; reads the
// configuration again at SIGHUP. Call it from the only thread. At its end all programs with a lease
// are ended, since nobody would keep them apart from those of the next server.
[[nodiscard]] Result<void> run(const ServePlan& plan);

// Reads and checks the configuration as far as that goes without a card.
[[nodiscard]] Result<Config> plan_config(const ServePlan& plan);

// The loop of run(): turns until a signal ends it, or nobody was connected for so many seconds.
// `terms` gives the tenants anew at SIGHUP.
// check_failed when processes with a lease do not end.
[[nodiscard]] Result<void> serve_until_told(
    Server& server, const std::function<Result<std::vector<Terms>>()>& terms,
    const std::function<void(const std::string& line)>& tell,
    std::optional<double> end_when_idle = {});

}  // namespace demarc::serve
