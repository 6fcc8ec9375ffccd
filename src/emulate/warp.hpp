// The machine that micro-ops run on. A register is 32 lanes side by side (a vector slot, 32 * size
// bytes) or, where all lanes provably hold the same value, one 8-byte uniform slot. Predicates are
// 32-bit masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "demarc/emulate/trace.hpp"

namespace demarc::emulate {

inline constexpr unsigned warp_size = 32;
using Mask = std::uint32_t;
inline constexpr Mask full_mask = ~Mask{0};

struct Warp;
struct MicroOp;
class Block;
struct Program;

// Executes one micro-op and returns the next, or null when the warp stops for now (Warp::state says
// why).
using Handler = const MicroOp* (*)(Warp&, const MicroOp*);

// Operand bits of MicroOp::uniform: operand i is a uniform slot. Bit 7: the destination is.
inline constexpr std::uint8_t uniform_a = 1;
inline constexpr std::uint8_t uniform_b = 2;
inline constexpr std::uint8_t uniform_c = 4;
inline constexpr std::uint8_t uniform_d = 128;

// Bits of MicroOp::flags of memory micro-ops.
inline constexpr std::uint8_t memory_narrow_address = 1;  // the address register has 32 bits
inline constexpr std::uint8_t memory_strong = 2;          // volatile, relaxed and stronger
inline constexpr std::uint8_t memory_plain_store = 4;     // st, whose values race checks look at
inline constexpr std::uint8_t memory_acquires = 8;
inline constexpr std::uint8_t memory_releases = 16;
inline constexpr std::uint8_t memory_unraced = 32;  // race checks pass it over
inline constexpr std::uint8_t memory_tracked = 64;  // a load whose unwritten bytes may matter later

struct alignas(64) MicroOp {
  Handler run = nullptr;
  std::uint32_t d = 0;  // byte offsets into the frame
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint64_t imm = 0;
  const void* aux = nullptr;  // details of rare micro-ops; owned by the Program
  std::uint32_t target = 0;   // micro-op index
  std::uint32_t join = 0;  // micro-op index of the reconvergence point, no_join when there is none
  std::uint32_t instruction = 0;
  std::uint8_t uniform = 0;
  std::uint8_t bytes = 0;  // bytes of one element in memory
  std::uint8_t count = 1;  // elements of a vector access
  std::uint8_t flags = 0;  // MemoryFlag, or the micro-op's own
  std::uint8_t kind = 0;   // AddressKind of a memory micro-op
  std::uint8_t width = 0;  // bytes of the register behind `b` of a store
};
static_assert(sizeof(MicroOp) == 64);

inline constexpr std::uint32_t no_join = ~std::uint32_t{0};

// A shadow byte has a bit for each bit of its byte, set once it is written.
inline constexpr std::uint8_t wholly_written = 0xff;

// Contiguous device memory. Addresses [low, high); host = address + delta.
struct Region {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t delta = 0;         // added modulo 2^64
  std::uint8_t* shadow = nullptr;  // one byte per byte; null: all is written
  bool writable = true;
};

// Registers in uniform slots, of the frames from the innermost to the kernel's.
using Uniforms = std::vector<std::uint64_t>;

// Where lanes that went different ways meet again, or those that a call took into a function. They
// go on at `pc`, with the frame that they had there.
struct Meeting {
  std::uint32_t pc = 0;          // micro-op index
  std::uint32_t join = no_join;  // of the meeting around it
  Mask mask = 0;                 // lanes that come, and those that have and still wait
  Mask arrived = 0;              // those that wait
  Meeting* outer = nullptr;
  std::byte* frame = nullptr;
  std::uint32_t function = 0;
  std::uint32_t local_base = 0;
  std::byte* callee_frame = nullptr;  // of a call; null: of a branch
  std::uint32_t callee = 0;
  std::uint32_t depth = 0;             // calls up to here
  std::unique_ptr<Uniforms> uniforms;  // of those that went on early; null: none did
};

// Lanes that run in step, and where they are.
struct Lanes {
  std::byte* frame = nullptr;
  Mask mask = 0;                     // lanes that execute the current micro-op
  std::uint32_t top_join = no_join;  // the micro-op of `meeting`, where that is one of a branch
  Meeting* meeting = nullptr;        // the innermost
  std::uint32_t function = 0;        // whose frame it is
  std::uint32_t local_base =
      0;  // offset of the current function's locals in the thread's local memory
};

// What lanes wait for.
enum class Wait : std::uint8_t {
  nothing,
  members,  // the other lanes of a member mask
  step,     // all lanes of the warp, at the same micro-op
  barrier,  // of the block
  cluster   // its barrier
};

// Lanes of a warp that run apart from others.
struct Group : Lanes {
  Group() = default;
  // One member after the other: a copy of all at once would wait until what was just written to
  // some of them has left the processor's store buffer.
  Group(const Lanes& all, Mask some, std::uint32_t place, Wait for_what)
      : pc(place), wait(for_what) {
    frame = all.frame;
    mask = some;
    top_join = all.top_join;
    meeting = all.meeting;
    function = all.function;
    local_base = all.local_base;
  }

  // What they waited for has come: they go on behind it.
  void stop_waiting() {
    wait = Wait::nothing;
    ++pc;
  }

  std::uint32_t pc = 0;  // where they go on, or the micro-op at which they wait
  Wait wait = Wait::nothing;
  Mask members = 0;                    // those of Wait::members
  std::uint32_t barrier = 0;           // the number of Wait::barrier
  std::unique_ptr<Uniforms> uniforms;  // null unless the warp is torn
};

enum class WarpState : std::uint8_t { ready, waiting, done };

// What handlers touch all the time comes first: it is of the group that runs.
struct alignas(64) Warp : Lanes {
  Warp() = default;
  Warp(Warp&&) = default;
  Warp& operator=(Warp&&) = default;

  Mask saved_mask = 0;  // while a guard narrows `mask`
  Block* block = nullptr;
  const Program* program = nullptr;
  std::uint64_t thread_instructions = 0;
  std::uint64_t warp_instructions = 0;
  std::int64_t budget = 0;  // warp instructions until the next warp gets its turn
  bool tracing = false;
  bool trace_runs = false;
  bool check_races = false;
  bool tracked = false;       // registers may hold bits that were not written: see Unwritten
  bool begins = false;        // a load just got some; the warp stops to be tracked
  bool plain_atomics = true;  // no other thread touches global memory
  WarpState state = WarpState::ready;

  Mask live = 0;            // lanes that have not exited
  std::uint32_t index = 0;  // in the block
  std::uint32_t resume = 0;
  Mask cluster_arrived = 0;          // lanes that have, and have not waited since
  Mask cluster_pending = 0;          // those for whose phase of the cluster's barrier others lack
  std::uint32_t carry = 0;           // condition code of add.cc and its kin, a mask
  const std::uint32_t* tid[3] = {};  // 32 values each
  std::vector<Group> groups;         // those that do not run now; the last ready one comes next
  // Lanes went on from a meeting to which others still come: each group has uniform slots of its
  // own.
  bool torn = false;
  std::uint32_t polls = 0;       // looks at memory in a row that found what was there before
  std::uint32_t idle_turns = 0;  // turns in a row that ended in such looks
  std::uint64_t turned = 0;      // warp_instructions when another group came last
  std::byte* kernel_frame = nullptr;
  std::deque<Meeting> meetings;      // in use, and spare ones
  Meeting* spare_meeting = nullptr;  // the next of them is `outer`
  std::uint64_t memory_accesses = 0;
  std::uint64_t divergent_branches = 0;
  std::uint64_t barriers = 0;

  template <class T>
  T* at(std::uint32_t offset) {
    return reinterpret_cast<T*>(frame + offset);
  }
  // All lanes wait at the block's barrier at `resume`. They stay in place: they are no group.
  [[nodiscard]] bool waits_whole() const { return state == WarpState::waiting && mask != 0; }
};

}  // namespace demarc::emulate
