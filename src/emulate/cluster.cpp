// Numbers the blocks of a cluster and holds them at its barrier.
#include "cluster.hpp"

#include <bit>

#include "groups.hpp"

namespace demarc::emulate {

std::uint32_t ClusterShape::rank(const std::array<std::uint32_t, 3>& block) const {
  return (block[2] % blocks[2] * blocks[1] + block[1] % blocks[1]) * blocks[0] +
         block[0] % blocks[0];
}

std::uint64_t ClusterShape::cluster(const std::array<std::uint32_t, 3>& block,
                                    const std::array<std::uint32_t, 3>& grid) const {
  const std::uint64_t across = grid[0] / blocks[0];
  const std::uint64_t down = grid[1] / blocks[1];
  return (block[2] / blocks[2] * down + block[1] / blocks[1]) * across + block[0] / blocks[0];
}

std::uint64_t ClusterShape::span(const std::array<std::uint32_t, 3>& grid) const {
  return (std::uint64_t{blocks[2] - 1} * grid[1] + blocks[1] - 1) * grid[0] + blocks[0];
}

bool Cluster::end(std::uint32_t rank) {
  for (Warp& warp : blocks_[rank]->warps) {
    if (warp.state != WarpState::done) leave(warp, warp.live);
  }
  blocks_[rank] = nullptr;
  return ++ended_ == blocks_.size();
}

void Cluster::arrive(std::uint32_t threads) {
  arrived_ += threads;
  if (arrived_ >= threads_) complete();
}

// A thread that has arrived and ends before the others have is waited for no more, and counts no
// more.
void Cluster::leave(Warp& warp, std::uint32_t lanes) {
  threads_ -= static_cast<std::uint32_t>(std::popcount(lanes));
  arrived_ -= static_cast<std::uint32_t>(std::popcount(lanes & warp.cluster_pending));
  if (arrived_ != 0 && arrived_ >= threads_) complete();
}

void Cluster::order_all() {
  for (Block* block : blocks_) {
    if (block != nullptr) block->next_epoch();
  }
}

void Cluster::complete() {
  arrived_ = 0;
  order_all();
  for (Block* block : blocks_) {
    if (block == nullptr) continue;
    for (Warp& warp : block->warps) {
      warp.cluster_pending = 0;
      for (Group& group : warp.groups) {
        if (group.wait == Wait::cluster) group.stop_waiting();
      }
      unite(warp);
      if (warp.state == WarpState::waiting && !warp.waits_whole()) warp.state = WarpState::ready;
    }
  }
}

}  // namespace demarc::emulate
