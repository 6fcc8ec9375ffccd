// Looks pages up in TLBs and walks page tables.
#include "mmu.hpp"

#include <algorithm>

namespace demarc::sim::memory {
namespace {

constexpr std::uint32_t table_piece_shift = 21;

// Where the entries of the group of pages lie that begins with `first`.
PhysicalAddress entries_at(const Paging& paging, std::uint64_t first, std::uint32_t entry_bytes) {
  const std::uint64_t offset = first * entry_bytes;
  return paging.tables.at(offset >> table_piece_shift) +
         (offset & ((std::uint64_t{1} << table_piece_shift) - 1));
}

}  // namespace

Mmu::Mmu(Common& common, L2& l2) : Part(common), l2_(l2) {
  for (const TlbSpec& level : spec.tlbs) {
    levels_.push_back({std::vector<Tlb>(level.per_sm ? spec.sms() : 1, Tlb(level.entries))});
  }
}

void Mmu::add_client(const Translation& translation) {
  if (levels_.empty() || translation.paging.tables.empty()) return;
  const std::uint64_t bytes = std::uint64_t{translation.chunks.size()} << translation.chunk_shift;
  const TlbSpec& level = translation.paging.usual ? spec.tlbs.back() : spec.tlbs.front();
  const std::uint64_t reach = std::uint64_t{level.entries} << level.page_bits;
  state.on = state.on || (bytes >> translation.paging.page_shift) > reach;
}

void Mmu::send(Packet& packet, Cycles at, const Translation& translation, Address address) {
  const L2::Leaving leaving = l2_.prepare(packet, at);
  if (translation.paging.tables.empty()) return l2_.leave(leaving);
  const ClientPage page((address - translation.base) >> translation.paging.page_shift);
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    if (!levels_[i].of(packet.sm).touch(key_of(packet.client, page, spec.tlbs[i]))) continue;
    enter(packet.sm, packet.client, page, i);
    return l2_.leave({leaving.at + spec.tlbs[i].hit_cycles, leaving.event});
  }
  wait_for_walk(packet, translation,
                {{leaving.at + spec.tlbs.back().hit_cycles, leaving.event}, page, none});
}

// Into the first `levels` levels that the SM asks.
void Mmu::enter(SmIndex sm, ClientIndex client, ClientPage page, std::size_t levels) {
  for (std::size_t i = 0; i < levels; ++i) {
    levels_[i].of(sm).enter(key_of(client, page, spec.tlbs[i]));
  }
}

WalkIndex Mmu::new_walk() {
  WalkIndex index = state.free_walk;
  if (index == none) {
    index = state.walks.next_key();
    state.walks.emplace_back();
  } else {
    state.free_walk = state.walks[index].next;
  }
  return index;
}

void Mmu::wait_for_walk(const Packet& packet, const Translation& translation,
                        const Waiter& waiter) {
  const TlbSpec& last = spec.tlbs.back();
  const TlbKey key = key_of(packet.client, waiter.page, last);
  const auto [known, added] = walk_of_.try_emplace(key.raw(), WalkIndex(none));
  if (added) {
    known->second = new_walk();
    const std::uint64_t first = waiter.page.raw() >> last.page_bits << last.page_bits;
    state.walks[known->second] = {
        .key = key,
        .entries = entries_at(translation.paging, first, spec.table_entry_bytes),
        .client = packet.client,
        .waiters = {},
        .next = none};
    ++common_.statistics[packet.client].page_walks;
    schedule<EventKind::walk>(waiter.leaving.at, known->second);
  }
  WalkerWaiterIndex place = state.free_waiter;
  if (place == none) {
    place = state.waiters.next_key();
    state.waiters.emplace_back();
  } else {
    state.free_waiter = state.waiters[place].next;
  }
  state.waiters[place] = waiter;
  push_back(state.walks[known->second].waiters, state.waiters, place);
  ++state.waiters_now;
}

// A walk reaches the walkers.
void Mmu::walk(WalkIndex index) {
  if (state.busy == spec.walkers) {
    push_back(state.waiting, state.walks, index);
    return;
  }
  ++state.busy;
  read_entries(index);
}

void Mmu::read_entries(WalkIndex index) {
  const Walk& walk = state.walks[index];
  Packet packet;
  packet.line = line_of(walk.entries);
  const std::uint32_t first = sector_of(walk.entries);
  packet.sectors = static_cast<std::uint8_t>(first * ((1U << spec.walk_sectors()) - 1));
  packet.owner = index;
  packet.client = walk.client;
  packet.walk = true;
  l2_.send_from_walker(packet, now() + spec.walk_cycles);
}

// What a walk has read is there: the accesses that waited for it go on, and so does the next walk.
void Mmu::walked(PacketIndex packet) {
  const WalkIndex index = l2_.take_out(packet).owner.as<WalkIndex>();
  Walk& walk = state.walks[index];
  for (WalkerWaiterIndex at = walk.waiters.head; at != none;) {
    Waiter& waiter = state.waiters[at];
    const WalkerWaiterIndex next = waiter.next;
    enter(waiter.leaving.event.sm, walk.client, waiter.page, levels_.size());
    l2_.leave({std::max(now(), waiter.leaving.at), waiter.leaving.event});
    waiter.next = state.free_waiter;
    state.free_waiter = at;
    at = next;
  }
  state.waiters_now -= walk.waiters.size;
  walk_of_.erase(walk.key.raw());
  walk.next = state.free_walk;
  state.free_walk = index;
  if (state.waiting.head == none) {
    --state.busy;
    return;
  }
  const WalkIndex following = state.waiting.head;
  remove_after(state.waiting, state.walks, none);
  read_entries(following);
}

}  // namespace demarc::sim::memory
