// Warps, load-store units and L1 caches.
#include <algorithm>

#include "engine.hpp"
#include "fifo.hpp"

namespace demarc::sim::memory {
namespace {

// A long stretch of arithmetic is issued in slices, so that warps of one SM take turns.
constexpr std::uint32_t issue_slice = 128;

bool answers(StepKind kind) {
  return kind == StepKind::load || kind == StepKind::atomic;
}

}  // namespace

void Engine::take_step(std::uint32_t index, BlockSlot& block) {
  WarpSlot& warp = state.warps[index];
  Step& step = state.step;
  block.work->next(warp.index, step);
  warp.kind = step.kind;
  warp.wait = step.wait;
  warp.instructions = step.instructions;
  warp.lines = step.count;
  warp.lines_done = 0;
  warp.has_step = true;
  state.clients[block.client].statistics.instructions += step.instructions;
  if (step.count == 0) return;
  warp.line = step.lines[0];
  if (step.count > 1) {
    std::copy_n(step.lines.begin(), step.count, state.warp_lines[index].begin());
  }
}

void Engine::advance(std::uint32_t index) {
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
      const Cycles issued = state.sms[block.sm].issue.take(now(), count * spec.issue_ticks);
      schedule(std::max(issued, now() + count * spec.instruction_cycles), EventKind::warp, index);
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

void Engine::barrier(std::uint32_t index) {
  WarpSlot& warp = state.warps[index];
  BlockSlot& block = state.blocks[warp.block];
  warp.state = WarpState::barrier;
  if (++block.arrived < block.live) return;
  block.arrived = 0;
  for (const std::uint32_t other : block.warps) {
    if (state.warps[other].state != WarpState::barrier) continue;
    state.warps[other].state = WarpState::ready;
    schedule(now() + 1_cycles, EventKind::warp, other);
  }
}

void Engine::end_warp(std::uint32_t index) {
  WarpSlot& warp = state.warps[index];
  const std::uint32_t number = warp.block;
  BlockSlot& block = state.blocks[number];
  warp.state = WarpState::free;
  --block.live;
  if (block.live == 0) {
    end_block(number);
  } else if (block.arrived == block.live) {  // the others wait at a barrier for nobody else
    block.arrived = 0;
    for (const std::uint32_t other : block.warps) {
      if (state.warps[other].state != WarpState::barrier) continue;
      state.warps[other].state = WarpState::ready;
      schedule(now() + 1_cycles, EventKind::warp, other);
    }
  }
}

void Engine::load_done(std::uint32_t index) {
  WarpSlot& warp = state.warps[index];
  if (--warp.outstanding == 0 && warp.state == WarpState::loads) advance(index);
}

void Engine::queue_access(std::uint32_t index) {
  WarpSlot& warp = state.warps[index];
  const std::uint32_t number = state.blocks[warp.block].sm;
  SmState& sm = state.sms[number];
  warp.state = WarpState::lsu;
  push_back(sm.lsu, state.warps, index);
  if (sm.lsu_scheduled || sm.lsu_stalled || sm.lsu.size > 1) return;
  if (sm.lsu_free <= now()) {
    run_lsu(number);
  } else {
    sm.lsu_scheduled = true;
    schedule(sm.lsu_free, EventKind::lsu, number);
  }
}

void Engine::resume_lsu(std::uint32_t number) {
  SmState& sm = state.sms[number];
  if (!sm.lsu_stalled || sm.lsu_scheduled) return;
  sm.lsu_stalled = false;
  sm.lsu_scheduled = true;
  schedule(std::max(now(), sm.lsu_free), EventKind::lsu, number);
}

[[gnu::noinline]] void Engine::outside(std::uint32_t client, Address address) {
  const Translation& translation = clients[client].translation;
  fail(ErrorKind::invalid_input,
       fmt::format("{}: address {:#x} lies outside its memory, [{:#x}, {:#x})",
                   clients[client].name, address, translation.base,
                   translation.base + (translation.chunks.size() << translation.chunk_shift)));
}

// False: a register is missing and the line must wait.
inline bool Engine::issue_line(std::uint32_t number, std::uint32_t index, LineEntry entry,
                               Cycles at, bool& l1_hit) {
  SmState& sm = state.sms[number];
  WarpSlot& warp = state.warps[index];
  const StepKind kind = warp.kind;
  if (answers(kind) ? sm.misses >= spec.l1_miss_registers : sm.stores >= spec.store_registers) {
    return false;
  }
  const std::uint32_t client = state.blocks[warp.block].client;
  const Address address = entry.line();
  const auto line = line_at(clients[client].translation, address);
  if (!line) {
    outside(client, address);
    return true;  // the run ends with the error
  }
  ClientStatistics& statistics = state.clients[client].statistics;
  Packet packet;
  packet.line = *line;
  packet.owner = index;
  packet.sm = static_cast<std::uint16_t>(number);
  packet.client = static_cast<std::uint16_t>(client);
  packet.kind = kind;
  packet.sectors = static_cast<std::uint8_t>(entry.sectors());
  const std::uint32_t sectors = sector_count(packet.sectors);
  if (kind == StepKind::load) {
    statistics.load_sectors += sectors;
    if (spec.l1.sets != 0 && !passes_l1(packet, l1_hit)) return true;
    if (spec.l1.sets == 0) ++warp.outstanding;
    ++sm.misses;
  } else if (kind == StepKind::store) {
    statistics.store_sectors += sectors;
    ++sm.stores;
  } else {
    statistics.atomic_sectors += sectors;
    if (kind == StepKind::atomic) {
      ++sm.misses;
      ++warp.outstanding;
    } else {
      ++sm.stores;
    }
  }
  send(packet, at);
  return true;
}

// What the L1 lacks of a load stays in the packet; false: nothing. The warp waits unless all was
// there.
inline bool Engine::passes_l1(Packet& packet, bool& l1_hit) {
  TagArray& l1 = state.l1;
  const std::uint32_t set = l1_set(packet.sm, packet.line);
  std::uint32_t found = l1.find(set, packet.line);
  if (found != none && (l1.valid(found) & packet.sectors) == packet.sectors) {
    l1.use(packet.sm, found);
    l1_hit = true;
    state.clients[packet.client].statistics.l1_hit_sectors += sector_count(packet.sectors);
    return false;
  }
  ++state.warps[packet.owner].outstanding;
  if (found == none) {
    found = l1.victim(set);
    if (found == none) return true;  // every way waits: the load goes past the L1
    l1.install(packet.sm, found, packet.line);
    l1.state(found) |= std::uint32_t{packet.sectors} << TagArray::pending_shift;
    packet.l1_line = found;
    return true;
  }
  l1.use(packet.sm, found);
  const std::uint32_t pending = l1.pending(found);
  if ((packet.sectors & pending) != 0) {  // others have asked for some of it
    wait_in_list(packet.owner, found, packet.sectors);
    packet.listed = true;
  }
  packet.sectors = static_cast<std::uint8_t>(packet.sectors & ~(l1.valid(found) | pending));
  if (packet.sectors == 0) return false;
  l1.state(found) |= std::uint32_t{packet.sectors} << TagArray::pending_shift;
  packet.l1_line = found;
  return true;
}

// Takes the instruction at the head of the queue, one line a cycle, until registers run out.
void Engine::run_lsu(std::uint32_t number) {
  SmState& sm = state.sms[number];
  sm.lsu_stalled = false;
  if (sm.lsu.head == none) return;
  const std::uint32_t index = sm.lsu.head;
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
    schedule(at - 1_cycles + spec.l1_hit_cycles, EventKind::l1_hit, index);
  }
  sm.lsu_free = std::max(at, now() + 1_cycles);
  if (stalled) {
    sm.lsu_stalled = true;
    return;
  }
  remove_after(sm.lsu, state.warps, none);
  warp.has_step = false;
  warp.state = WarpState::ready;
  schedule(sm.lsu_free, EventKind::warp, index);
  if (sm.lsu.head != none) {
    sm.lsu_scheduled = true;
    schedule(sm.lsu_free, EventKind::lsu, number);
  }
}

void Engine::wait_in_list(std::uint32_t warp, std::uint32_t l1_line, std::uint8_t needed) {
  std::uint32_t waiter = state.free_waiter;
  if (waiter == none) {
    waiter = static_cast<std::uint32_t>(state.l1_waiters.size());
    state.l1_waiters.emplace_back();
  } else {
    state.free_waiter = state.l1_waiters[waiter].next;
  }
  state.l1_waiters[waiter] = {warp, state.l1_lists[l1_line], needed};
  state.l1_lists[l1_line] = waiter;
  state.l1.state(l1_line) |= TagArray::waited_bit;
}

// Those in the list of a line whose sectors have all arrived, oldest first.
std::uint32_t Engine::ready_waiters(std::uint32_t l1_line) {
  const std::uint32_t valid = state.l1.valid(l1_line);
  std::uint32_t still = none;
  std::uint32_t ready = none;
  std::uint32_t last_still = none;
  for (std::uint32_t at = state.l1_lists[l1_line]; at != none;) {  // newest first
    L1Waiter& waiter = state.l1_waiters[at];
    const std::uint32_t next = waiter.next;
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
  if (still == none) state.l1.state(l1_line) &= ~TagArray::waited_bit;
  return ready;
}

void Engine::packet_done(std::uint32_t index) {
  const Packet packet = state.packets[index];
  drop_packet(index);
  if (packet.injected) {
    injected_done(packet.owner);
    return;
  }
  SmState& sm = state.sms[packet.sm];
  if (!answers(packet.kind)) {
    --sm.stores;
    resume_lsu(packet.sm);
    return;
  }
  --sm.misses;
  if (packet.l1_line == none) {
    load_done(packet.owner);
  } else {
    std::uint32_t& of_line = state.l1.state(packet.l1_line);
    of_line |= packet.sectors;
    of_line &= ~(std::uint32_t{packet.sectors} << TagArray::pending_shift);
    // Warps are woken in the order in which they asked: nobody who asked for sectors of this packet
    // did so before its owner.
    std::uint32_t ready =
        (of_line & TagArray::waited_bit) != 0 ? ready_waiters(packet.l1_line) : none;
    if (!packet.listed) load_done(packet.owner);
    while (ready != none) {
      const std::uint32_t next = state.l1_waiters[ready].next;
      const std::uint32_t warp = state.l1_waiters[ready].warp;
      state.l1_waiters[ready].next = state.free_waiter;
      state.free_waiter = ready;
      load_done(warp);
      ready = next;
    }
  }
  resume_lsu(packet.sm);
}

}  // namespace demarc::sim::memory
