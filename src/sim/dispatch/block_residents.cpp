// Adds thread blocks to the SMs, each with a state of its own, by the rules of May 2020.
#include "dispatch/block_residents.hpp"

#include <algorithm>

namespace demarc::sim {

KernelIndex BlockResidents::some_kernel() const {
  const auto first = std::find_if(blocks_.begin(), blocks_.end(),
                                  [](const auto& blocks) { return !blocks.empty(); });
  return first->front().kernel;
}

std::uint64_t BlockResidents::add(std::span<const SmIndex> sms, KernelIndex kernel, TbTicks tick,
                                  float work) {
  std::uint64_t together = 0;
  for (std::size_t i = 0; i < sms.size(); ++i) {
    blocks_[sms[i].raw()].push_back({kernel, work, tick});
    together += i > 0 && sms[i] == sms[i - 1] ? std::uint64_t{1} : std::uint64_t{0};
  }
  count_ += sms.size();
  return together;
}

}  // namespace demarc::sim
