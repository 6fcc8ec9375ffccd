// Reads and prints sets of TPCs, and lists the SMs that belong to one.
#include "demarc/device/tpc_set.hpp"

#include <algorithm>

#include "demarc/base/numbers.hpp"

namespace demarc::gpu {

TpcSet TpcSet::of(const std::vector<TpcIndex>& members) {
  TpcSet set;
  for (const TpcIndex tpc : members) set.insert(tpc);
  return set;
}

std::string to_string(const TpcSet& set) {
  if (set.empty()) return "none";
  std::string text;
  for (TpcIndex tpc; tpc.raw() < TpcSet::capacity; ++tpc) {
    if (!set.contains(tpc)) continue;
    const TpcIndex begin = tpc;
    while (set.contains(tpc + 1)) ++tpc;
    if (!text.empty()) text += ',';
    text += begin == tpc ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, tpc);
  }
  return text;
}

Result<TpcSet> parse_tpc_set(std::string_view text, std::uint32_t count, std::string_view what) {
  if (count == 0) return invalid_input("{}: the GPU has no TPC", what);
  const std::uint32_t limit = std::min(count, TpcSet::capacity) - 1;
  DEMARC_TRY(const auto members, parse_index_list(text, limit, what));
  TpcSet set;
  for (const std::uint32_t member : members) set.insert(TpcIndex(member));
  return set;
}

TpcSet all_tpcs(const gpu::Topology& topology) {
  return TpcSet::first(topology.tpc_count());
}

std::uint32_t sm_count(const gpu::Topology& topology, const TpcSet& tpcs) {
  return static_cast<std::uint32_t>(sms_of(topology, tpcs).size());
}

std::vector<SmIndex> sms_of(const gpu::Topology& topology, const TpcSet& tpcs) {
  std::vector<SmIndex> sms;
  for (const TpcIndex tpc : all_tpcs(topology) & tpcs) {
    sms.insert(sms.end(), topology.tpcs[tpc].sms.begin(), topology.tpcs[tpc].sms.end());
  }
  std::sort(sms.begin(), sms.end());
  return sms;
}

Result<TpcSet> tpcs_of_gpcs(const gpu::Topology& topology, std::string_view list,
                            std::string_view what) {
  if (topology.tpcs.empty()) return invalid_input("{}: the GPU has no GPC", what);
  DEMARC_TRY(const auto gpcs, parse_index_list(list, topology.gpc_count() - 1, what));
  TpcSet set;
  for (const std::uint32_t gpc : gpcs) {
    set = set | TpcSet::of(topology.tpcs_of_gpc(GpcIndex(gpc)));
  }
  return set;
}

}  // namespace demarc::gpu
