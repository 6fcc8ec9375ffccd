// Runs the lanes of a warp as groups that part, wait and come together again.
#include "groups.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "ops/control.hpp"
#include "ops/warp.hpp"

namespace demarc::emulate {

namespace {

// Calls visit(slot) for the uniform slots of all frames that `lanes` are in.
template <class Visit>
void visit_uniforms(const Warp& w, const Lanes& lanes, Visit&& visit) {
  for_each_frame(lanes, [&](std::byte* frame, std::uint32_t function) {
    for (const std::uint32_t offset : w.program->functions[function].uniforms)
      visit(*reinterpret_cast<std::uint64_t*>(frame + offset));
  });
}

// What only torn warps need is kept out of the functions that all need: those would save more
// registers for it.
[[gnu::noinline]] std::unique_ptr<Uniforms> saved_uniforms(const Warp& w, const Lanes& lanes) {
  auto saved = std::make_unique<Uniforms>();
  visit_uniforms(w, lanes, [&](std::uint64_t& slot) { saved->push_back(slot); });
  return saved;
}

[[gnu::noinline]] void restore_uniforms(const Warp& w, const Lanes& lanes, const Uniforms* saved) {
  if (saved == nullptr) return;
  auto at = saved->begin();
  visit_uniforms(w, lanes, [&](std::uint64_t& slot) { slot = *at++; });
}

// From now on each group has its own uniform slots; so far they are the same for all.
void tear(Warp& w) {
  if (w.torn) return;
  w.torn = true;
  for (Group& group : w.groups) group.uniforms = saved_uniforms(w, group);
}

void note_whole(Warp& w) {
  if (w.mask != w.live) return;
  w.torn = false;
  w.turned = w.warp_instructions;
}

void close_meeting(Warp& w, Meeting& meeting) {
  if (meeting.callee_frame != nullptr)
    w.block->pool->give_back(w.program->functions[meeting.callee],
                             std::exchange(meeting.callee_frame, nullptr));
  meeting.uniforms.reset();
  meeting.outer = w.spare_meeting;
  w.spare_meeting = &meeting;
}

// The callee's results go to the caller, for the lanes that return.
void copy_results(const Warp& w, const Meeting& call) {
  const auto& details = *static_cast<const CallDetails*>(w.program->code[call.pc - 1].aux);
  const CodeFunction& callee = w.program->functions[call.callee];
  for (std::size_t i = 0; i < details.results.size(); ++i) {
    const std::size_t bytes = callee.results[i].bytes;
    std::byte* const to = call.frame + details.results[i].offset;
    const std::byte* const from = call.callee_frame + callee.results[i].offset;
    if (call.arrived == full_mask) {
      std::memcpy(to, from, bytes * warp_size);
    } else {
      for (Mask rest = call.arrived; rest != 0; rest &= rest - 1) {
        const std::size_t at = static_cast<std::size_t>(std::countr_zero(rest)) * bytes;
        std::memcpy(to + at, from + at, bytes);
      }
    }
  }
}

// The lanes that have arrived leave the meeting as `lanes`, to go on at Meeting::pc.
void dismiss(const Warp& w, Meeting& meeting, Lanes& lanes) {
  if (meeting.callee_frame != nullptr) copy_results(w, meeting);
  lanes.frame = meeting.frame;
  lanes.mask = meeting.arrived;
  lanes.top_join = meeting.join;
  lanes.meeting = meeting.outer;
  lanes.function = meeting.function;
  lanes.local_base = meeting.local_base;
  meeting.mask &= ~meeting.arrived;
  meeting.arrived = 0;
}

// All that are still to come to the meeting have arrived. Late ones find the uniform slots that the
// first had: what is read behind a meeting is not written on the way to it.
const MicroOp* go_on(Warp& w, Meeting& meeting) {
  const std::uint32_t pc = meeting.pc;
  dismiss(w, meeting, w);
  if (w.torn) restore_uniforms(w, w, meeting.uniforms.get());
  close_meeting(w, meeting);
  note_whole(w);
  return w.program->code.data() + pc;
}

const MicroOp* end_warp(Warp& w) {
  w.state = WarpState::done;
  --w.block->running;
  w.block->lanes_ended();
  return nullptr;
}

// The innermost meeting around `meeting` at which lanes wait; null: none.
Meeting* awaited(Meeting* meeting) {
  while (meeting != nullptr && meeting->arrived == 0) meeting = meeting->outer;
  return meeting;
}

// Those that wait at `meeting` go on without the others, with the uniform slots that are in the
// frames now.
void dismiss_early(Warp& w, Meeting& meeting) {
  Group early;
  early.pc = meeting.pc;
  dismiss(w, meeting, early);
  early.uniforms = saved_uniforms(w, early);
  meeting.uniforms = std::make_unique<Uniforms>(*early.uniforms);
  w.groups.push_back(std::move(early));
}

bool at_one_place(const Group& a, const Group& b) {
  return a.pc == b.pc && a.frame == b.frame && a.meeting == b.meeting && a.top_join == b.top_join &&
         same_uniforms(a, b);
}

// The groups that wait for the same, and are all that they wait for.
struct Party {
  std::vector<std::size_t> groups;
  Mask lanes = 0;
};

// None: some of those that `one` waits for lack.
std::optional<Party> party_of(const Warp& w, const Group& one) {
  Party party;
  const MicroOp* const code = w.program->code.data();
  const Mask wanted = one.wait == Wait::members ? one.members & w.live : w.live;
  for (const Group& other : w.groups) {
    if (other.wait != one.wait || other.members != one.members) continue;
    const bool same = one.wait == Wait::members ? warp_ops::is_same(code + one.pc, code + other.pc)
                                                : one.pc == other.pc;
    if (!same) continue;
    party.groups.push_back(static_cast<std::size_t>(&other - w.groups.data()));
    party.lanes |= other.mask;
  }
  if ((wanted & ~party.lanes) != 0) return {};
  return party;
}

std::optional<Party> complete_party(const Warp& w) {
  for (const Group& one : w.groups) {
    if (one.wait != Wait::members && one.wait != Wait::step) continue;
    if (auto party = party_of(w, one)) return party;
  }
  return {};
}

void let_go(Warp& w, const Party& party) {
  const Group& first = w.groups[party.groups.front()];
  const MicroOp* const op = w.program->code.data() + first.pc;
  std::vector<Group*> groups;
  for (const std::size_t i : party.groups) groups.push_back(&w.groups[i]);
  if (first.wait == Wait::members) warp_ops::exchange_among(w, groups);
  for (Group* const group : groups) group->stop_waiting();
  const std::uint32_t pc = first.pc;
  unite(w);
  if ((op->flags & control::step_together) == 0) return;
  const auto apart = std::count_if(w.groups.begin(), w.groups.end(),
                                   [&](const Group& group) { return group.pc == pc; });
  if (apart == 1) return;
  w.block->stop_with(
      w, op, static_cast<unsigned>(std::countr_zero(party.lanes)), FindingKind::barrier_divergence,
      fmt::format("the {} threads of the warp reach the instruction in {} groups that "
                  "differ in how they came to it",
                  std::popcount(party.lanes), apart));
}

}  // namespace

Meeting& open_meeting(Warp& w, std::uint32_t pc) {
  if (w.mask == w.live) w.turned = w.warp_instructions;
  Meeting& meeting = w.spare_meeting != nullptr ? *w.spare_meeting : w.meetings.emplace_back();
  w.spare_meeting = meeting.outer;
  meeting.pc = pc;
  meeting.join = w.top_join;
  meeting.mask = w.mask;
  meeting.arrived = 0;
  meeting.outer = w.meeting;
  meeting.frame = w.frame;
  meeting.function = w.function;
  meeting.local_base = w.local_base;
  meeting.depth = w.meeting != nullptr ? w.meeting->depth : 0;
  w.meeting = &meeting;
  return meeting;
}

const MicroOp* meet(Warp& w) {
  Meeting& meeting = *w.meeting;
  meeting.arrived |= w.mask;
  return meeting.arrived == meeting.mask ? go_on(w, meeting) : next_group(w);
}

const MicroOp* leave_meetings(Warp& w) {
  while (w.meeting != nullptr && w.meeting->mask == 0) {
    Meeting& vacant = *w.meeting;
    w.meeting = vacant.outer;
    close_meeting(w, vacant);
  }
  if (w.meeting != nullptr && w.meeting->arrived == w.meeting->mask) return go_on(w, *w.meeting);
  return next_group(w);
}

bool same_uniforms(const Group& a, const Group& b) {
  return a.uniforms == b.uniforms ||
         (a.uniforms != nullptr && b.uniforms != nullptr && *a.uniforms == *b.uniforms);
}

Group& park(Warp& w, std::uint32_t pc, Mask lanes, Wait wait) {
  Group& group = w.groups.emplace_back(w, lanes, pc, wait);
  if (w.torn) group.uniforms = saved_uniforms(w, group);
  return group;
}

void put_in_place(Warp& w, const Group& group) {
  static_cast<Lanes&>(w) = group;
  if (w.torn) restore_uniforms(w, group, group.uniforms.get());
}

namespace {

bool is_ready(const Group& group) {
  return group.wait == Wait::nothing;
}

[[gnu::noinline]] const MicroOp* next_of_groups(Warp& w) {
  for (;;) {
    const auto last = std::find_if(w.groups.rbegin(), w.groups.rend(), is_ready);
    if (last != w.groups.rend()) {
      put_in_place(w, *last);
      const std::uint32_t pc = last->pc;
      w.groups.erase(std::next(last).base());
      w.turned = w.warp_instructions;
      if (w.torn) note_whole(w);
      return w.program->code.data() + pc;
    }
    w.mask = 0;
    if (w.groups.empty()) return end_warp(w);
    // What other warps may end is waited for.
    const bool within = std::all_of(w.groups.begin(), w.groups.end(), [](const Group& group) {
      return group.wait == Wait::members || group.wait == Wait::step;
    });
    if (!within || !go_on_apart(w)) break;
  }
  w.state = WarpState::waiting;
  return nullptr;
}

}  // namespace

const MicroOp* next_group(Warp& w) {
  if (w.block->stopped) return nullptr;
  if (w.torn || w.groups.empty() || w.groups.back().wait != Wait::nothing) return next_of_groups(w);
  const std::uint32_t pc = w.groups.back().pc;
  static_cast<Lanes&>(w) = w.groups.back();
  w.groups.pop_back();
  w.turned = w.warp_instructions;
  return w.program->code.data() + pc;
}

void settle(Warp& w) {
  const Lanes running = w;
  std::unique_ptr<Uniforms> uniforms;
  if (w.torn) uniforms = saved_uniforms(w, w);
  while (const auto party = complete_party(w)) let_go(w, *party);
  static_cast<Lanes&>(w) = running;
  restore_uniforms(w, w, uniforms.get());
}

void unite(Warp& w) {
  for (auto at = w.groups.end(); at != w.groups.begin();) {
    --at;
    if (!is_ready(*at)) continue;
    const auto same = std::find_if(w.groups.begin(), at, [&](const Group& other) {
      return is_ready(other) && at_one_place(other, *at);
    });
    if (same == at) continue;
    same->mask |= at->mask;
    at = w.groups.erase(at);
  }
}

bool go_on_apart(Warp& w) {
  for (std::size_t i = w.groups.size(); i-- > 0;) {
    Meeting* const meeting = awaited(w.groups[i].meeting);
    if (meeting == nullptr) continue;
    tear(w);
    restore_uniforms(w, w.groups[i], w.groups[i].uniforms.get());
    dismiss_early(w, *meeting);
    w.state = WarpState::ready;
    return true;
  }
  return false;
}

void take_turns(Warp& w, bool apart) {
  if (w.mask == w.live) return;
  park(w, w.resume, w.mask);
  std::rotate(w.groups.rbegin(), std::next(w.groups.rbegin()), w.groups.rend());
  if (apart) go_on_apart(w);
  w.resume = index_of(w, next_group(w));
}

namespace control {

const MicroOp* step(Warp& w, const MicroOp* op) {
  if (w.mask == w.live) return op + 1;
  park(w, index_of(w, op), w.mask, Wait::step);
  settle(w);
  return next_group(w);
}

const MicroOp* poll(Warp& w, const MicroOp* op) {
  std::uint64_t seen = w.mask;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    std::uint64_t value = 0;
    std::memcpy(
        &value,
        w.frame + op->a + std::size_t{op->width} * static_cast<unsigned>(std::countr_zero(rest)),
        op->width);
    seen = (seen ^ value) * 0x9e3779b97f4a7c15U;
  }
  auto& before = *w.at<std::uint64_t>(op->d);
  polled(w, seen != before);
  before = seen;
  return op + 1;
}

const MicroOp* yield(Warp& w, const MicroOp* op) {
  w.polls = max_polls;
  w.budget = 0;
  return op + 1;
}

}  // namespace control

}  // namespace demarc::emulate
