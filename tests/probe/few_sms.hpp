#pragma once

#include "demarc/probe/slices.hpp"

namespace demarc::probe {

// Enough to tell the planted slices apart.
inline SliceOptions few_sms() {
  SliceOptions options;
  options.sms = 12;
  return options;
}

}  // namespace demarc::probe
