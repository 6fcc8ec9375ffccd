// A planted card of few pages, so that tests of the probe of translation are quick.
#pragma once

#include "demarc/probe/tlb_levels.hpp"
#include "planted_translation.hpp"

namespace demarc::test {

// Local memory alone: `pages` pages behind `tlbs`, read at 270 cycles.
inline probe::PlantedHierarchy small_hierarchy(std::vector<probe::PlantedTlb> tlbs,
                                               std::uint64_t pages) {
  probe::PlantedHierarchy truth;
  truth.facts = {"small card", "", 4, std::uint64_t{64} << 20U, 1e9};
  probe::PlantedPlace& local = truth.places[0];
  local.there = true;
  local.pages = pages;
  local.hit_cycles = 270;
  local.cold_cycles = 600;
  local.atomic_cycles = 300;
  local.tlbs = std::move(tlbs);
  local.bytes_per_second = 4e11;
  local.sm_bytes_per_second = 2e11;
  local.atomics_per_second = 2e9;
  local.walks_per_second = 1e9;
  return truth;
}

inline probe::LevelOptions quick_levels() {
  return {.max_lines = 1U << 20U,
          .least_visits = 1024,
          .repeats = 3,
          .least_cost = 3,
          .entries = false};
}

// What is found of it.
inline probe::LevelFinding levels_of(const probe::PlantedHierarchy& truth, std::uint64_t seed,
                                     const probe::LevelOptions& options = quick_levels()) {
  constexpr std::uint64_t page = std::uint64_t{2} << 20U;
  probe::PlantedTranslation card(truth, seed);
  const auto memory = card.map({probe::MemoryPlace::local, page, page}).value();
  Random random(seed);
  return probe::find_tlb_levels(*memory, options, random, {}).value();
}

}  // namespace demarc::test
