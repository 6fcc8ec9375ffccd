// Barriers of a block: who has arrived, whom they let go, and who waits in vain.
#include <algorithm>
#include <bit>

#include "groups.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

namespace control {

const MicroOp* barrier(Warp& w, const MicroOp* op) {
  Block& block = *w.block;
  ++w.barriers;
  const auto first = static_cast<unsigned>(std::countr_zero(w.mask));
  const std::uint32_t id = w.at<std::uint32_t>(op->a)[(op->uniform & uniform_a) != 0 ? 0 : first];
  std::uint32_t threads = 0;
  if ((op->flags & barrier_has_count) != 0)
    threads = w.at<std::uint32_t>(op->b)[(op->uniform & uniform_b) != 0 ? 0 : first];
  if (id >= block.barriers.size() || threads % warp_size != 0) {
    return block.stop_with(
        w, op, first, FindingKind::limit,
        fmt::format("barrier {} with {} threads: there are 16 barriers, counts are multiples of 32",
                    id, threads));
  }
  if ((op->flags & barrier_arrive_only) != 0) {
    block.arrive(w, op, id, threads);
    return op + 1;
  }
  if (w.mask == w.live && !w.torn) {
    w.resume = index_of(w, op);
    w.state = WarpState::waiting;
    block.arrive(w, op, id, threads);
    return w.state == WarpState::ready ? op + 1 : nullptr;
  }
  park(w, index_of(w, op), w.mask, Wait::barrier).barrier = id;
  block.arrive(w, op, id, threads);
  return next_group(w);
}

}  // namespace control

void Block::arrive(Warp& warp, const MicroOp* op, std::uint32_t id, std::uint32_t threads) {
  BarrierState& barrier = barriers[id];
  if (!barrier.in_use) {
    barrier.in_use = true;
    barrier.some.assign(warps.size(), 0);
    barrier.waiting.assign(warps.size(), 0);
  }
  barrier.expected = threads;
  if (clocks.used()) {
    clocks.write(warp.index, RaceClocks::place_of_barrier(id), epoch, true, true);
    next_moment();
  }
  if ((op->flags & control::barrier_reduces) != 0) {
    const Mask p =
        *warp.at<Mask>(op->c) ^ ((op->flags & control::barrier_negated) != 0 ? full_mask : 0);
    barrier.reduction_count += static_cast<std::uint32_t>(std::popcount(p & warp.mask));
    barrier.reduction_and = barrier.reduction_and && (p & warp.mask) == warp.mask;
    barrier.reduction_or = barrier.reduction_or || (p & warp.mask) != 0;
  }
  barrier.some[warp.index] |= warp.mask;
  if ((op->flags & control::barrier_arrive_only) == 0) barrier.waiting[warp.index] |= warp.mask;
  note_whole(barrier, warp);
  const std::uint32_t needed = threads != 0 ? threads / warp_size : running;
  if (barrier.arrived >= needed) complete(id);
}

// A warp has arrived, with 32 threads, once all its lanes have that did not exit.
void Block::note_whole(BarrierState& barrier, const Warp& warp) {
  Mask& some = barrier.some[warp.index];
  if (some == 0 || (warp.live & ~some) != 0) return;
  some = 0;
  ++barrier.arrived;
}

bool Block::is_complete(BarrierState& barrier) {
  for (const Warp& warp : warps) note_whole(barrier, warp);
  if (barrier.expected != 0) return barrier.arrived * warp_size >= barrier.expected;
  return std::all_of(warps.begin(), warps.end(), [&](const Warp& warp) {
    return (warp.live & ~barrier.waiting[warp.index]) == 0;
  });
}

namespace {

// The lanes waited at `op`.
void give_reduction(const BarrierState& barrier, const Lanes& lanes, const MicroOp* op) {
  if ((op->flags & control::barrier_reduces) == 0) return;
  if (op->width == 0) {
    auto* d = reinterpret_cast<std::uint32_t*>(lanes.frame + op->d);
    for (Mask rest = lanes.mask; rest != 0; rest &= rest - 1)
      d[std::countr_zero(rest)] = barrier.reduction_count;
    return;
  }
  const bool value = op->width == 1 ? barrier.reduction_and : barrier.reduction_or;
  Mask& d = *reinterpret_cast<Mask*>(lanes.frame + op->d);
  d = (d & ~lanes.mask) | (value ? lanes.mask : 0);
}

}  // namespace

void Block::complete(std::uint32_t id) {
  BarrierState& barrier = barriers[id];
  if (!is_complete(barrier)) return;
  order_waiters(id);
  for (Warp& warp : warps) {
    if (barrier.waiting[warp.index] == 0) continue;
    if (warp.waits_whole()) {
      give_reduction(barrier, warp, program->code.data() + warp.resume);
      ++warp.resume;
      warp.state = WarpState::ready;
    } else {
      for (Group& group : warp.groups) {
        if (group.wait != Wait::barrier || group.barrier != id) continue;
        give_reduction(barrier, group, program->code.data() + group.pc);
        group.stop_waiting();
      }
      unite(warp);
      if (warp.state == WarpState::waiting) warp.state = WarpState::ready;
    }
  }
  barrier.in_use = false;
  barrier.arrived = 0;
  barrier.reduction_count = 0;
  barrier.reduction_and = true;
  barrier.reduction_or = false;
}

void Block::lanes_ended() {
  for (std::uint32_t id = 0; id < barriers.size(); ++id) {
    if (barriers[id].in_use) complete(id);
  }
}

namespace {

std::string first_thread_name(const Warp& warp, Mask lanes) {
  return thread_name(warp, static_cast<unsigned>(std::countr_zero(lanes)));
}

std::uint32_t line_at(const Program& program, std::uint32_t pc) {
  return program.instructions[program.code[pc].instruction].trace.line;
}

// Where the lanes are that `group` waits for in vain.
std::string whereabouts(const Warp& warp, Mask lanes) {
  std::string out;
  for (const Group& group : warp.groups) {
    if ((group.mask & lanes) == 0) continue;
    out +=
        fmt::format("{}{} waits at line {}", out.empty() ? ": " : ", ",
                    first_thread_name(warp, group.mask & lanes), line_at(*warp.program, group.pc));
  }
  return out;
}

// Lanes of its warp that have not exited and do not come to where `group` waits.
Mask missing_lanes(const Block& block, const Warp& warp, const Group& group) {
  Mask there = 0;
  const bool named = group.wait == Wait::barrier;
  if (named) there = block.barriers[group.barrier].some[warp.index];
  for (const Group& other : warp.groups) {
    if (other.wait != group.wait || other.members != group.members) continue;
    if (named ? other.barrier == group.barrier : other.pc == group.pc) there |= other.mask;
  }
  return (group.wait == Wait::members ? group.members & warp.live : warp.live) & ~there;
}

}  // namespace

void Block::report_stuck() {
  for (Warp& warp : warps) {
    if (!warp.waits_whole()) continue;
    const auto at = std::find_if(barriers.begin(), barriers.end(), [&](const BarrierState& one) {
      return one.in_use && one.waiting[warp.index] != 0;
    });
    park(warp, warp.resume, warp.mask, Wait::barrier).barrier =
        static_cast<std::uint32_t>(at - barriers.begin());
  }
  std::vector<std::pair<const Warp*, const Group*>> waiting;
  for (const Warp& warp : warps) {
    for (const Group& group : warp.groups) waiting.emplace_back(&warp, &group);
  }
  const auto finds = [&](const Warp& warp, const Group& group, std::string detail) {
    stop_with(warp, program->code.data() + group.pc,
              static_cast<unsigned>(std::countr_zero(group.mask)), FindingKind::barrier_divergence,
              std::move(detail));
  };
  // First those that wait for lanes of their own warp: they say most.
  for (const auto& [warp, group] : waiting) {
    const Mask missing = missing_lanes(*this, *warp, *group);
    if (missing == 0 || group->wait == Wait::cluster) continue;
    return finds(
        *warp, *group,
        fmt::format("{} threads of the warp do not arrive, among them {}{}", std::popcount(missing),
                    first_thread_name(*warp, missing), whereabouts(*warp, missing)));
  }
  const auto& [first, group] = waiting.front();
  const std::uint32_t pc = group->pc;
  std::string others;
  for (const Warp& other : warps) {
    if (!other.groups.empty() && other.groups.front().pc == pc) continue;
    if (others.size() > 160) {
      others += ", …";
      break;
    }
    others += fmt::format(
        "{}warp {} {}", others.empty() ? "" : ", ", other.index,
        other.groups.empty()
            ? std::string("has ended")
            : fmt::format("waits at line {}", line_at(*program, other.groups.front().pc)));
  }
  finds(*first, *group,
        fmt::format("the barrier is never completed: {}",
                    others.empty() ? "too few threads take part" : others));
}

void Block::report_hang(const Warp& warp, std::string detail) {
  const Mask lanes = warp.mask != 0 ? warp.mask : warp.live;
  stop_with(warp, program->code.data() + warp.resume,
            static_cast<unsigned>(std::countr_zero(lanes)), FindingKind::hang, std::move(detail));
}

void Block::report_hang(std::string detail) {
  report_hang(*std::find_if(warps.begin(), warps.end(),
                            [](const Warp& warp) { return warp.state == WarpState::ready; }),
              std::move(detail));
}

}  // namespace demarc::emulate
