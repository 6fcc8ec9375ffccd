// A card small enough to be fitted in a second, and fits of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/study/calibrate.hpp"

namespace demarc::study {

// A GTX 1080 of so many SMs, in two GPCs or more, with 256 KiB of L2 in two slices.
inline gpu::Device tiny_card(std::uint32_t sms = 2) {
  gpu::Device card = gpu::find_device("gtx1080").value();
  card.name = "tiny";
  card.sm.threads = 1024;
  card.l2.size_bytes = std::uint64_t{256} << 10U;
  card.l2.slices = card.address_map->slices = card.dram.channels = 2;
  card.dram.bandwidth_bytes_per_s /= 4;
  card.address_map->module.rows.resize(1);
  card.memory_system->miss_registers = 128;
  card.address_map->set = {};
  card.topology.tpcs.clear();
  for (std::uint32_t sm = 0; sm < sms; ++sm) {
    gpu::Tpc tpc;
    tpc.gpc = gpu::GpcIndex(sms == 2 ? sm : sm / 2);
    tpc.sms = {gpu::SmIndex(sm)};
    card.topology.tpcs.push_back(tpc);
  }
  return card;
}

inline FigureSet figures_of(const gpu::Device& card) {
  auto figures = simulate_figures(card, card, {}, {});
  EXPECT_TRUE(figures) << figures.error().message;
  figures->date = "2026-11-25";
  return std::move(*figures);
}

// The named ones alone.
inline FigureSet only(FigureSet set, const std::vector<std::string>& names) {
  std::erase_if(set.figures, [&](const Figure& figure) {
    return std::find(names.begin(), names.end(), figure.name) == names.end();
  });
  return set;
}

inline const Figure& figure(const FigureSet& set, std::string_view name) {
  for (const Figure& one : set.figures) {
    if (one.name == name) return one;
  }
  throw std::out_of_range("no figure " + std::string(name));
}

inline const FittedParameter& parameter(const Calibration& found, std::string_view name) {
  for (const FittedParameter& one : found.fitted) {
    if (one.name == name) return one;
  }
  throw std::out_of_range("no parameter " + std::string(name));
}

}  // namespace demarc::study
