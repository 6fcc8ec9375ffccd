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

// A copy is counted before it is seen, so there can be more of them for a moment.
std::uint64_t LaunchCounters::seen_of_program() const {
  const std::uint64_t all = seen();
  const std::uint64_t copies = colored.copies;
  return all > copies ? all - copies : 0;
}

}  // namespace demarc::cuda
