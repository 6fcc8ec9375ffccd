// GPC, TPC and SM of a GPU: who shares what.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/device/units.hpp"

namespace demarc::gpu {

// One texture processing cluster: the unit that hardware masks switch.
struct Tpc {
  GpcIndex gpc;
  std::vector<SmIndex> sms;           // ascending
  std::optional<std::uint32_t> bit;   // its bit in the hardware's task descriptor, when known
  std::optional<std::uint32_t> side;  // which half of the L2 it is near to, when known

  friend bool operator==(const Tpc&, const Tpc&) = default;
};

// With two SMs per TPC, TPC t owns %smid 2t and 2t + 1.
struct Topology {
  PerIndex<TpcIndex, Tpc> tpcs;

  [[nodiscard]] std::uint32_t tpc_count() const { return static_cast<std::uint32_t>(tpcs.size()); }
  [[nodiscard]] std::uint32_t sm_count() const;
  [[nodiscard]] std::uint32_t gpc_count() const;
  [[nodiscard]] Indices<GpcIndex> gpcs() const { return indices<GpcIndex>(gpc_count()); }
  // The TPCs of a GPC, ascending.
  [[nodiscard]] std::vector<TpcIndex> tpcs_of_gpc(GpcIndex gpc) const;
  // The TPC that owns an SM, or nothing when there is no such SM.
  [[nodiscard]] std::optional<TpcIndex> tpc_of_sm(SmIndex sm) const;
  [[nodiscard]] bool sides_known() const;

  // An error names the TPC at fault: an SM owned twice or missing, a hardware bit used twice, a
  // TPC without SMs, a GPC index with no TPC below the highest.
  [[nodiscard]] Result<void> check() const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// SMs per TPC of a compute capability: two on 6.0 and from 7.0 on, one before 6.0 and on 6.1 and
// 6.2 (libsmctrl, RTAS 2023).
[[nodiscard]] std::uint32_t sms_per_tpc(std::uint32_t major, std::uint32_t minor);

// `gpcs` equal GPCs of `tpcs_per_gpc` TPCs of `sms` SMs, numbered GPC by GPC, without sides. For
// simulated GPUs and tests.
[[nodiscard]] Topology regular_topology(std::uint32_t gpcs, std::uint32_t tpcs_per_gpc,
                                        std::uint32_t sms);

}  // namespace demarc::gpu
