// Writes a probed translation as text: the verdict, then a table for each place.
#include <algorithm>
#include <bit>

#include "demarc/base/text.hpp"
#include "translation_words.hpp"

namespace demarc::probe {
namespace {

template <class T>
std::string or_dash(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

void add_levels(std::string& out, const PlaceFinding& place) {
  const LevelFinding& found = place.levels;
  append(out, "  noise {:.2f} cycles; a rise below {:.1f} is not called a level\n",
         found.steps.noise_cycles, found.steps.least_cost);
  if (!found.levels.empty()) {
    out +=
        "  level   reach pages        reach   hit cycles  miss costs   all miss at  pages/entry"
        "    ways\n";
  }
  for (std::size_t i = 0; i < found.levels.size(); ++i) {
    const TlbLevel& level = found.levels[i];
    append(out, "  {:5} {:13} {:>12} {:12.0f} {:>11} {:13} {:>12} {:>7}\n", i + 1,
           level.reach_pages, size_text(level.reach_pages * place.mapping.page_bytes),
           level.hit_cycles,
           fmt::format("{}{:.0f}", level.miss_at_least ? ">=" : "", level.miss_cycles),
           level.full_pages, or_dash(level.pages_per_entry), or_dash(level.ways));
  }
  for (std::size_t i = 0; i < found.levels.size(); ++i) {
    const TlbLevel& level = found.levels[i];
    if (level.entry_reason.empty()) continue;
    append(out, "  level {}: entries: {}; ways: {}\n", i + 1, level.entry_reason, level.way_reason);
  }
  out += "  cycles per access over the number of pages\n";
  for (const CurvePoint& point : found.curve) {
    if (!std::has_single_bit(point.pages) && &point != &found.curve.back()) continue;
    append(out, "  {:12} {:>10} {:9.1f}\n", point.pages,
           size_text(point.pages * place.mapping.page_bytes), point.cycles);
  }
}

void add_walks(std::string& out, const PlaceFinding& place) {
  out += "  one line of random pages, all SMs: pages, G reads/s\n";
  for (const AccessRate& rate : place.walks->rates) {
    if (!std::has_single_bit(rate.traffic.pages) && &rate != &place.walks->rates.back()) continue;
    append(out, "  {:12} {:>10} {:9.2f}\n", rate.traffic.pages,
           size_text(rate.traffic.pages * place.mapping.page_bytes),
           rate.accesses_per_second * 1e-9);
  }
}

void add_rates(std::string& out, const RateTable& rates) {
  const std::size_t sizes = rates.by_size.size() / 2;
  out += "  all SMs, GB/s by bytes of an access    reads   writes\n";
  for (std::size_t i = 0; i < sizes; ++i) {
    append(out, "  {:12} {:32.1f} {:8.1f}\n", rates.by_size[i].traffic.access_bytes,
           rates.by_size[i].bytes_per_second() * 1e-9,
           rates.by_size[i + sizes].bytes_per_second() * 1e-9);
  }
  out += "  reads of 512 bytes, GB/s by SMs\n";
  for (const AccessRate& rate : rates.by_sms) {
    append(out, "  {:12} {:32.1f}\n", rate.traffic.sms, rate.bytes_per_second() * 1e-9);
  }
  for (const AccessRate& rate : rates.atomics) {
    append(out, "  {:<24} {:20.4f} G/s\n", name_of(rate.traffic.kind),
           rate.accesses_per_second * 1e-9);
  }
}

}  // namespace

std::string translation_to_text(const TranslationReport& report) {
  std::string out = fmt::format("translation of {}", report.facts.name);
  if (!report.facts.peer.empty()) append(out, ", peer {}", report.facts.peer);
  append(out, ": {} places measured in {:.1f} s\n",
         std::count_if(report.places.begin(), report.places.end(),
                       [](const PlaceFinding& place) { return place.not_measured.empty(); }),
         report.seconds);
  for (const std::string& sentence : report.verdict) append(out, "  {}\n", sentence);
  for (const PlaceFinding& place : report.places) {
    if (!place.not_measured.empty()) continue;
    append(out, "\n{}, {} in all\n", mapping_text(place.mapping), size_text(place.bytes));
    add_levels(out, place);
    if (place.caching) {
      append(out, "  first access {:.0f} cycles, second {:.0f}, atomic {}\n",
             place.caching->first_cycles, place.caching->again_cycles,
             place.caching->atomic_cycles ? fmt::format("{:.0f}", *place.caching->atomic_cycles)
                                          : std::string("-"));
    }
    if (place.walks) add_walks(out, place);
    if (place.rates) add_rates(out, *place.rates);
  }
  return out;
}

}  // namespace demarc::probe
