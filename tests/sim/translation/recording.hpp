// What happens when in a simulation of a tiny application, for tests that compute by hand.
#pragma once

#include <gtest/gtest.h>

#include "tiny_application.hpp"
#include "translation/system.hpp"

namespace demarc::sim::translation {

inline constexpr std::uint32_t page_bytes = 4096;

// Numbers computed by hand are bare numbers.
using Cyclelist = std::vector<std::uint64_t>;

struct Recording {
  std::vector<Happening> told;
  Summary summary;

  // Cycles of all such moments.
  [[nodiscard]] Cyclelist of(Moment moment, std::uint32_t page) const {
    return of_each(moment, &Happening::page, PageNumber(page));
  }
  [[nodiscard]] Cyclelist ended(std::uint32_t wave) const {
    return of_each(Moment::access_ended, &Happening::wave, WaveSlot(wave));
  }
  [[nodiscard]] std::uint64_t cycles() const { return summary.cycles.raw(); }

 private:
  template <class T>
  [[nodiscard]] Cyclelist of_each(Moment moment, std::optional<T> Happening::*member,
                                  T wanted) const {
    Cyclelist cycles;
    for (const Happening& one : told) {
      if (one.moment == moment && one.*member == wanted) cycles.push_back(one.cycle.raw());
    }
    return cycles;
  }
};

inline Recording record(const Settings& settings, Architecture architecture,
                        const TinyApplication& application) {
  Recording recording;
  System system(settings, architecture, application,
                [&](const Happening& happening) { recording.told.push_back(happening); });
  const auto summary = system.run({});
  EXPECT_TRUE(summary) << summary.error().message;
  if (summary) recording.summary = *summary;
  return recording;
}

inline Settings one_gpu() {
  Settings settings;
  settings.gpus = 1;
  return settings;
}

// Pages lie on the GPUs in order from the start: page 0 on GPU 0, page 1 on GPU 1.
inline Settings two_gpus() {
  Settings settings;
  settings.gpus = 2;
  settings.placement = Placement::contiguous;
  return settings;
}

}  // namespace demarc::sim::translation
