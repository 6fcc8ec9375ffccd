// Names and sums what the launch callback counts.
#include "demarc/driver/launch_counters.hpp"

namespace demarc::cuda {

const char* to_string(LaunchPath path) {
  switch (path) {
    case LaunchPath::default_stream:
      return "default stream";
    case LaunchPath::stream:
      return "stream";
    case LaunchPath::graph:
      return "graph";
    case LaunchPath::copy_or_fill:
      return "copy or fill";
    case LaunchPath::unknown:
      break;
  }
  return "unknown";
}

std::uint64_t LaunchCounters::seen() const {
  std::uint64_t sum = 0;
  for (std::size_t p = 0; p < launch_paths; ++p) sum += unmasked[p] + masked[p] + refused[p];
  return sum;
}

}  // namespace demarc::cuda
