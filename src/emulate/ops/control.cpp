// Control flow of a warp: branches, joins, calls and the end of lanes.
#include "ops/control.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "demarc/ptx/vocabulary.hpp"

namespace demarc::emulate::control {

namespace {

std::uint32_t index_of(const Warp& w, const MicroOp* op) {
  return static_cast<std::uint32_t>(op - w.program->code.data());
}

Mask predicate(Warp& w, const MicroOp* op) {
  const Mask p = *w.at<Mask>(op->a);
  return (op->flags & flag_negated) != 0 ? ~p : p;
}

// The callee's results go to the caller, for the lanes that called.
void copy_results(Warp& w, const StackEntry& entry) {
  const auto& details = *static_cast<const CallDetails*>(w.program->code[entry.pc - 1].aux);
  const CodeFunction& callee = w.program->functions[w.function];
  for (std::size_t i = 0; i < details.results.size(); ++i) {
    const std::size_t bytes = callee.results[i].bytes;
    for (Mask rest = entry.mask; rest != 0; rest &= rest - 1) {
      const std::size_t at = static_cast<std::size_t>(std::countr_zero(rest)) * bytes;
      std::memcpy(entry.frame + details.results[i].offset + at,
                  w.frame + callee.results[i].offset + at, bytes);
    }
  }
}

// Goes on with the entry on top of the stack that has lanes left; ends the warp when there is none.
const MicroOp* pop(Warp& w) {
  while (!w.stack.empty()) {
    const StackEntry entry = w.stack.back();
    w.stack.pop_back();
    if (entry.call) {
      copy_results(w, entry);
      w.block->pool->give_back(w.program->functions[w.function], w.frame);
      w.frame = entry.frame;
      w.function = entry.function;
      w.local_base = entry.local_base;
    }
    if (entry.mask == 0) continue;
    w.mask = entry.mask;
    w.top_join = entry.join;
    return w.program->code.data() + entry.pc;
  }
  w.mask = 0;
  w.state = WarpState::done;
  if (w.block->cluster != nullptr) w.block->cluster->leave(w, w.live);
  w.block->warp_ended();
  return nullptr;
}

// Lanes of a divergent branch that go on at `pc` when those before them have come to `join`.
void come_back(Warp& w, std::uint32_t pc, std::uint32_t join, Mask lanes) {
  StackEntry entry;
  entry.pc = pc;
  entry.join = join;
  entry.mask = lanes;
  w.stack.push_back(entry);
}

// All lanes go on together at the join of a divergent branch, unless one around it does that.
void wait_at_join(Warp& w, std::uint32_t join) {
  if (join == w.top_join) return;
  if (join != no_join) come_back(w, join, w.top_join, w.mask);
  w.top_join = join;
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

// Of lanes with several targets, those with the `same` go on; the others come back to this
// micro-op, so that one target comes after the other until the join.
void go_on_with(Warp& w, const MicroOp* op, Mask same) {
  if (same == w.mask) return;
  ++w.divergent_branches;
  wait_at_join(w, op->join);
  come_back(w, index_of(w, op), op->join, w.mask & ~same);
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
  const std::uint32_t join = op->join;
  wait_at_join(w, join);
  if (op->target == join) {
    w.mask = rest;
    return op + 1;
  }
  if (index_of(w, op) + 1 == join) {
    w.mask = taken;
    return code + op->target;
  }
  come_back(w, op->target, join, taken);
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
    w.block->report(w, op, first, FindingKind::trap,
                    fmt::format("branch index {} of a list of {} targets", chosen, targets.size()));
    w.block->stopped = true;
    return nullptr;
  }
  go_on_with(w, op, lanes_with(w, value, chosen));
  return w.program->code.data() + targets[chosen];
}

const MicroOp* join(Warp& w, const MicroOp* op) {
  if (w.top_join != index_of(w, op)) return op + 1;
  return pop(w);
}

const MicroOp* exit_lanes(Warp& w, const MicroOp* op) {
  const Mask leaving = (op->flags & flag_conditional) != 0 ? w.mask & predicate(w, op) : w.mask;
  if (w.block->cluster != nullptr) w.block->cluster->leave(w, w.live & leaving);
  w.live &= ~leaving;
  w.mask &= ~leaving;
  for (StackEntry& entry : w.stack) entry.mask &= ~leaving;
  return w.mask != 0 ? op + 1 : pop(w);
}

const MicroOp* return_lanes(Warp& w, const MicroOp* op) {
  const Mask leaving = (op->flags & flag_conditional) != 0 ? w.mask & predicate(w, op) : w.mask;
  w.mask &= ~leaving;
  // Lanes that return wait in the call's entry; those of a reconvergence entry must not come back.
  for (std::size_t i = w.stack.size(); i-- > 0 && !w.stack[i].call;) w.stack[i].mask &= ~leaving;
  return w.mask != 0 ? op + 1 : pop(w);
}

namespace {

const MicroOp* enter(Warp& w, const MicroOp* op, const CallDetails& details, std::uint32_t target) {
  constexpr std::size_t deepest = 2000;
  const CodeFunction& callee = w.program->functions[target];
  const CodeFunction& caller = w.program->functions[w.function];
  std::size_t depth = 0;
  for (const StackEntry& entry : w.stack) depth += entry.call ? 1U : 0U;
  const std::uint32_t local_base = w.local_base + (caller.local_bytes + 15) / 16 * 16;
  if (depth >= deepest || local_base + callee.local_bytes > most_local_bytes) {
    w.block->report(
        w, op, static_cast<unsigned>(std::countr_zero(w.mask)), FindingKind::limit,
        fmt::format("calls nested {} deep with {} bytes of local memory; the limits are {} and {}",
                    depth, local_base + callee.local_bytes, deepest, most_local_bytes));
    w.block->stopped = true;
    return nullptr;
  }
  w.block->grow_local(local_base + callee.local_bytes);
  std::byte* frame = w.block->pool->take(callee);
  for (const FrameVariable& zeroed : callee.zeroed)
    std::memset(frame + zeroed.offset, 0, zeroed.bytes);
  for (std::size_t i = 0; i < details.arguments.size(); ++i) {
    std::memcpy(frame + callee.parameters[i].offset, w.frame + details.arguments[i].offset,
                std::size_t{callee.parameters[i].bytes} * warp_size);
  }
  StackEntry entry;
  entry.pc = index_of(w, op) + 1;
  entry.join = w.top_join;
  entry.mask = w.mask;
  entry.call = true;
  entry.frame = w.frame;
  entry.function = w.function;
  entry.local_base = w.local_base;
  w.stack.push_back(entry);
  w.frame = frame;
  w.function = target;
  w.local_base = local_base;
  w.top_join = no_join;
  return w.program->code.data() + callee.entry;
}

}  // namespace

bool takes(const CodeFunction& callee, const CallDetails& call) {
  const auto as_wide = [](const std::vector<FrameVariable>& handed,
                          const std::vector<FrameVariable>& declared) {
    return std::equal(
        handed.begin(), handed.end(), declared.begin(), declared.end(),
        [](const FrameVariable& a, const FrameVariable& b) { return a.bytes == b.bytes; });
  };
  return as_wide(call.arguments, callee.parameters) && as_wide(call.results, callee.results);
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
    w.block->report(w, op, first, FindingKind::trap,
                    fmt::format("call of 0x{:x}, which is not a function", address));
    w.block->stopped = true;
    return nullptr;
  }
  if (!takes(w.program->functions[found->second], details)) {
    w.block->report(
        w, op, first, FindingKind::trap,
        fmt::format(
            "call of 0x{:x}, a function whose parameters or results differ from those of the call",
            address));
    w.block->stopped = true;
    return nullptr;
  }
  go_on_with(w, op, lanes_with(w, value, address));
  return enter(w, op, details, found->second);
}

const MicroOp* trap(Warp& w, const MicroOp* op) {
  w.block->report(w, op, static_cast<unsigned>(std::countr_zero(w.mask)), FindingKind::trap,
                  "the kernel executed a trap");
  w.block->stopped = true;
  return nullptr;
}

const MicroOp* barrier(Warp& w, const MicroOp* op) {
  Block& block = *w.block;
  if (w.mask != w.live) {
    const Mask missing = w.live & ~w.mask;
    const auto other = static_cast<unsigned>(std::countr_zero(missing));
    block.report(
        w, op, static_cast<unsigned>(std::countr_zero(w.mask)), FindingKind::barrier_divergence,
        fmt::format("{} threads of the warp do not arrive, among them thread ({},{},{})",
                    std::popcount(missing), w.tid[0][other], w.tid[1][other], w.tid[2][other]));
    block.stopped = true;
    return nullptr;
  }
  ++w.barriers;
  const auto first = static_cast<unsigned>(std::countr_zero(w.mask));
  const std::uint32_t id = w.at<std::uint32_t>(op->a)[(op->uniform & uniform_a) != 0 ? 0 : first];
  std::uint32_t threads = 0;
  if ((op->flags & barrier_has_count) != 0)
    threads = w.at<std::uint32_t>(op->b)[(op->uniform & uniform_b) != 0 ? 0 : first];
  if (id >= block.barriers.size() || threads % warp_size != 0) {
    block.report(
        w, op, first, FindingKind::limit,
        fmt::format("barrier {} with {} threads: there are 16 barriers, counts are multiples of 32",
                    id, threads));
    block.stopped = true;
    return nullptr;
  }
  return block.arrive(w, op, id, threads) ? op + 1 : nullptr;
}

const MicroOp* read_tid(Warp& w, const MicroOp* op) {
  std::memcpy(w.at<std::uint32_t>(op->d), w.tid[op->imm], sizeof(std::uint32_t) * warp_size);
  return op + 1;
}

const MicroOp* read_block_index(Warp& w, const MicroOp* op) {
  *w.at<std::uint64_t>(op->d) = w.block->index[op->imm];
  return op + 1;
}

const MicroOp* read_special(Warp& w, const MicroOp* op) {
  using ptx::SpecialRegister;
  const auto which = static_cast<SpecialRegister>(op->imm);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (((w.mask >> lane) & 1U) == 0) continue;
    const Mask bit = Mask{1} << lane;
    std::uint64_t value = 0;
    switch (which) {
      case SpecialRegister::laneid:
        value = lane;
        break;
      case SpecialRegister::warpid:
        value = w.index;
        break;
      case SpecialRegister::smid:
        value = w.program->sm_of(w.block->linear);
        break;
      case SpecialRegister::lanemask_eq:
        value = bit;
        break;
      case SpecialRegister::lanemask_lt:
        value = bit - 1;
        break;
      case SpecialRegister::lanemask_le:
        value = (bit - 1) | bit;
        break;
      case SpecialRegister::lanemask_gt:
        value = ~((bit - 1) | bit);
        break;
      case SpecialRegister::lanemask_ge:
        value = ~(bit - 1);
        break;
      case SpecialRegister::clock_hi:
      case SpecialRegister::globaltimer_hi:
        value = (w.program->time_ns + w.warp_instructions) >> 32;
        break;
      default:
        value = w.program->time_ns + w.warp_instructions;
        break;  // clock, clock64, globaltimer
    }
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

void set_predicate(Warp& w, const MicroOp* op, Mask value) {
  Mask& d = *w.at<Mask>(op->d);
  d = (d & ~w.mask) | (value & w.mask);
}
Mask first_predicate(Warp& w, const MicroOp* op) {
  return *w.at<Mask>(op->a) ^ ((op->flags & 1U) != 0 ? full_mask : 0);
}
Mask second_predicate(Warp& w, const MicroOp* op) {
  return *w.at<Mask>(op->b) ^ ((op->flags & 2U) != 0 ? full_mask : 0);
}

}  // namespace

const MicroOp* pred_and(Warp& w, const MicroOp* op) {
  set_predicate(w, op, first_predicate(w, op) & second_predicate(w, op));
  return op + 1;
}
const MicroOp* pred_or(Warp& w, const MicroOp* op) {
  set_predicate(w, op, first_predicate(w, op) | second_predicate(w, op));
  return op + 1;
}
const MicroOp* pred_xor(Warp& w, const MicroOp* op) {
  set_predicate(w, op, first_predicate(w, op) ^ second_predicate(w, op));
  return op + 1;
}
const MicroOp* pred_set(Warp& w, const MicroOp* op) {
  set_predicate(w, op, op->imm != 0 ? full_mask : 0);
  return op + 1;
}

}  // namespace demarc::emulate::control

namespace demarc::emulate {

bool Block::arrive(Warp& warp, const MicroOp* op, std::uint32_t id, std::uint32_t threads) {
  BarrierState& barrier = barriers[id];
  barrier.expected = threads;
  barrier.arrived += warp_size;
  if ((op->flags & control::barrier_reduces) != 0) {
    const Mask p =
        *warp.at<Mask>(op->c) ^ ((op->flags & control::barrier_negated) != 0 ? full_mask : 0);
    barrier.reduction_count += static_cast<std::uint32_t>(std::popcount(p & warp.mask));
    barrier.reduction_and = barrier.reduction_and && (p & warp.mask) == warp.mask;
    barrier.reduction_or = barrier.reduction_or || (p & warp.mask) != 0;
  }
  if ((op->flags & control::barrier_arrive_only) == 0) {
    barrier.waiters.push_back(warp.index);
    warp.state = WarpState::barrier;
    warp.resume = static_cast<std::uint32_t>(op - program->code.data()) + 1;
  } else {
    barrier.arrivers += 1;
  }
  complete(id);
  return warp.state == WarpState::ready;
}

void Block::complete(std::uint32_t id) {
  BarrierState& barrier = barriers[id];
  if (barrier.arrived == 0) return;
  if (barrier.expected != 0) {
    if (barrier.arrived < barrier.expected) return;
  } else {
    std::uint32_t running = 0;
    for (const Warp& warp : warps) running += warp.state != WarpState::done ? 1U : 0U;
    if (barrier.waiters.size() + barrier.arrivers < running) return;
  }
  for (const std::uint32_t waiter : barrier.waiters) {
    Warp& warp = warps[waiter];
    const MicroOp* op = program->code.data() + warp.resume - 1;
    if ((op->flags & control::barrier_reduces) != 0) {
      if (op->width == 0) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {
          if (((warp.mask >> lane) & 1U) != 0)
            warp.at<std::uint32_t>(op->d)[lane] = barrier.reduction_count;
        }
      } else {
        const bool value = op->width == 1 ? barrier.reduction_and : barrier.reduction_or;
        Mask& d = *warp.at<Mask>(op->d);
        d = (d & ~warp.mask) | (value ? warp.mask : 0);
      }
    }
    warp.state = WarpState::ready;
  }
  barrier = {};
  next_epoch();
}

void Block::warp_ended() {
  for (std::uint32_t id = 0; id < barriers.size(); ++id) {
    if (barriers[id].arrived != 0 && barriers[id].expected == 0) complete(id);
  }
}

void Block::order_all() {
  if (cluster != nullptr) {
    cluster->order_all();
  } else {
    next_epoch();
  }
}

void Block::next_epoch() {
  constexpr std::uint64_t most = (std::uint64_t{1} << 27) - 2;
  if (++epoch < most) return;
  epoch = 1;
  races.writes.assign(races.writes.size(), 0);
  races.reads.assign(races.reads.size(), 0);
}

}  // namespace demarc::emulate
