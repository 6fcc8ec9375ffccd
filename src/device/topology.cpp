// Answers which GPC, TPC and SM belong together, and checks that a topology is possible.
#include "demarc/device/topology.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace demarc::gpu {

std::uint32_t Topology::sm_count() const {
  std::size_t count = 0;
  for (const Tpc& tpc : tpcs) count += tpc.sms.size();
  return static_cast<std::uint32_t>(count);
}

std::uint32_t Topology::gpc_count() const {
  std::uint32_t count = 0;
  for (const Tpc& tpc : tpcs) count = std::max(count, tpc.gpc.raw() + 1);
  return count;
}

std::vector<TpcIndex> Topology::tpcs_of_gpc(GpcIndex gpc) const {
  std::vector<TpcIndex> found;
  for (const TpcIndex t : tpcs.keys()) {
    if (tpcs[t].gpc == gpc) found.push_back(t);
  }
  return found;
}

std::optional<TpcIndex> Topology::tpc_of_sm(SmIndex sm) const {
  for (const TpcIndex t : tpcs.keys()) {
    const auto& sms = tpcs[t].sms;
    if (std::find(sms.begin(), sms.end(), sm) != sms.end()) return t;
  }
  return std::nullopt;
}

bool Topology::sides_known() const {
  return !tpcs.empty() &&
         std::all_of(tpcs.begin(), tpcs.end(), [](const Tpc& tpc) { return tpc.side.has_value(); });
}

Result<void> Topology::check() const {
  if (tpcs.empty()) return invalid_input("the topology has no TPC");
  const std::uint32_t sms = sm_count();
  std::set<SmIndex> owned;
  std::map<std::uint32_t, TpcIndex> bit_owner;
  for (const TpcIndex t : tpcs.keys()) {
    if (tpcs[t].sms.empty()) return invalid_input("tpcs[{}].sms: a TPC has at least one SM", t);
    for (const SmIndex sm : tpcs[t].sms) {
      if (sm.raw() >= sms) {
        return invalid_input("tpcs[{}].sms: SM {} is out of range: {} SMs are listed in all", t, sm,
                             sms);
      }
      if (!owned.insert(sm).second) {
        return invalid_input("tpcs[{}].sms: SM {} is listed twice", t, sm);
      }
    }
    if (const auto bit = tpcs[t].bit) {
      const auto [other, fresh] = bit_owner.emplace(*bit, t);
      if (!fresh) {
        return invalid_input("tpcs[{}].bit: hardware bit {} already belongs to TPC {}", t, *bit,
                             other->second);
      }
    }
  }
  for (const GpcIndex gpc : gpcs()) {
    if (tpcs_of_gpc(gpc).empty()) {
      return invalid_input("tpcs: no TPC belongs to GPC {}, although there is a GPC {}", gpc,
                           gpc_count() - 1);
    }
  }
  return {};
}

std::uint32_t sms_per_tpc(std::uint32_t major, std::uint32_t minor) {
  return major >= 7 || (major == 6 && minor == 0) ? 2 : 1;
}

Topology regular_topology(std::uint32_t gpcs, std::uint32_t tpcs_per_gpc, std::uint32_t sms) {
  Topology topology;
  SmIndex next_sm;
  for (std::uint32_t t = 0; t < gpcs * tpcs_per_gpc; ++t) {
    Tpc tpc;
    tpc.gpc = GpcIndex(t / tpcs_per_gpc);
    tpc.bit = t;
    for (std::uint32_t i = 0; i < sms; ++i, ++next_sm) tpc.sms.push_back(next_sm);
    topology.tpcs.push_back(std::move(tpc));
  }
  return topology;
}

}  // namespace demarc::gpu
