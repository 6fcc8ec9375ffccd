// What a block does with the others of its cluster.
#pragma once

#include "lanes/functions.hpp"
#include "machine.hpp"

namespace demarc::emulate {

namespace cluster_ops {
const MicroOp* arrive(Warp& w, const MicroOp* op);
const MicroOp* wait(Warp& w, const MicroOp* op);
// d, uniform: the block's place in its cluster, the cluster's place in the grid (imm: the axis), or
// the block's rank.
const MicroOp* read_block_in_cluster(Warp& w, const MicroOp* op);
const MicroOp* read_cluster(Warp& w, const MicroOp* op);
const MicroOp* read_rank(Warp& w, const MicroOp* op);
}  // namespace cluster_ops

namespace lane {
// The address of `in[0]` in the shared memory of the block of rank `in[1]`.
std::uint64_t map_to_rank(LaneInput& lane, const LaneDetails& details);
std::uint64_t map_generic_to_rank(LaneInput& lane, const LaneDetails& details);
// The rank of the block in whose shared memory `in[0]` lies; `in[1]` is that of the block itself.
std::uint64_t rank_of(LaneInput& lane, const LaneDetails& details);
}  // namespace lane

}  // namespace demarc::emulate
