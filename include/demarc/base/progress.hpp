// Progress of anything that may take over two seconds. The library reports; who listens decides
// what to show.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace demarc {

// Called with the share done in [0, 1] and what is being done now. May be empty. Called from one
// thread at a time.
using Progress = std::function<void(double share, std::string_view what)>;

inline void report_progress(const Progress& progress, double share, std::string_view what) {
  if (progress) progress(share, what);
}

}  // namespace demarc
