// Control flow of a warp: branches, joins, calls and the end of lanes.
#include "ops/control.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "demarc/ptx/vocabulary.hpp"
#include "groups.hpp"

namespace demarc::emulate::control {

namespace {

Mask predicate(Warp& w, const MicroOp* op) {
  const Mask p = *w.at<Mask>(op->a);
  return (op->flags & flag_negated) != 0 ? ~p : p;
}

// All lanes go on together at the join of a divergent branch, unless one around it does that.
void meet_at(Warp& w, std::uint32_t join) {
  if (join == w.top_join) return;
  if (join != no_join) open_meeting(w, join);
  w.top_join = join;
}

// Those of the lanes that run need not go anywhere to be at their meeting.
void stay_at_join(Warp& w, Mask lanes) {
  w.meeting->arrived |= lanes;
  w.mask &= ~lanes;
}

template <class Value>
Mask lanes_with(const Warp& w, const Value& of_lane, std::uint64_t wanted) {
  Mask same = 0;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (of_lane(lane) == wanted) same |= Mask{1} << lane;
  }
  return same;
}

// Among lanes with several targets, those with the `same` go on; the others come back to this
// micro-op, so that one target comes after the other until the join.
void go_on_with(Warp& w, const MicroOp* op, Mask same) {
  if (same == w.mask) return;
  ++w.divergent_branches;
  meet_at(w, op->join);
  park(w, index_of(w, op), w.mask & ~same);
  w.mask = same;
}

}  // namespace

const MicroOp* guard(Warp& w, const MicroOp* op) {
  w.saved_mask = w.mask;
  w.mask &= predicate(w, op);
  ++w.warp_instructions;
  w.thread_instructions += static_cast<std::uint64_t>(std::popcount(w.mask));
  if (w.trace_runs) {
    std::uint64_t* out = w.block->trace_room(2);
    out[0] = trace_detail::head(trace_detail::kind_run, op->instruction, w.mask);
    out[1] = 1;
  }
  if (w.mask != 0) return op + 1;
  w.mask = w.saved_mask;
  return w.program->code.data() + op->target;
}

const MicroOp* unguard(Warp& w, const MicroOp* op) {
  w.mask = w.saved_mask;
  return op + 1;
}

const MicroOp* nothing(Warp&, const MicroOp* op) {
  return op + 1;
}

const MicroOp* jump(Warp& w, const MicroOp* op) {
  return w.program->code.data() + op->target;
}

const MicroOp* branch(Warp& w, const MicroOp* op) {
  const Mask taken = w.mask & predicate(w, op);
  const MicroOp* const code = w.program->code.data();
  if (taken == 0) return op + 1;
  const Mask rest = w.mask & ~taken;
  if (rest == 0) return code + op->target;
  ++w.divergent_branches;
  meet_at(w, op->join);
  if (op->target == op->join) {
    stay_at_join(w, taken);
    return op + 1;
  }
  if (index_of(w, op) + 1 == op->join) {
    stay_at_join(w, rest);
    return code + op->target;
  }
  park(w, op->target, taken);
  w.mask = rest;
  return op + 1;
}

const MicroOp* branch_index(Warp& w, const MicroOp* op) {
  const auto& targets = *static_cast<const std::vector<std::uint32_t>*>(op->aux);
  const auto value = [&](unsigned lane) {
    return w.at<std::uint32_t>(op->a)[(op->uniform & uniform_a) != 0 ? 0 : lane];
  };
  const auto first = static_cast<unsigned>(std::countr_zero(w.mask));
  const std::uint32_t chosen = value(first);
  if (chosen >= targets.size()) {
    return w.block->stop_with(
        w, op, first, FindingKind::trap,
        fmt::format("branch index {} of a list of {} targets", chosen, targets.size()));
  }
  go_on_with(w, op, lanes_with(w, value, chosen));
  return w.program->code.data() + targets[chosen];
}

const MicroOp* join(Warp& w, const MicroOp* op) {
  if (w.top_join != index_of(w, op)) return op + 1;
  return meet(w);
}

const MicroOp* exit_lanes(Warp& w, const MicroOp* op) {
  const Mask leaving = (op->flags & flag_conditional) != 0 ? w.mask & predicate(w, op) : w.mask;
  if (leaving == 0) return op + 1;
  if (w.block->cluster != nullptr) w.block->cluster->leave(w, leaving);
  w.live &= ~leaving;
  w.mask &= ~leaving;
  for (Meeting* meeting = w.meeting; meeting != nullptr; meeting = meeting->outer)
    meeting->mask &= ~leaving;
  if (!w.groups.empty()) {
    settle(w);  // some may have waited for those that exit
    w.block->lanes_ended();
  }
  return w.mask != 0 ? op + 1 : leave_meetings(w);
}

const MicroOp* return_lanes(Warp& w, const MicroOp* op) {
  const Mask leaving = (op->flags & flag_conditional) != 0 ? w.mask & predicate(w, op) : w.mask;
  w.mask &= ~leaving;
  // Lanes that return meet behind the call; they do not come to the meetings within the function.
  Meeting* meeting = w.meeting;
  for (; meeting->callee_frame == nullptr; meeting = meeting->outer) meeting->mask &= ~leaving;
  meeting->arrived |= leaving;
  return w.mask != 0 ? op + 1 : leave_meetings(w);
}

namespace {

const MicroOp* enter(Warp& w, const MicroOp* op, const CallDetails& details, std::uint32_t target) {
  constexpr std::uint32_t deepest = 2000;
  const CodeFunction& callee = w.program->functions[target];
  const CodeFunction& caller = w.program->functions[w.function];
  const std::uint32_t depth = w.meeting != nullptr ? w.meeting->depth : 0;
  const std::uint32_t local_base = w.local_base + (caller.local_bytes + 15) / 16 * 16;
  if (depth >= deepest || local_base + callee.local_bytes > max_local_bytes) {
    return w.block->stop_with(
        w, op, static_cast<unsigned>(std::countr_zero(w.mask)), FindingKind::limit,
        fmt::format("calls nested {} deep with {} bytes of local memory; the limits are {} and {}",
                    depth, local_base + callee.local_bytes, deepest, max_local_bytes));
  }
  w.block->grow_local(local_base + callee.local_bytes);
  std::byte* frame = w.block->pool->take(callee);
  for (const FrameVariable& zeroed : callee.zeroed)
    std::memset(frame + zeroed.offset, 0, zeroed.bytes);
  for (std::size_t i = 0; i < details.arguments.size(); ++i) {
    std::memcpy(frame + callee.parameters[i].offset, w.frame + details.arguments[i].offset,
                std::size_t{callee.parameters[i].bytes} * warp_size);
  }
  Meeting& meeting = open_meeting(w, index_of(w, op) + 1);
  meeting.callee_frame = frame;
  meeting.callee = target;
  ++meeting.depth;
  w.frame = frame;
  w.function = target;
  w.local_base = local_base;
  w.top_join = no_join;
  return w.program->code.data() + callee.entry;
}

}  // namespace

bool fit(const std::vector<FrameVariable>& handed, const std::vector<FrameVariable>& declared) {
  return std::equal(handed.begin(), handed.end(), declared.begin(), declared.end(),
                    [](const FrameVariable& a, const FrameVariable& b) {
                      return a.bytes == b.bytes &&
                             (a.size == 0 || (a.size == b.size && a.align == b.align));
                    });
}

const MicroOp* call(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  return enter(w, op, details, details.function);
}

const MicroOp* call_indirect(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  const auto value = [&](unsigned lane) {
    return w.at<std::uint64_t>(op->a)[(op->uniform & uniform_a) != 0 ? 0 : lane];
  };
  const auto first = static_cast<unsigned>(std::countr_zero(w.mask));
  const std::uint64_t address = value(first);
  const auto found = w.program->function_of_address.find(address);
  if (found == w.program->function_of_address.end()) {
    return w.block->stop_with(w, op, first, FindingKind::trap,
                              fmt::format("call of 0x{:x}, which is not a function", address));
  }
  const CodeFunction& callee = w.program->functions[found->second];
  if (!fit(details.arguments, callee.parameters) || !fit(details.results, callee.results)) {
    return w.block->stop_with(
        w, op, first, FindingKind::trap,
        fmt::format(
            "call of 0x{:x}, a function whose parameters or results differ from those of the call",
            address));
  }
  go_on_with(w, op, lanes_with(w, value, address));
  return enter(w, op, details, found->second);
}

const MicroOp* trap(Warp& w, const MicroOp* op) {
  return w.block->stop_with(w, op, static_cast<unsigned>(std::countr_zero(w.mask)),
                            FindingKind::trap, "the kernel executed a trap");
}

const MicroOp* read_tid(Warp& w, const MicroOp* op) {
  std::memcpy(w.at<std::uint32_t>(op->d), w.tid[op->imm], sizeof(std::uint32_t) * warp_size);
  return op + 1;
}

const MicroOp* read_block_index(Warp& w, const MicroOp* op) {
  *w.at<std::uint64_t>(op->d) = w.block->index[op->imm];
  return op + 1;
}

namespace {

std::uint64_t special_value(const Warp& w, ptx::SpecialRegister which, unsigned lane) {
  using ptx::SpecialRegister;
  const Mask bit = Mask{1} << lane;
  const std::uint64_t clock = w.program->time_ns + w.warp_instructions;
  switch (which) {
    case SpecialRegister::laneid:
      return lane;
    case SpecialRegister::warpid:
      return w.index;
    case SpecialRegister::smid:
      return w.program->sm_of(w.block->linear);
    case SpecialRegister::lanemask_eq:
      return bit;
    case SpecialRegister::lanemask_lt:
      return bit - 1;
    case SpecialRegister::lanemask_le:
      return (bit - 1) | bit;
    case SpecialRegister::lanemask_gt:
      return ~((bit - 1) | bit);
    case SpecialRegister::lanemask_ge:
      return ~(bit - 1);
    case SpecialRegister::clock_hi:
    case SpecialRegister::globaltimer_hi:
      return clock >> 32;
    default:
      return clock;  // clock, clock64, globaltimer
  }
}

}  // namespace

const MicroOp* read_special(Warp& w, const MicroOp* op) {
  const auto which = static_cast<ptx::SpecialRegister>(op->imm);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t value = special_value(w, which, lane);
    if (op->bytes == 8) {
      w.at<std::uint64_t>(op->d)[lane] = value;
    } else {
      w.at<std::uint32_t>(op->d)[lane] = static_cast<std::uint32_t>(value);
    }
  }
  return op + 1;
}

const MicroOp* local_address(Warp& w, const MicroOp* op) {
  *w.at<std::uint64_t>(op->d) = w.local_base + op->imm;
  return op + 1;
}

namespace {

const MicroOp* set_predicate(Warp& w, const MicroOp* op, Mask value) {
  Mask& d = *w.at<Mask>(op->d);
  d = (d & ~w.mask) | (value & w.mask);
  return op + 1;
}
Mask first_predicate(Warp& w, const MicroOp* op) {
  return *w.at<Mask>(op->a) ^ ((op->flags & 1U) != 0 ? full_mask : 0);
}
Mask second_predicate(Warp& w, const MicroOp* op) {
  return *w.at<Mask>(op->b) ^ ((op->flags & 2U) != 0 ? full_mask : 0);
}

}  // namespace

const MicroOp* pred_and(Warp& w, const MicroOp* op) {
  return set_predicate(w, op, first_predicate(w, op) & second_predicate(w, op));
}
const MicroOp* pred_or(Warp& w, const MicroOp* op) {
  return set_predicate(w, op, first_predicate(w, op) | second_predicate(w, op));
}
const MicroOp* pred_xor(Warp& w, const MicroOp* op) {
  return set_predicate(w, op, first_predicate(w, op) ^ second_predicate(w, op));
}

}  // namespace demarc::emulate::control
