// Reads, checks and writes the section "address_translation" of a device description.
#include "address_translation_json.hpp"

#include <bit>

namespace demarc::gpu {
namespace {

constexpr std::int64_t max_entries = std::int64_t{1} << 20;
constexpr std::int64_t max_pages_per_entry = 4096;
constexpr std::int64_t max_walkers = 65535;
constexpr std::size_t max_levels = 4;

// Who shares a level: "sm" or "gpu".
constexpr std::string_view one_sm = "sm";
constexpr std::string_view whole_gpu = "gpu";

Result<TranslationLevel> level_from_json(JsonObject object) {
  TranslationLevel level;
  DEMARC_TRY(const std::int64_t entries, object.integer("entries", 1, max_entries));
  level.entries = static_cast<std::uint32_t>(entries);
  DEMARC_TRY(const std::int64_t pages, object.integer("pages_per_entry", 1, max_pages_per_entry));
  level.pages_per_entry = static_cast<std::uint32_t>(pages);
  if (!std::has_single_bit(level.pages_per_entry)) {
    return invalid_input("{}.pages_per_entry: {} is not a power of two", object.where(), pages);
  }
  DEMARC_TRY(level.hit_cycles, object.number("hit_cycles"));
  DEMARC_TRY(const std::string shared, object.string("shared_by"));
  if (shared != one_sm && shared != whole_gpu) {
    return invalid_input("{}.shared_by: '{}' must be '{}' (each SM has such a TLB) or '{}'",
                         object.where(), shared, one_sm, whole_gpu);
  }
  level.per_sm = shared == one_sm;
  DEMARC_CHECK(object.finish());
  if (level.hit_cycles < 0) {
    return invalid_input("{}.hit_cycles: {} must be 0 or more", object.where(), level.hit_cycles);
  }
  return level;
}

// A level is asked after the one before it, so it is slower, reaches further, and is shared by at
// least as many SMs.
Result<void> check_behind(const TranslationLevel& level, const TranslationLevel& before,
                          const std::string& where) {
  if (level.hit_cycles < before.hit_cycles) {
    return invalid_input("{}.hit_cycles: {} are fewer than the {} of the level before it", where,
                         level.hit_cycles, before.hit_cycles);
  }
  if (level.pages_per_entry < before.pages_per_entry) {
    return invalid_input("{}.pages_per_entry: {} are fewer than the {} of the level before it",
                         where, level.pages_per_entry, before.pages_per_entry);
  }
  if (level.reach_pages() <= before.reach_pages()) {
    return invalid_input("{}.entries: {} pages are not more than the {} of the level before it",
                         where, level.reach_pages(), before.reach_pages());
  }
  if (level.per_sm && !before.per_sm) {
    return invalid_input("{}.shared_by: the level before it is shared by all SMs, so this one is",
                         where);
  }
  return {};
}

}  // namespace

Result<AddressTranslation> address_translation_from_json(JsonObject object) {
  AddressTranslation translation;
  DEMARC_TRY(translation.source, object.string("source"));
  DEMARC_TRY(const Json* levels, object.array("levels"));
  if (levels->empty() || levels->size() > max_levels) {
    return invalid_input("{}.levels: {} levels of TLBs; 1 to {} can be described", object.where(),
                         levels->size(), max_levels);
  }
  for (std::size_t i = 0; i < levels->size(); ++i) {
    const std::string where = fmt::format("{}.levels[{}]", object.where(), i);
    DEMARC_TRY(JsonObject entry, JsonObject::of((*levels)[i], where));
    DEMARC_TRY(const TranslationLevel level, level_from_json(std::move(entry)));
    if (i > 0) DEMARC_CHECK(check_behind(level, translation.levels.back(), where));
    translation.levels.push_back(level);
  }
  DEMARC_TRY(const std::int64_t walkers, object.integer("walkers", 1, max_walkers));
  translation.walkers = static_cast<std::uint32_t>(walkers);
  DEMARC_TRY(translation.walk_cycles, object.number("walk_cycles"));
  if (translation.walk_cycles <= 0) {
    return invalid_input("{}.walk_cycles: {} must be above 0", object.where(),
                         translation.walk_cycles);
  }
  DEMARC_TRY(const std::int64_t bytes, object.integer("entry_bytes", 1, 128));
  translation.entry_bytes = static_cast<std::uint32_t>(bytes);
  if (!std::has_single_bit(translation.entry_bytes)) {
    return invalid_input("{}.entry_bytes: {} is not a power of two", object.where(), bytes);
  }
  DEMARC_CHECK(object.finish());
  return translation;
}

Json address_translation_to_json(const AddressTranslation& translation) {
  Json levels = Json::array();
  for (const TranslationLevel& level : translation.levels) {
    levels.push_back({{"entries", level.entries},
                      {"pages_per_entry", level.pages_per_entry},
                      {"hit_cycles", level.hit_cycles},
                      {"shared_by", level.per_sm ? one_sm : whole_gpu}});
  }
  return Json{{"source", translation.source},
              {"levels", std::move(levels)},
              {"walkers", translation.walkers},
              {"walk_cycles", translation.walk_cycles},
              {"entry_bytes", translation.entry_bytes}};
}

}  // namespace demarc::gpu
