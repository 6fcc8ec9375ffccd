// The lanes of a warp make progress on their own. Those that took the same way run in step, as a
// group; Warp itself is the group that runs, Warp::groups are the others. Groups come together at
// the meetings of branches and calls. That saves time and is not promised: where lanes would wait
// at a meeting for lanes that wait for them, they go on without those.
#pragma once

#include "machine.hpp"

namespace demarc::emulate {

// Lanes look so often at memory that stays as it is before the others get their turn.
inline constexpr std::uint32_t max_polls = 16;

[[nodiscard]] inline std::uint32_t index_of(const Warp& w, const MicroOp* op) {
  return static_cast<std::uint32_t>(op - w.program->code.data());
}

// Calls visit(frame, function) for the frames that `lanes` are in, from the innermost to the
// kernel's.
template <class Visit>
void for_each_frame(const Lanes& lanes, Visit&& visit) {
  std::byte* frame = lanes.frame;
  std::uint32_t function = lanes.function;
  for (const Meeting* at = lanes.meeting; at != nullptr; at = at->outer) {
    if (at->callee_frame == nullptr) continue;
    visit(frame, function);
    frame = at->frame;
    function = at->function;
  }
  visit(frame, function);
}

// A meeting of the lanes that run, which will go on at `pc`.
Meeting& open_meeting(Warp& w, std::uint32_t pc);
// The lanes that run have come to their meeting.
const MicroOp* meet(Warp& w);
// The lanes that ran have left the function or the kernel: their places at meetings are vacant.
const MicroOp* leave_meetings(Warp& w);

[[nodiscard]] bool same_uniforms(const Group& a, const Group& b);
// Some of the lanes that run stay where they are, at `pc`, while the others go on.
Group& park(Warp& w, std::uint32_t pc, Mask lanes, Wait wait = Wait::nothing);
// The group becomes what runs, without leaving Warp::groups.
void put_in_place(Warp& w, const Group& group);
// The next group that can run. Null: none can, or the warp has ended.
const MicroOp* next_group(Warp& w);
// Lets groups go on that have all they wait for within the warp.
void settle(Warp& w);
// Ready groups at one place become one.
void unite(Warp& w);
// Lanes that wait at a meeting for lanes that cannot run go on without those. False: there are
// none.
bool go_on_apart(Warp& w);
// The lanes that run, at Warp::resume, let the others run; `apart`: those too that wait for them at
// a meeting.
void take_turns(Warp& w, bool apart);
// The lanes that looked at memory saw a change, or none.
inline void polled(Warp& w, bool changed) {
  w.polls = changed ? 0 : w.polls + 1;
  if (w.polls >= max_polls) w.budget = 0;
}

namespace control {
inline constexpr std::uint8_t step_together = 1;  // flag of step: what follows is done at once
// All lanes of the warp that have not exited execute the next instruction together.
const MicroOp* step(Warp& w, const MicroOp* op);
// a: what a load gave, width: its bytes; d: a uniform slot that remembers it.
const MicroOp* poll(Warp& w, const MicroOp* op);
const MicroOp* yield(Warp& w, const MicroOp* op);
}  // namespace control

}  // namespace demarc::emulate
