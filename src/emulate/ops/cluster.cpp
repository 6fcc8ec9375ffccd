// Carries out barriers, numbers and shared addresses between the blocks of a cluster.
#include "ops/cluster.hpp"

#include <algorithm>
#include <bit>

#include "groups.hpp"

namespace demarc::emulate {

namespace {

const MicroOp* misused(Warp& w, const MicroOp* op, Mask lanes, std::string_view what) {
  return w.block->stop_with(w, op, static_cast<unsigned>(std::countr_zero(lanes)),
                            FindingKind::barrier_divergence, fmt::format("the thread {}", what));
}

}  // namespace

namespace cluster_ops {

const MicroOp* arrive(Warp& w, const MicroOp* op) {
  ++w.barriers;
  if ((w.cluster_arrived & w.mask) != 0)
    return misused(w, op, w.cluster_arrived & w.mask, "arrives again without a wait in between");
  w.cluster_arrived |= w.mask;
  w.cluster_pending |= w.mask;
  w.block->cluster->arrive(static_cast<std::uint32_t>(std::popcount(w.mask)));
  return op + 1;
}

const MicroOp* wait(Warp& w, const MicroOp* op) {
  if ((w.mask & ~w.cluster_arrived) != 0)
    return misused(w, op, w.mask & ~w.cluster_arrived, "waits without having arrived");
  w.cluster_arrived &= ~w.mask;
  if ((w.mask & w.cluster_pending) == 0) return op + 1;
  park(w, index_of(w, op), w.mask, Wait::cluster);
  return next_group(w);
}

const MicroOp* read_block_in_cluster(Warp& w, const MicroOp* op) {
  *w.at<std::uint64_t>(op->d) = w.block->index[op->imm] % w.program->cluster.blocks[op->imm];
  return op + 1;
}

const MicroOp* read_cluster(Warp& w, const MicroOp* op) {
  *w.at<std::uint64_t>(op->d) = w.block->index[op->imm] / w.program->cluster.blocks[op->imm];
  return op + 1;
}

const MicroOp* read_rank(Warp& w, const MicroOp* op) {
  *w.at<std::uint64_t>(op->d) = w.program->cluster.rank(w.block->index);
  return op + 1;
}

}  // namespace cluster_ops

namespace lane {

// A rank that no cluster has stays one, in 32 bits too.
std::uint64_t map_to_rank(LaneInput& lane, const LaneDetails&) {
  constexpr std::uint64_t none = 254;
  const std::uint64_t rank = std::min(lane.in[1], none);
  return ((rank + 1) << shared_rank_shift) | (lane.in[0] & (shared_rank_unit - 1));
}

// Of what is not shared memory: 0, which leads nowhere.
std::uint64_t map_generic_to_rank(LaneInput& lane, const LaneDetails& details) {
  if (lane.in[0] - shared_window >= window_bytes) return 0;
  return shared_window + map_to_rank(lane, details);
}

std::uint64_t rank_of(LaneInput& lane, const LaneDetails&) {
  const std::uint64_t rank = (lane.in[0] & (shared_window - 1)) >> shared_rank_shift;
  return rank == 0 ? lane.in[1] : rank - 1;
}

}  // namespace lane

}  // namespace demarc::emulate
