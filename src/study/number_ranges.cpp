// Writes ascending numbers as ranges.
#include "number_ranges.hpp"

#include "demarc/base/text.hpp"

namespace demarc::study {

std::string number_ranges(std::span<const gpu::SmIndex> ascending) {
  std::string out;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!out.empty()) out += ", ";
    append(out, "{}", ascending[i]);
    if (last != i) append(out, "-{}", ascending[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace demarc::study
