// TPCs as a command line names them: a list, GPCs, a number of SMs or a share.
#pragma once

#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/device/topology.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::partition {

// Which TPCs, as written on the command line; exactly one is given.
struct TpcChoice {
  std::string tpcs;  // "0-15,20"
  std::string gpcs;  // "0-2"
  std::uint32_t sms = 0;
  double share_percent = 0;
  [[nodiscard]] bool empty() const {
    return tpcs.empty() && gpcs.empty() && sms == 0 && share_percent == 0;
  }
};

[[nodiscard]] Result<gpu::TpcSet> choose_tpcs(const gpu::Topology& topology,
                                              const TpcChoice& choice);

}  // namespace demarc::partition
