// Tells another process what it needs to use a share of a pool.
#include "demarc/guest/lent_share.hpp"
#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {

Result<LentShare> ColoredPool::lend(std::size_t share) const {
  if (share >= shares_.size()) {
    return invalid_input("share {}: the pool has {}", share, shares_.size());
  }
  if (arena_.lending() == Lending::none) {
    return invalid_input("share {}: the pages of the pool were not made to be lent", share);
  }
  const ShareColors& colors = shares_[share].colors;
  const ColoredUsage& usage = shares_[share].usage;
  if (usage.used_bytes + usage.wasted_bytes != 0) {
    return invalid_input("share {} cannot be lent: buffers of this process use {} bytes of it",
                         share, usage.used_bytes + usage.wasted_bytes);
  }
  LentShare lent;
  lent.card = arena_.gpu()->uuid();
  lent.page_bytes = arena_.page_bytes();
  lent.pages = arena_.pages();
  lent.bytes = usage.capacity_bytes;
  lent.law = colors.law;
  lent.patterns_at = colors.placed.patterns;
  lent.places_at = colors.placed.places;
  return lent;
}

}  // namespace demarc::cuda
