// Describes a small planted card: 12 TPCs in four GPCs, on two L2 sides.
#include "fake_gpu.hpp"

namespace demarc::fake {

FakeConfig small_gpu() {
  FakeConfig config;
  // Logical order goes round the GPCs, as on the H100.
  constexpr std::uint32_t gpc_of[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 3};
  constexpr std::uint32_t slot[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 2};
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    config.gpc[t] = gpc_of[t];
    config.bit[t] = 9 * gpc_of[t] + slot[t];
    config.side[t] = gpc_of[t] == 1 ? 1 : 0;
  }
  return config;
}

}  // namespace demarc::fake
