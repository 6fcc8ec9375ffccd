#include "ops/cluster.hpp"

#include <bit>

namespace demarc::emulate {

namespace cluster_ops {

const MicroOp* arrive(Warp& w, const MicroOp* op) {
  ++w.barriers;
  w.cluster_phase = w.block->cluster->phase();
  w.block->cluster->arrive(static_cast<std::uint32_t>(std::popcount(w.mask)));
  return op + 1;
}

const MicroOp* wait(Warp& w, const MicroOp* op) {
  if (w.block->cluster->phase() != w.cluster_phase) return op + 1;
  w.resume = static_cast<std::uint32_t>(op + 1 - w.program->code.data());
  w.state = WarpState::cluster_barrier;
  return nullptr;
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

std::uint64_t map_to_rank(LaneInput& lane, const LaneDetails&) {
  return ((lane.in[1] + 1) << shared_rank_shift) | (lane.in[0] & (shared_rank_unit - 1));
}

std::uint64_t map_generic_to_rank(LaneInput& lane, const LaneDetails& details) {
  return shared_window + map_to_rank(lane, details);
}

std::uint64_t rank_of(LaneInput& lane, const LaneDetails&) {
  const std::uint64_t rank = (lane.in[0] & (shared_window - 1)) >> shared_rank_shift;
  return rank == 0 ? lane.in[1] : rank - 1;
}

}  // namespace lane

}  // namespace demarc::emulate
