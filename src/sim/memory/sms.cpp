// Warps, load-store units and L1 caches.
#include "sms.hpp"

#include <algorithm>
#include <bit>

namespace demarc::sim::memory {
namespace {

// A long stretch of arithmetic is issued in slices, so that warps of one SM take turns.
constexpr std::uint32_t issue_slice = 128;

constexpr std::uint32_t whole_share = 255;  // WarpSlot::float_share

std::uint8_t share_of(std::uint64_t part, std::uint64_t all) {
  return part == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(ceil_div(part * whole_share, all));
}

bool answers(StepKind kind) {
  return kind == StepKind::load || kind == StepKind::atomic;
}

}  // namespace

Sms::Sms(Common& common) : Part(common), l2(common, state.l1), mmu(common, l2) {
  state.sms.resize(spec.sms());
  if (spec.l1.sets == 0) return;
  l1_set_bits_ = static_cast<std::uint32_t>(std::countr_zero(spec.l1.sets));
  state.l1.resize(spec.sms(), spec.l1.sets, spec.l1.ways);
  state.l1_lists.assign(state.l1.indices(), none);
}

void Sms::take_step(WarpIndex index, BlockSlot& block) {
  WarpSlot& warp = state.warps[index];
  Step& step = state.step;
  block.work->next(warp.index, step);
  warp.kind = step.kind;
  warp.wait = step.wait;
  warp.past_l1 = step.past_l1;
  warp.streams = step.streams;
  warp.instructions = step.instructions;
  warp.shared_rows = step.shared_rows;
  warp.float_share =
      spec.float_ticks == Ticks() ? std::uint8_t{0} : share_of(step.floats, step.instructions);
  warp.lines = step.count;
  warp.lines_done = 0;
  warp.has_step = true;
  common_.statistics[block.client].instructions += step.instructions;
  if (step.count == 0) return;
  warp.line = step.lines[0];
  if (step.count > 1) {
    std::copy_n(step.lines.begin(), step.count, state.warp_lines[index].begin());
  }
}

void Sms::advance(WarpIndex index) {
  WarpSlot& warp = state.warps[index];
  warp.state = WarpState::ready;
  BlockSlot& block = state.blocks[warp.block];
  for (;;) {
    if (!warp.has_step) take_step(index, block);
    if ((warp.wait || warp.kind == StepKind::end) && warp.outstanding > 0) {
      warp.state = WarpState::loads;
      return;
    }
    if (warp.instructions > 0) {
      const std::uint32_t count = std::min(warp.instructions, issue_slice);
      warp.instructions -= count;
      SmState& sm = state.sms[block.sm];
      Cycles issued = sm.issue.take(now(), count * spec.issue_ticks);
      if (warp.float_share != 0) {
        const std::uint64_t ticks = count * warp.float_share * spec.float_ticks.raw();
        issued = std::max(issued, sm.floats.take(now(), Ticks(ceil_div(ticks, whole_share))));
      }
      if (warp.shared_rows != 0) {  // with the first slice: the others follow it
        issued = std::max(issued, sm.shared.take(now(), warp.shared_rows * spec.shared_ticks));
        warp.shared_rows = 0;
      }
      schedule<EventKind::warp>(std::max(issued, now() + count * spec.instruction_cycles), index);
      return;
    }
    switch (warp.kind) {
      case StepKind::work:
        warp.has_step = false;
        break;
      case StepKind::barrier:
        warp.has_step = false;
        barrier(index);
        return;
      case StepKind::end:
        end_warp(index);
        return;
      default:
        queue_access(index);
        return;
    }
  }
}

void Sms::barrier(WarpIndex index) {
  WarpSlot& warp = state.warps[index];
  BlockSlot& block = state.blocks[warp.block];
  warp.state = WarpState::barrier;
  if (++block.arrived == block.live) complete_barrier(block);
}

void Sms::complete_barrier(BlockSlot& block) {
  block.arrived = 0;
  for (const WarpIndex other : block.warps) {
    if (state.warps[other].state != WarpState::barrier) continue;
    state.warps[other].state = WarpState::ready;
    schedule<EventKind::warp>(now() + 1_cycles, other);
  }
}

void Sms::end_warp(WarpIndex index) {
  WarpSlot& warp = state.warps[index];
  const BlockIndex number = warp.block;
  BlockSlot& block = state.blocks[number];
  warp.state = WarpState::free;
  --block.live;
  if (block.live == 0) {
    end_block(number);
  } else if (block.arrived == block.live) {
    complete_barrier(block);
  }
}

void Sms::load_done(WarpIndex index) {
  WarpSlot& warp = state.warps[index];
  if (--warp.outstanding == 0 && warp.state == WarpState::loads) advance(index);
}

void Sms::queue_access(WarpIndex index) {
  WarpSlot& warp = state.warps[index];
  const SmIndex number = state.blocks[warp.block].sm;
  SmState& sm = state.sms[number];
  warp.state = WarpState::lsu;
  push_back(sm.lsu, state.warps, index);
  if (sm.lsu_scheduled || sm.lsu_stalled || sm.lsu.size > 1) return;
  if (sm.lsu_free <= now()) {
    run_lsu(number);
  } else {
    sm.lsu_scheduled = true;
    schedule<EventKind::lsu>(sm.lsu_free, number);
  }
}

void Sms::resume_lsu(SmIndex number) {
  SmState& sm = state.sms[number];
  if (!sm.lsu_stalled || sm.lsu_scheduled) return;
  sm.lsu_stalled = false;
  sm.lsu_scheduled = true;
  schedule<EventKind::lsu>(std::max(now(), sm.lsu_free), number);
}

[[gnu::noinline]] void Sms::outside(ClientIndex client, Address address) {
  const Translation& translation = clients[client].translation;
  fail(ErrorKind::invalid_input,
       fmt::format("{}: address {:#x} lies outside its memory, [{:#x}, {:#x})",
                   clients[client].name, address, translation.base,
                   translation.base + (translation.chunks.size() << translation.chunk_shift)));
}

// False: a register is missing and the line must wait.
inline bool Sms::issue_line(SmIndex number, WarpIndex index, LineEntry entry, Cycles at,
                            bool& l1_hit) {
  SmState& sm = state.sms[number];
  WarpSlot& warp = state.warps[index];
  const StepKind kind = warp.kind;
  if (answers(kind) ? sm.misses >= spec.l1_miss_registers : sm.stores >= spec.store_registers) {
    return false;
  }
  const ClientIndex client = state.blocks[warp.block].client;
  const Address address = entry.line();
  const auto line = line_at(clients[client].translation, address);
  if (!line) {
    outside(client, address);
    return true;  // the run ends with the error
  }
  ClientStatistics& statistics = common_.statistics[client];
  Packet packet;
  packet.line = *line;
  packet.owner = index;
  packet.sm = number;
  packet.client = client;
  packet.kind = kind;
  packet.streams = warp.streams;
  packet.sectors = static_cast<std::uint8_t>(entry.sectors());
  const std::uint32_t sectors = sector_count(packet.sectors);
  if (kind == StepKind::load) {
    statistics.load_sectors += sectors;
    const bool past_l1 = spec.l1.sets == 0 || warp.past_l1;
    if (!past_l1 && !passes_l1(packet, l1_hit)) return true;
    if (past_l1) ++warp.outstanding;
    ++sm.misses;
  } else if (kind == StepKind::store) {
    statistics.store_sectors += sectors;
    ++sm.stores;
    ++state.clients[client].stores;
  } else {
    statistics.atomic_sectors += sectors;
    if (kind == StepKind::atomic) {
      ++sm.misses;
      ++warp.outstanding;
    } else {
      ++sm.stores;
      ++state.clients[client].stores;
    }
  }
  if (mmu.on()) {
    send_translated(packet, at, address);
  } else {
    l2.send(packet, at);
  }
  return true;
}

[[gnu::noinline]] void Sms::send_translated(Packet& packet, Cycles at, Address address) {
  mmu.send(packet, at, clients[packet.client].translation, address);
}

// What the L1 lacks of a load stays in the packet; false: nothing. The warp waits unless all was
// there.
inline bool Sms::passes_l1(Packet& packet, bool& l1_hit) {
  L1Tags& l1 = state.l1;
  const L1Tags::Set set = l1_set_of(packet.sm, packet.line);
  L1Tags::Way found = l1.find(set, packet.line);
  if (found != none) {
    const std::uint32_t known = packet.sectors & (l1.valid(found) | l1.pending(found));
    common_.statistics[packet.client].l1_hit_sectors +=
        sector_count(static_cast<std::uint8_t>(known));
  }
  if (found != none && (l1.valid(found) & packet.sectors) == packet.sectors) {
    l1.use(packet.sm, found);
    l1_hit = true;
    return false;
  }
  const WarpIndex owner = packet.owner.as<WarpIndex>();
  ++state.warps[owner].outstanding;
  state.sms[packet.sm].l1_used = true;
  if (found == none) {
    found = l1.victim(set);
    if (found == none) return true;  // every way waits: the load goes past the L1
    l1.install(packet.sm, found, packet.line);
    if (packet.streams) l1.let_go(found);
    l1.state(found) |= std::uint32_t{packet.sectors} << L1Tags::pending_shift;
    packet.l1_line = found;
    return true;
  }
  l1.use(packet.sm, found);
  const std::uint32_t pending = l1.pending(found);
  if ((packet.sectors & pending) != 0) {  // others have asked for some of it
    wait_in_list(owner, found, packet.sectors);
    packet.listed = true;
  }
  packet.sectors = static_cast<std::uint8_t>(packet.sectors & ~(l1.valid(found) | pending));
  if (packet.sectors == 0) return false;
  l1.state(found) |= std::uint32_t{packet.sectors} << L1Tags::pending_shift;
  packet.l1_line = found;
  return true;
}

// Takes the instruction at the head of the queue, one line a cycle, until registers run out.
void Sms::run_lsu(SmIndex number) {
  SmState& sm = state.sms[number];
  sm.lsu_stalled = false;
  if (sm.lsu.head == none) return;
  const WarpIndex index = sm.lsu.head;
  WarpSlot& warp = state.warps[index];
  Cycles at = now();
  bool l1_hit = false;
  bool stalled = false;
  while (warp.lines_done < warp.lines) {
    const LineEntry entry = warp.lines == 1 ? warp.line : state.warp_lines[index][warp.lines_done];
    if (!issue_line(number, index, entry, at, l1_hit)) {
      stalled = true;
      break;
    }
    ++warp.lines_done;
    ++at;
  }
  if (l1_hit) {
    ++warp.outstanding;
    schedule<EventKind::l1_hit>(at - 1_cycles + spec.l1_hit_cycles, index);
  }
  sm.lsu_free = std::max(at, now() + 1_cycles);
  if (stalled) {
    sm.lsu_stalled = true;
    return;
  }
  remove_after(sm.lsu, state.warps, none);
  warp.has_step = false;
  warp.state = WarpState::ready;
  schedule<EventKind::warp>(sm.lsu_free, index);
  if (sm.lsu.head != none) {
    sm.lsu_scheduled = true;
    schedule<EventKind::lsu>(sm.lsu_free, number);
  }
}

void Sms::wait_in_list(WarpIndex warp, L1Tags::Way l1_line, std::uint8_t needed) {
  WaiterIndex waiter = state.free_waiter;
  if (waiter == none) {
    waiter = state.l1_waiters.next_key();
    state.l1_waiters.emplace_back();
  } else {
    state.free_waiter = state.l1_waiters[waiter].next;
  }
  state.l1_waiters[waiter] = {warp, state.l1_lists[l1_line], needed};
  state.l1_lists[l1_line] = waiter;
  state.l1.state(l1_line) |= L1Tags::waited_bit;
}

// Those in the list of a line whose sectors have all arrived, oldest first.
WaiterIndex Sms::ready_waiters(L1Tags::Way l1_line) {
  const std::uint32_t valid = state.l1.valid(l1_line);
  WaiterIndex still = none;
  WaiterIndex ready = none;
  WaiterIndex last_still = none;
  for (WaiterIndex at = state.l1_lists[l1_line]; at != none;) {  // newest first
    L1Waiter& waiter = state.l1_waiters[at];
    const WaiterIndex next = waiter.next;
    if ((waiter.needed & ~valid) == 0) {
      waiter.next = ready;
      ready = at;
    } else {
      waiter.next = none;
      (last_still == none ? still : state.l1_waiters[last_still].next) = at;
      last_still = at;
    }
    at = next;
  }
  state.l1_lists[l1_line] = still;
  if (still == none) state.l1.state(l1_line) &= ~L1Tags::waited_bit;
  return ready;
}

void Sms::packet_done(const Packet& packet) {
  if (packet.launch) {
    read_for_launch(packet.owner.as<ClientIndex>());
    return;
  }
  SmState& sm = state.sms[packet.sm];
  if (!answers(packet.kind)) {
    --sm.stores;
    --state.clients[packet.client].stores;
    resume_lsu(packet.sm);
    end_kernel_if_done(packet.client);
    return;
  }
  --sm.misses;
  const WarpIndex owner = packet.owner.as<WarpIndex>();
  if (packet.l1_line == none) {
    load_done(owner);
  } else {
    std::uint32_t& of_line = state.l1.state(packet.l1_line);
    of_line |= packet.sectors;
    of_line &= ~(std::uint32_t{packet.sectors} << L1Tags::pending_shift);
    // Warps are woken in the order in which they asked: none that asked for sectors of this packet
    // did so before its owner.
    WaiterIndex ready = none;
    if ((of_line & L1Tags::waited_bit) != 0) ready = ready_waiters(packet.l1_line);
    if (!packet.listed) load_done(owner);
    while (ready != none) {
      const WaiterIndex next = state.l1_waiters[ready].next;
      const WarpIndex warp = state.l1_waiters[ready].warp;
      state.l1_waiters[ready].next = state.free_waiter;
      state.free_waiter = ready;
      load_done(warp);
      ready = next;
    }
  }
  resume_lsu(packet.sm);
}

}  // namespace demarc::sim::memory
