// Progress of a step within the progress of the whole.
#pragma once

#include "demarc/base/progress.hpp"

namespace demarc::probe {

// What reports [0, 1] as [from, to]; empty where `progress` is.
inline Progress part_of(const Progress& progress, double from, double to) {
  if (!progress) return {};
  return [progress, from, to](double share, std::string_view what) {
    progress(from + (to - from) * share, what);
  };
}

}  // namespace demarc::probe
