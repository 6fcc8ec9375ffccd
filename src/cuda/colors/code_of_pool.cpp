// Makes the code that keeps to a share of a pool of this process.
#include "demarc/cuda/colored_code.hpp"

namespace demarc::cuda {

Result<ColoredCode> ColoredCode::of(const ColoredPool& pool, std::size_t share) {
  if (share >= pool.shares()) {
    return invalid_input("share {}: the pool has {}", share, pool.shares());
  }
  DEMARC_TRY(const ShareColors colors, pool.only_region(share));
  return ColoredCode(colors.place, colors.law, pool.arena().gpu()->compute_capability());
}

}  // namespace demarc::cuda
