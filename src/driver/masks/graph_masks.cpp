// Keeps the masks of executable graphs from their first launch on.
#include "demarc/driver/graph_masks.hpp"

namespace demarc::cuda {

GraphMasks::Kept GraphMasks::at_launch(const void* graph, const HardwareMask& wanted) {
  Kept kept;
  if (graphs_.find(graph, kept.mask)) return kept;
  kept.mask = wanted;
  if (graphs_.set(graph, wanted)) return kept;
  const std::scoped_lock lock(crowded_mutex_);
  if (!crowded_) crowded_mask_ = wanted;
  crowded_ = true;
  changed_since_ |= crowded_mask_ != wanted;
  kept.known = !changed_since_;
  return kept;
}

}  // namespace demarc::cuda
