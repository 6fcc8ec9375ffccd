// Address translation on the way of accesses from the L1s to the L2: levels of TLBs, and walkers,
// which all clients share and which read page tables through the L2.
//
// An access goes on after the cycles of the level that translates it. After a miss of all levels it
// waits for a walk, which further accesses to the same group of pages join. A walk waits for a
// walker, reads the entries of its group, and puts them into the TLBs. A TLB that is full of misses
// does not exist here: any number of accesses may wait for walks.
#pragma once

#include <unordered_map>

#include "l2.hpp"
#include "tlb.hpp"

namespace demarc::sim::memory {

// Pages of a client, by their order in its memory.
using ClientPage = Index<struct ClientPageTag, std::uint64_t>;

class Mmu : public Part {
 public:
  // An access that waits for a walk.
  struct Waiter {
    L2::Leaving leaving;
    ClientPage page;
    WalkerWaiterIndex next = none;
  };
  // The pages that one entry of the last level covers.
  struct Walk {
    TlbKey key;
    PhysicalAddress entries;  // what it reads
    ClientIndex client;
    Fifo<WalkerWaiterIndex> waiters;
    WalkIndex next = none;  // in the queue for a walker, or of those that are free
  };
  struct State {
    bool on = false;
    PerIndex<WalkIndex, Walk> walks;
    PerIndex<WalkerWaiterIndex, Waiter> waiters;
    WalkIndex free_walk = none;
    WalkerWaiterIndex free_waiter = none;
    std::uint32_t busy = 0;         // walkers
    Fifo<WalkIndex> waiting;        // walks that need one
    std::uint32_t waiters_now = 0;  // accesses that wait for walks
  };

  Mmu(Common& common, L2& l2);

  State state;

  // Translation begins, for all clients, with the first one whose pages are beyond the reach of the
  // first level, or, for pages of the usual size, of the last one. As long as it is off, accesses
  // take the time that they take within that reach.
  void add_client(const Translation& translation);
  [[nodiscard]] bool on() const { return state.on; }
  // As L2::send(), for an access of a client to `address`, once it is translated.
  void send(Packet& packet, Cycles at, const Translation& translation, Address address);

  // Events.
  void walk(WalkIndex walk);
  void walked(PacketIndex packet);

 private:
  struct Level {
    std::vector<Tlb> tlbs;  // one for all SMs, or one per SM
    [[nodiscard]] Tlb& of(SmIndex sm) { return tlbs[tlbs.size() == 1 ? 0 : sm.raw()]; }
  };
  [[nodiscard]] TlbKey key_of(ClientIndex client, ClientPage page, const TlbSpec& level) const {
    return TlbKey((client.raw<std::uint64_t>() << 48U) | (page.raw() >> level.page_bits));
  }
  void enter(SmIndex sm, ClientIndex client, ClientPage page, std::size_t levels);
  void wait_for_walk(const Packet& packet, const Translation& translation, const Waiter& waiter);
  [[nodiscard]] WalkIndex new_walk();
  void read_entries(WalkIndex walk);

  L2& l2_;
  std::vector<Level> levels_;
  std::unordered_map<std::uint64_t, WalkIndex> walk_of_;  // by the keys of the last level
};

}  // namespace demarc::sim::memory
