// A small machine on which small inputs miss the TLBs as large ones do on a large one.
#pragma once

#include "demarc/sim/translation/settings.hpp"

namespace demarc::sim::translation {

inline Settings small_machine() {
  Settings settings;
  settings.megabytes = 4;
  settings.cus = 12;
  settings.l2_tlb_sets = 8;
  return settings;
}

}  // namespace demarc::sim::translation
