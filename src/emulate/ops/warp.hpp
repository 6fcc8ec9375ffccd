// Micro-ops between the lanes of a warp: shuffles, votes, matches, reductions.
#pragma once

#include <vector>

#include "machine.hpp"

namespace demarc::emulate {

enum class WarpOperation : std::uint8_t {
  shuffle_up,
  shuffle_down,
  shuffle_butterfly,
  shuffle_index,
  vote_all,
  vote_any,
  vote_uniform,
  vote_ballot,
  match_any,
  match_all,
  active_mask,
  elect,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor,
  synchronize  // nothing is exchanged
};

struct WarpDetails {
  WarpOperation operation = WarpOperation::active_mask;
  std::uint32_t slot[4] = {};
  bool uniform[4] = {};
  std::uint8_t width = 4;  // width of the data
  bool negated = false;    // predicate source of a vote
  bool is_signed = false;
  bool has_predicate = false;  // second destination, a predicate
  std::uint32_t predicate = 0;
  bool has_result = true;
  // Which operand has the lanes that wait for each other; -1: the lanes that run do not wait.
  std::int8_t members = -1;
  bool one_mask = false;  // it is in a uniform slot
};

namespace warp_ops {
inline constexpr std::uint8_t within_run = 2;  // flag: behind it is the header of the run's rest
const MicroOp* exchange(Warp& w, const MicroOp* op);  // aux: WarpDetails
// Whether lanes at one of them may wait for lanes at the other.
[[nodiscard]] bool is_same(const MicroOp* a, const MicroOp* b);
// The lanes of groups that wait at micro-ops which are the same, and of one member mask.
void exchange_among(Warp& w, const std::vector<Group*>& groups);
const MicroOp* move_matrix(Warp& w, const MicroOp* op);  // movmatrix .trans: d, a
}  // namespace warp_ops

}  // namespace demarc::emulate
