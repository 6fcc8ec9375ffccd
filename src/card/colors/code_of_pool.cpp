// Makes the code that keeps to a share of a pool of this process.
#include "demarc/card/code_of_pool.hpp"

namespace demarc::cuda {

Result<ColoredCode> code_of_pool(const ColoredPool& pool, std::size_t share) {
  if (share >= pool.shares()) {
    return invalid_input("share {}: the pool has {}", share, pool.shares());
  }
  const ShareColors& colors = pool.colors(share);
  return ColoredCode(colors.place, colors.law, pool.arena().gpu()->compute_capability());
}

}  // namespace demarc::cuda
