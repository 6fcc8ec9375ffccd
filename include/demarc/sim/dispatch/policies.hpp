// The dispatch policies by name, and the settings that they are made with.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/block_sharing.hpp"
#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {

// What a policy may want to know besides the machine.
struct PolicySettings {
  // The rule of 2020: rr and rrf end dispatch for a tick when their pointer passes the last SM.
  bool wrap_ends_tick = false;
  // `locality`: blocks i with equal i / blocks_per_group share data. 0: as many as fit one SM.
  std::uint32_t blocks_per_group = 0;
  // `locality`: what the blocks of each kernel share; null or missing: not known. Must outlive the
  // policy.
  PerIndex<KernelIndex, const BlockSharing*> sharing;
  std::uint32_t sms_per_tpc = 2;  // `hw`
  std::uint32_t tpcs_per_gpc = 8;
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<DispatchPolicy> (*make)(const PolicySettings& settings);
};

[[nodiscard]] std::span<const PolicyInfo> dispatch_policies();
[[nodiscard]] Result<const PolicyInfo*> find_policy(std::string_view name);

}  // namespace demarc::sim
