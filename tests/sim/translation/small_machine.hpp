// Small inputs, and a machine on which they miss the TLBs as large ones do on a large one.
#pragma once

#include <gtest/gtest.h>

#include "demarc/sim/translation/simulate.hpp"

namespace demarc::sim::translation {

inline Settings one_megabyte() {
  Settings settings;
  settings.megabytes = 1;
  return settings;
}

inline Settings small_machine() {
  Settings settings;
  settings.megabytes = 4;
  settings.cus = 12;
  settings.l2_tlb_sets = 8;
  return settings;
}

inline Summary run_application(const Settings& settings, Architecture architecture,
                               std::string_view name) {
  const auto application = make_application(name, settings);
  const auto summary = simulate(settings, architecture, **application);
  EXPECT_TRUE(summary) << summary.error().message;
  return *summary;
}

}  // namespace demarc::sim::translation
