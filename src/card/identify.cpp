// Identifies the SMs of this process by probe kernels that name them.
#include "demarc/card/identify.hpp"

#include <set>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t identifying_blocks_per_sm = 4;
constexpr std::uint64_t identifying_spin_cycles = 20000;

// Ascending GPC numbers of the TPCs.
std::string gpcs_of(const gpu::Topology& topology, const gpu::TpcSet& tpcs) {
  std::set<gpu::GpcIndex> gpcs;
  for (const gpu::TpcIndex tpc : tpcs) gpcs.insert(topology.tpcs[tpc].gpc);
  return joined(gpcs, ",");
}

}  // namespace

Result<gpu::TpcSet> tpcs_with(const gpu::Topology& topology, const std::vector<gpu::SmIndex>& sms) {
  gpu::TpcSet tpcs;
  for (const gpu::SmIndex sm : sms) {
    const auto tpc = topology.tpc_of_sm(sm);
    if (!tpc) {
      return check_failed(
          "a probe block ran on SM {}, but {} SMs are known of this card; run demarc topo "
          "--refresh once, outside MPS",
          sm, topology.sm_count());
    }
    tpcs.insert(*tpc);
  }
  return tpcs;
}

Result<Identification> identify_sms(const Card& card, std::uint32_t launches) {
  DEMARC_CHECK(card.names_sms());
  Identification found;
  found.as_numbered = !card.virtual_sms();
  while (found.launches.size() < launches) {
    const LaunchShape shape =
        LaunchShape::line(identifying_blocks_per_sm * card.topology().sm_count(), 64);
    DEMARC_TRY(const Placement placement,
               probe_placement(card.stream(), card.kernels(), shape, identifying_spin_cycles));
    found.launches.push_back(placement.used_sms());
    DEMARC_TRY(const gpu::TpcSet tpcs, tpcs_with(card.topology(), found.launches.back()));
    found.tpcs = found.tpcs | tpcs;
  }
  return found;
}

std::string identification_to_text(const gpu::Topology& topology, const Identification& found) {
  std::string text;
  for (std::size_t i = 0; i < found.launches.size(); ++i) {
    const auto& sms = found.launches[i];
    const gpu::TpcSet tpcs = tpcs_with(topology, sms).value();
    append(text, "launch {}: {} SMs, TPCs {} (GPCs {})\n", i + 1, sms.size(), to_string(tpcs),
           gpcs_of(topology, tpcs));
  }
  return text + (found.as_numbered
                     ? "SM numbers in kernels (%smid) name the SMs\n"
                     : "SM numbers in kernels (%smid) count the SMs of a launch, because this is a "
                       "client of MPS\n");
}

std::string identification_to_json(const gpu::Topology& topology, const Identification& found) {
  Json launches = Json::array();
  for (const auto& sms : found.launches) {
    launches.push_back(Json{{"tpcs", to_string(tpcs_with(topology, sms).value())}, {"sms", sms}});
  }
  return json_text(Json{{"schema", "demarc.topo.identity/2"},
                        {"tpcs", to_string(found.tpcs)},
                        {"smid_names_sms", found.as_numbered},
                        {"launches", std::move(launches)}},
                   2) +
         "\n";
}

}  // namespace demarc::cuda
