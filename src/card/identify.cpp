// Identifies the SMs of this process by what is remembered of the card.
#include "demarc/card/identify.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/base/text.hpp"
#include "identification_json.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t max_disturbed = 3;  // launches that are measured again

// Ascending GPC numbers of the TPCs.
std::string gpcs_of(const gpu::Topology& topology, const gpu::TpcSet& tpcs) {
  std::set<gpu::GpcIndex> gpcs;
  for (const gpu::TpcIndex tpc : tpcs) gpcs.insert(topology.tpcs[tpc].gpc);
  return joined(gpcs, ",");
}

gpu::TpcSet certain_tpcs(const std::vector<SmIdentity>& launch) {
  gpu::TpcSet tpcs;
  for (const SmIdentity& sm : launch) {
    if (sm.certain) tpcs.insert(sm.tpc);
  }
  return tpcs;
}

// A few of them say enough: on a busy card all are.
std::string doubts(const std::vector<SmIdentity>& launch) {
  constexpr std::size_t max_lines = 8;
  std::string text;
  std::size_t in_doubt = 0;
  for (const SmIdentity& sm : launch) {
    if (sm.certain || ++in_doubt > max_lines) continue;
    text += fmt::format(
        "  SM number {} is IN DOUBT: TPC {} is {:.2f} cycles away, TPC {} {:.2f} cycles\n", sm.sm,
        sm.tpc, sm.distance, sm.other_tpc, sm.other_distance);
  }
  if (in_doubt > max_lines) {
    text += fmt::format("  and {} more SMs are IN DOUBT\n", in_doubt - max_lines);
  }
  return text;
}

// One line per TPC: its place, its SMs, and what the launch called them.
std::string each_tpc(const gpu::Topology& topology, const std::vector<SmIdentity>& launch) {
  std::string text;
  for (const gpu::TpcIndex tpc : certain_tpcs(launch)) {
    std::vector<gpu::SmIndex> numbers;
    for (const SmIdentity& sm : launch) {
      if (sm.certain && sm.tpc == tpc) numbers.push_back(sm.sm);
    }
    const gpu::Tpc& place = topology.tpcs[tpc];
    text += fmt::format("  TPC {:>3} of GPC {:>2} (SM {}): here number {}\n", tpc, place.gpc,
                        joined(place.sms, ", "), joined(numbers, ", "));
  }
  return text;
}

}  // namespace

Result<std::optional<CardFacts>> remembered_facts(const Gpu& gpu, const std::string& cache_folder) {
  const std::string path = facts_path(gpu, cache_folder);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::optional<CardFacts>();
  DEMARC_TRY(const std::string text, read_file(path));
  auto facts = parse_facts(text, path);
  if (!facts) {
    return tl::unexpected(Error{facts.error().kind,
                                facts.error().message + "; demarc topo --refresh writes it anew"});
  }
  DEMARC_CHECK(check_facts(*facts, gpu, path));
  facts->from_cache = true;
  return std::optional<CardFacts>(std::move(*facts));
}

Identification identification_of(const gpu::Topology& topology,
                                 std::vector<std::vector<SmIdentity>> launches) {
  Identification found;
  for (const auto& launch : launches) {
    found.tpcs = found.tpcs | certain_tpcs(launch);
    for (const SmIdentity& sm : launch) {
      ++found.sms;
      if (!sm.certain) ++found.in_doubt;
      if (sm.certain && topology.tpc_of_sm(sm.sm) != sm.tpc) ++found.misnumbered;
    }
  }
  found.launches = std::move(launches);
  return found;
}

Confinement confinement_of(const Identification& found, const gpu::TpcSet& tpcs) {
  Confinement confinement;
  for (const auto& launch : found.launches) {
    for (const SmIdentity& sm : launch) {
      const gpu::TpcSet outside = sm.candidates - tpcs;
      if (!sm.candidates.empty() && outside.empty()) continue;
      if (!sm.candidates.empty() && outside == sm.candidates) {
        confinement.outside = confinement.outside | outside;
      } else {
        ++confinement.in_doubt;
      }
    }
  }
  return confinement;
}

Result<Identification> identify_sms(const GpuPointer& gpu, const CardFacts& known,
                                    std::uint32_t launches) {
  if (!known.fingerprints) {
    return missing_capability(
        "{}: no fingerprints of its SMs are remembered; run demarc topo --refresh once, outside "
        "MPS and with nothing else on the card",
        gpu->name());
  }
  DEMARC_TRY(const gpu::AddressMap map, known_address_map(gpu->name()));
  DEMARC_TRY(const MemoryTimer timer, MemoryTimer::create(gpu));
  std::vector<std::vector<SmIdentity>> all;
  std::uint32_t disturbed = 0;
  while (all.size() < launches) {
    const auto seen = measure_fingerprints(timer, map);
    if (!seen) {
      // A neighbour may have been busy for a moment.
      if (gpu->stuck() || ++disturbed > max_disturbed) return tl::unexpected(seen.error());
      continue;
    }
    DEMARC_TRY(auto matched, match_fingerprints(known.device.topology, *known.fingerprints, *seen));
    all.push_back(std::move(matched));
  }
  return identification_of(known.device.topology, std::move(all));
}

std::string identification_to_text(const gpu::Topology& topology, const Identification& found,
                                   bool each) {
  std::string text;
  for (std::size_t i = 0; i < found.launches.size(); ++i) {
    const auto& launch = found.launches[i];
    const gpu::TpcSet tpcs = certain_tpcs(launch);
    text += fmt::format("launch {}: {} SMs, by latency TPCs {} (GPCs {})\n", i + 1, launch.size(),
                        to_string(tpcs), gpcs_of(topology, tpcs));
    if (each && i == 0) text += each_tpc(topology, launch);
    text += doubts(launch);
  }
  text += fmt::format(
      "{} of {} SMs identified; SM numbers {}\n", found.sms - found.in_doubt, found.sms,
      found.in_doubt == found.sms ? "could not be compared"
      : found.as_numbered()
          ? "name the SMs"
          : fmt::format("belong to a launch (MPS): {} do not name their SM", found.misnumbered));
  return text;
}

Json identification_json(const gpu::Topology& topology, const Identification& found) {
  Json launches = Json::array();
  for (const auto& launch : found.launches) {
    Json sms = Json::array();
    for (const SmIdentity& sm : launch) {
      sms.push_back(Json{{"number", sm.sm},
                         {"certain", sm.certain},
                         {"tpc", sm.tpc},
                         {"gpc", topology.tpcs[sm.tpc].gpc},
                         {"distance_cycles", sm.distance},
                         {"other_tpc", sm.other_tpc},
                         {"other_distance_cycles", sm.other_distance}});
    }
    launches.push_back(Json{{"tpcs", to_string(certain_tpcs(launch))}, {"sms", std::move(sms)}});
  }
  return Json{{"tpcs", to_string(found.tpcs)},
              {"sms", found.sms},
              {"in_doubt", found.in_doubt},
              {"misnumbered", found.misnumbered},
              {"launches", std::move(launches)}};
}

std::string identification_to_json(const gpu::Topology& topology, const Identification& found) {
  Json json{{"schema", "demarc.topo.identity/1"}};
  json.update(identification_json(topology, found));
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
