// Computes what kernels that sort, count and move must give.
#include <algorithm>

#include "references.hpp"

namespace demarc::workload {

void bitonic_reference(const ReferenceCall& call) {
  const auto keys = call.words("keys");
  std::sort(keys.begin(), keys.end());
}

void histogram_reference(const ReferenceCall& call) {
  const auto counts = call.words("counts");
  for (const std::uint8_t byte : call.buffer<std::uint8_t>("words")) ++counts[byte];
}

void transpose_reference(const ReferenceCall& call) {
  const std::size_t width = call.parameter("width");
  const std::size_t height = call.parameter("height");
  const auto in = call.words("in");
  const auto out = call.words("out");
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) out[x * height + y] = in[y * width + x];
  }
}

}  // namespace demarc::workload
