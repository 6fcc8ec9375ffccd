// Blocks that run side by side, reach each other's shared memory and wait for each other.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace demarc::emulate {

class Block;
struct Warp;

// Addresses of shared memory: below `shared_rank_unit` that of the block itself, above it those of
// the blocks of its cluster, by rank.
inline constexpr unsigned shared_rank_shift = 24;
inline constexpr std::uint64_t shared_rank_unit = std::uint64_t{1} << shared_rank_shift;

// How clusters divide a grid.
struct ClusterShape {
  std::array<std::uint32_t, 3> blocks{1, 1, 1};

  [[nodiscard]] std::uint32_t size() const { return blocks[0] * blocks[1] * blocks[2]; }
  // For a block of the grid: its place in its cluster, and its cluster's number.
  [[nodiscard]] std::uint32_t rank(const std::array<std::uint32_t, 3>& block) const;
  [[nodiscard]] std::uint64_t cluster(const std::array<std::uint32_t, 3>& block,
                                      const std::array<std::uint32_t, 3>& grid) const;
  // Blocks of the grid from the first of a cluster to its last one.
  [[nodiscard]] std::uint64_t span(const std::array<std::uint32_t, 3>& grid) const;
};

class Cluster {
 public:
  Cluster(std::uint32_t blocks, std::uint64_t threads) : blocks_(blocks), threads_(threads) {}

  void begin(std::uint32_t rank, Block& block) { blocks_[rank] = &block; }
  // The block has ended, and with it what is left of its threads. True: it was the last block.
  bool end(std::uint32_t rank);
  // Null: it has not begun, or has ended, or there is none of that rank.
  [[nodiscard]] Block* block(std::uint64_t rank) const {
    return rank < blocks_.size() ? blocks_[rank] : nullptr;
  }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }

  // The barrier of all threads that have not ended.
  void arrive(std::uint32_t threads);
  void leave(Warp& warp, std::uint32_t lanes);

  // For race checks, everything before is ordered before everything after.
  void order_all();

 private:
  void complete();

  std::vector<Block*> blocks_;  // by rank
  std::uint32_t ended_ = 0;
  std::uint64_t threads_;  // that have not ended
  std::uint64_t arrived_ = 0;
};

}  // namespace demarc::emulate
