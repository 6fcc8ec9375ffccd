// Lines on their way between SMs and the L2, and the links that they take.
#pragma once

#include "events.hpp"
#include "tag_array.hpp"

namespace demarc::sim::memory {

// A link or bus, busy until free_at. Users come in order of time.
struct Server {
  Ticks free_at;
  // The cycle in which `ticks` of service, asked for at `now`, have ended.
  Cycles take(Cycles now, Ticks ticks) {
    const Ticks begin = ticks_of(now);
    free_at = (free_at > begin ? free_at : begin) + ticks;
    return cycles_of(free_at);
  }
};

// Sectors in a mask of four; the baseline instruction set has no instruction for it.
inline std::uint32_t sector_count(std::uint8_t mask) {
  return static_cast<std::uint32_t>((0x4332322132212110ULL >> (4U * mask)) & 15U);
}

// A line asked for, on its way out or back. Half a line of the host's cache.
struct alignas(16) Packet {
  LineNumber line;
  PacketIndex next = none;  // in a wait queue or a list of waiters
  // A request: `injected`; a client: `launch`; a walk: `walk`.
  OneOf<WarpIndex, RequestIndex, ClientIndex, WalkIndex> owner;
  L1Tags::Way l1_line = none;  // to be filled; none: the owner waits for it alone
  RowNumber row;
  Packed<SmIndex, std::uint16_t> sm;
  Packed<SliceIndex, std::uint16_t> slice;
  Packed<ClientIndex, std::uint16_t> client;
  Packed<SetInSlice, std::uint16_t> set;  // place in the slice and its channel
  Packed<BankInSlice, std::uint8_t> bank;
  StepKind kind = StepKind::load;
  std::uint8_t sectors = 0;
  bool injected : 1 = false;
  bool cached : 1 = true;
  bool launch : 1 = false;
  bool streams : 1 = false;  // its line is the first that goes
  bool listed : 1 = false;   // the owner is in the list of its L1 line
  bool walk : 1 = false;

  // A kernel's own access, which counts in the statistics of its client.
  [[nodiscard]] bool of_kernel() const { return !injected && !launch && !walk; }
};
static_assert(sizeof(Packet) == 32);

template <class Key, class T>
using LargePerIndex = PerIndex<Key, T, LargeAllocator<T>>;

// The set of an L1 by its number, of which more bits may be set than it has.
[[nodiscard]] inline L1Tags::Set l1_set(const Spec& spec, SmIndex sm, std::uint32_t number) {
  return L1Tags::Set(sm.raw() * spec.l1.sets + (number & (spec.l1.sets - 1)));
}

}  // namespace demarc::sim::memory
