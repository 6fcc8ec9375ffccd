// TPCs as a command line or a configuration names them: a list, GPCs, a number of SMs or a
// percentage of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/device/topology.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::partition {

// Which TPCs, as written on the command line; exactly one is given.
struct TpcChoice {
  std::string tpcs;  // "0-15,20"
  std::string gpcs;  // "0-2"
  std::uint32_t sms = 0;
  double sms_percent = 0;  // a percentage of the card's SMs
  [[nodiscard]] bool empty() const {
    return tpcs.empty() && gpcs.empty() && sms == 0 && sms_percent == 0;
  }
};

// Reads "66", a number of SMs, or "50%", a percentage of them, into `choice`. `what` names the
// option or key in the error.
[[nodiscard]] Result<void> read_sms(std::string_view text, std::string_view what,
                                    TpcChoice& choice);

// What can be said without a card: invalid_input where more than one is given, and for lists that
// no card could have. Nothing given is fine.
[[nodiscard]] Result<void> check_choice(const TpcChoice& choice);

// Numbers of SMs are found beside the TPCs `taken`, which others have; missing_capability where
// fewer are left.
[[nodiscard]] Result<gpu::TpcSet> choose_tpcs(const gpu::Topology& topology,
                                              const TpcChoice& choice,
                                              const gpu::TpcSet& taken = {});

}  // namespace demarc::partition
