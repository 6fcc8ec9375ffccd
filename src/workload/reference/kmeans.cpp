// Computes what the two kernels of k-means must give.
#include <cmath>
#include <limits>

#include "references.hpp"

namespace demarc::workload {

void invert_mapping_reference(const ReferenceCall& call) {
  const std::size_t points = call.parameter("points");
  const std::size_t features = call.parameter("features");
  const auto in = call.floats("in");
  const auto out = call.floats("out");
  for (std::size_t p = 0; p < points; ++p) {
    for (std::size_t f = 0; f < features; ++f) out[p + points * f] = in[p * features + f];
  }
}

void kmeans_full_reference(const ReferenceCall& call) {
  invert_mapping_reference(call);
  const std::size_t points = call.parameter("points");
  const std::size_t features = call.parameter("features");
  const auto in = call.floats("in");
  const auto centres = call.floats("centres");
  const auto membership = call.buffer<std::int32_t>("membership");
  for (std::size_t p = 0; p < points; ++p) {
    float least = std::numeric_limits<float>::max();
    for (std::size_t c = 0; c < call.parameter("clusters"); ++c) {
      float distance = 0;
      for (std::size_t f = 0; f < features; ++f) {
        const float difference = in[p * features + f] - centres[c * features + f];
        // Compilers of device code contract this; near ties are decided alike only if we do too.
        distance = std::fma(difference, difference, distance);
      }
      if (distance < least) {
        least = distance;
        membership[p] = static_cast<std::int32_t>(c);
      }
    }
  }
}

}  // namespace demarc::workload
