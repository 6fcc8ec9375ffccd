// Planted TLBs, caches and links behind the interface of the probe of translation.
#include "planted_translation.hpp"

#include <algorithm>

#include "demarc/base/hash.hpp"
#include "planted_tlb.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint64_t two_mebibytes = std::uint64_t{2} << 20U;

class PlantedPages final : public TimedPages {
 public:
  PlantedPages(const PlantedHierarchy& truth, const Mapping& mapping, std::uint64_t seed)
      : truth_(truth), mapping_(mapping), random_(seed), seed_(seed) {
    for (const PlantedTlb& tlb : place().tlbs) levels_.emplace_back(tlb, pages());
  }

  [[nodiscard]] std::uint64_t page_bytes() const override { return mapping_.page_bytes; }
  [[nodiscard]] std::uint64_t pages() const override {
    return place().pages * two_mebibytes / mapping_.page_bytes;
  }

  [[nodiscard]] const std::string& no_atomics() const override { return place().no_atomics; }

  Result<WalkCycles> walk(std::span<const Visit> visits, Access access, Before before) override {
    const PlantedPlace& here = place();
    const bool cold = before == Before::evicted;
    WalkCycles cycles;
    cycles.first = pass(visits, access == Access::atomic ? here.atomic_cycles
                                : cold                   ? here.cold_cycles
                                                         : here.hit_cycles);
    const double cached = truth_.places[0].hit_cycles;
    cycles.again = pass(visits, access == Access::atomic ? here.atomic_cycles
                                : here.cached_here       ? cached
                                                         : here.hit_cycles);
    return cycles;
  }

  Result<double> accesses_per_second(const Traffic& traffic) override {
    const double exact = exact_rate(traffic);
    return exact * (1 + truth_.rate_noise * random_.normal());
  }

 private:
  [[nodiscard]] const PlantedPlace& place() const {
    return truth_.places[static_cast<std::size_t>(mapping_.place)];
  }

  // Cycles per access of one walk; what it costs beyond `data`, the TLBs say.
  double pass(std::span<const Visit> visits, double data) {
    double cycles = 0;
    for (const Visit& visit : visits) {
      cycles += data + slice_cycles(visit);
      for (std::size_t i = 0; i < levels_.size(); ++i) {
        if (levels_[i].access(visit.page, random_)) break;
        cycles += place().tlbs[i].miss_cycles;
      }
    }
    return cycles / static_cast<double>(visits.size()) + truth_.noise_cycles * random_.normal();
  }

  [[nodiscard]] double slice_cycles(const Visit& visit) const {
    const std::uint64_t roll =
        stirred(seed_ ^ stirred((std::uint64_t{visit.page.raw()} << 20U) + visit.line.raw()));
    return truth_.slice_cycles * (static_cast<double>(roll >> 11U) * 0x1.0p-52 - 1);
  }

  [[nodiscard]] double exact_rate(const Traffic& traffic) const {
    const PlantedPlace& here = place();
    switch (traffic.kind) {
      case Traffic::Kind::word:
        return here.atomics_per_second / 8;
      case Traffic::Kind::atomic:
        return here.atomics_per_second;
      case Traffic::Kind::page: {
        // A sector an access, and a walk for what the last TLB does not hold.
        const double rate = here.bytes_per_second / 32;
        const PlantedTlb& last = here.tlbs.back();
        const double held = static_cast<double>(last.entries * last.pages_per_entry);
        const double missing = std::max(0.0, 1 - held / static_cast<double>(traffic.pages));
        return missing == 0 ? rate : std::min(rate, here.walks_per_second / missing);
      }
      case Traffic::Kind::read:
      case Traffic::Kind::write:
        break;
    }
    const double most = std::min(here.bytes_per_second, here.sm_bytes_per_second * traffic.sms);
    return most / (traffic.access_bytes + here.packet_bytes);
  }

  const PlantedHierarchy& truth_;
  Mapping mapping_;
  Random random_;
  std::uint64_t seed_;
  std::vector<PlantedTlbState> levels_;
};

}  // namespace

Result<std::unique_ptr<TimedPages>> PlantedTranslation::map(const Mapping& mapping) {
  const PlantedPlace& place = truth_.places[static_cast<std::size_t>(mapping.place)];
  if (!place.there) {
    return missing_capability("{}: there is no {}", truth_.facts.name, name_of(mapping.place));
  }
  if (mapping.piece_bytes % truth_.least_piece_bytes != 0) {
    return missing_capability("{}: no pieces of {} KiB are mapped, but multiples of {} KiB",
                              truth_.facts.name, mapping.piece_bytes >> 10U,
                              truth_.least_piece_bytes >> 10U);
  }
  return std::unique_ptr<TimedPages>(new PlantedPages(truth_, mapping, seed_));
}

Result<PlantedHierarchy> planted_hierarchy(std::string_view name) {
  if (name != "h200") {
    return invalid_input("planted translation '{}' is not known; there is h200", name);
  }
  PlantedHierarchy h200;
  h200.facts = {"planted:h200", "planted:h200, second card", 132, std::uint64_t{60} << 20U, 1.98e9};
  PlantedPlace& local = h200.places[0];
  local.there = true;
  local.pages = 49152;
  local.hit_cycles = 271;
  local.cold_cycles = 620;
  local.atomic_cycles = 290;
  local.tlbs = {{16, 1, 0, false, false, 14},
                {512, 1, 0, false, true, 110},
                {1024, 16, 8, false, false, 120}};
  local.bytes_per_second = 3.6e12;
  local.sm_bytes_per_second = 6e10;
  local.atomics_per_second = 2.4e9;
  local.walks_per_second = 5e9;
  PlantedPlace& peer = h200.places[1];
  peer = local;
  peer.hit_cycles = 1663;
  peer.cold_cycles = 2010;
  peer.cached_here = false;
  peer.atomic_cycles = 1700;
  peer.tlbs[1].miss_cycles = 100;
  peer.tlbs[2].miss_cycles = 60;
  peer.bytes_per_second = 4.2e11;
  peer.sm_bytes_per_second = 1.2e10;
  peer.packet_bytes = 32;
  peer.atomics_per_second = 3e8;
  peer.walks_per_second = 2e9;
  PlantedPlace& host = h200.places[2];
  host = peer;
  host.pages = 2048;
  host.hit_cycles = 2100;
  host.cold_cycles = 2500;
  host.atomic_cycles = 2300;
  host.bytes_per_second = 5.3e10;
  host.sm_bytes_per_second = 4e9;
  host.packet_bytes = 24;
  host.atomics_per_second = 1e7;
  host.walks_per_second = 1e9;
  return h200;
}

}  // namespace demarc::probe
