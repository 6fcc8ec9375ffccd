// Writes a probed translation as JSON. What was not seen is null, with the reason beside it.
#include "demarc/base/json.hpp"
#include "demarc/base/version.hpp"
#include "translation_words.hpp"

namespace demarc::probe {
namespace {

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json level_json(const TlbLevel& level, std::uint64_t page_bytes) {
  return {{"reach_pages", level.reach_pages},
          {"reach_bytes", level.reach_pages * page_bytes},
          {"all_miss_pages", level.full_pages},
          {"hit_cycles", level.hit_cycles},
          {"miss_cycles", level.miss_cycles},
          {"miss_at_least", level.miss_at_least},
          {"sharp", level.sharp},
          {"pages_per_entry", known(level.pages_per_entry)},
          {"pages_per_entry_reason", level.entry_reason},
          {"ways", known(level.ways)},
          {"ways_reason", level.way_reason}};
}

Json levels_json(const PlaceFinding& place) {
  Json curve = Json::array();
  for (const CurvePoint& point : place.levels.curve) {
    curve.push_back(
        {{"pages", point.pages}, {"cycles", point.cycles}, {"spread_cycles", point.spread}});
  }
  Json levels = Json::array();
  for (const TlbLevel& level : place.levels.levels) {
    levels.push_back(level_json(level, place.mapping.page_bytes));
  }
  return {{"base_cycles", place.levels.steps.base_cycles},
          {"noise_cycles", place.levels.steps.noise_cycles},
          {"least_cost_cycles", place.levels.steps.least_cost},
          {"levels", std::move(levels)},
          {"curve", std::move(curve)}};
}

Json rates_json(std::span<const AccessRate> rates) {
  Json list = Json::array();
  for (const AccessRate& rate : rates) {
    list.push_back({{"kind", name_of(rate.traffic.kind)},
                    {"access_bytes", rate.traffic.access_bytes},
                    {"sms", rate.traffic.sms},
                    {"pages", rate.traffic.pages},
                    {"accesses_per_second", rate.accesses_per_second},
                    {"bytes_per_second", rate.bytes_per_second()}});
  }
  return list;
}

Json walks_json(const WalkFinding& walks) {
  return {{"at_least_per_second", known(walks.walks_per_second)},
          {"reason", walks.reason},
          {"full_rate_pages", walks.reach_pages},
          {"rates", rates_json(walks.rates)}};
}

Json caching_json(const CachingFinding& caching) {
  return {{"first_cycles", caching.first_cycles},
          {"again_cycles", caching.again_cycles},
          {"atomic_cycles", known(caching.atomic_cycles)},
          {"kept_in_own_l2", known(caching.kept_in_own_l2)},
          {"reason", caching.reason}};
}

Json place_json(const PlaceFinding& place) {
  Json json{
      {"place", name_of(place.mapping.place)},
      {"piece_bytes", place.mapping.piece_bytes == 0 ? Json() : Json(place.mapping.piece_bytes)},
      {"page_bytes", place.mapping.page_bytes},
      {"measured", place.not_measured.empty()}};
  if (!place.not_measured.empty()) {
    json["reason"] = place.not_measured;
    return json;
  }
  json["bytes"] = place.bytes;
  json["tlbs"] = levels_json(place);
  if (place.walks) json["page_walks"] = walks_json(*place.walks);
  if (place.caching) json["l2"] = caching_json(*place.caching);
  if (place.rates) {
    json["rates"] = {{"by_access_size", rates_json(place.rates->by_size)},
                     {"by_sms", rates_json(place.rates->by_sms)},
                     {"atomics", rates_json(place.rates->atomics)},
                     {"no_atomics_reason",
                      place.rates->no_atomics.empty() ? Json() : Json(place.rates->no_atomics)}};
  }
  return json;
}

}  // namespace

std::string translation_to_json(const TranslationReport& report) {
  Json places = Json::array();
  for (const PlaceFinding& place : report.places) places.push_back(place_json(place));
  const Json json{
      {"schema", translation_schema},
      {"version", version()},
      {"revision", revision()},
      {"device", report.facts.name},
      {"peer", report.facts.peer.empty() ? Json() : Json(report.facts.peer)},
      {"sms", report.facts.sms},
      {"l2_bytes", report.facts.l2_bytes},
      {"sm_clock_hz", report.facts.sm_clock_hz == 0 ? Json() : Json(report.facts.sm_clock_hz)},
      {"seed", report.seed},
      {"seconds", report.seconds},
      {"failure", report.failure.empty() ? Json() : Json(report.failure)},
      {"verdict", report.verdict},
      {"places", std::move(places)}};
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::probe
