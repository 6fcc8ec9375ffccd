// Crossbar and L2: links, tags, miss registers, what waits for them.
#include "engine.hpp"
#include "fifo.hpp"

namespace demarc::sim::memory {
namespace {

std::uint64_t sectors_of(const Packet& packet) {
  return sector_count(packet.sectors);
}

// A store carries its data, a load only its address.
std::uint64_t request_sectors(const Packet& packet) {
  return packet.kind == StepKind::load ? 1 : sectors_of(packet);
}

bool carries_reply(const Packet& packet) {
  return packet.kind == StepKind::load || packet.kind == StepKind::atomic;
}

}  // namespace

void Engine::send(const Packet& packet, Cycles at) {
  const std::uint32_t index = take_packet(packet);
  Packet& sent = state.packets[index];
  const Place place = decoder(sent.line);
  sent.slice = static_cast<std::uint16_t>(place.slice);
  sent.set = static_cast<std::uint16_t>(place.set);
  sent.bank = static_cast<std::uint8_t>(place.bank);
  sent.row = place.row;
  Cycles leaves = state.sms[sent.sm].request.take(at, request_sectors(sent) * spec.sm_ticks);
  leaves += spec.request_cycles;
  if (!spec.distance.empty()) {
    leaves += spec.distance[std::size_t{sent.slice} * spec.sms() + sent.sm];
  }
  schedule(leaves, spec.gpc_ticks == 0 ? EventKind::arrive : EventKind::gpc_request, index);
}

void Engine::gpc_request(std::uint32_t index) {
  const Packet& packet = state.packets[index];
  Server& link = state.gpc_request[spec.gpc_of_sm[packet.sm]];
  schedule(link.take(now(), request_sectors(packet) * spec.gpc_ticks), EventKind::arrive, index);
}

void Engine::arrive(std::uint32_t index) {
  const Packet& packet = state.packets[index];
  Server& port = state.port_request[spec.port_of_slice[packet.slice]];
  schedule(port.take(now(), request_sectors(packet) * spec.port_ticks), EventKind::lookup, index);
}

void Engine::lookup(std::uint32_t index) {
  SliceState& slice = state.slices[state.packets[index].slice];
  if (!attempt(index, slice.waiting.size == 0)) {
    push_back(slice.waiting, state.packets, index);
  }
}

// Data, or the acknowledgement of a write, on its way back.
void Engine::reply(std::uint32_t index) {
  const Packet& packet = state.packets[index];
  if (!carries_reply(packet)) {
    schedule(now() + spec.l2_cycles + spec.reply_cycles, EventKind::done, index);
    return;
  }
  Server& port = state.port_reply[spec.port_of_slice[packet.slice]];
  const Cycles leaves = port.take(now(), sectors_of(packet) * spec.port_ticks);
  schedule(leaves + spec.l2_cycles + spec.reply_cycles, EventKind::gpc_reply, index);
}

void Engine::gpc_reply(std::uint32_t index) {
  const Packet& packet = state.packets[index];
  Cycles at = now();
  if (spec.gpc_ticks != 0) {
    Server& link = state.gpc_reply[spec.gpc_of_sm[packet.sm]];
    at = link.take(at, sectors_of(packet) * spec.gpc_ticks);
  }
  schedule(state.sms[packet.sm].reply.take(at, sectors_of(packet) * spec.sm_ticks), EventKind::done,
           index);
}

// A way of the set for a new line, its old content on the way to DRAM; none: nothing can go now.
std::uint32_t Engine::make_room(std::size_t first, std::uint16_t slice) {
  TagArray& l2 = state.l2;
  const std::uint32_t way = l2.victim(first);
  if (way == none || l2.at[way].line == none || l2.at[way].dirty == 0) return way;
  if (state.channels[slice].writes >= 2 * spec.write_high) return none;
  const Place place = decoder(l2.at[way].line);
  Fetch write;
  write.write = true;
  write.slice = slice;
  write.sectors = l2.at[way].dirty;
  write.row = place.row;
  write.bank = slice * spec.banks + place.bank;
  start_fetch(write);
  return way;
}

// Handles the packet, or returns false when it must wait. Without `may_allocate` only what needs
// neither a way nor a miss register is handled.
bool Engine::attempt(std::uint32_t index, bool may_allocate) {
  Packet& packet = state.packets[index];
  if (!packet.cached) return attempt_past_tags(index, may_allocate);
  TagArray& l2 = state.l2;
  SliceState& slice = state.slices[packet.slice];
  const std::size_t first = set_of(packet);
  std::uint32_t way = l2.find(first, packet.line);
  const bool store = packet.kind == StepKind::store;
  if (way != none && (store || (l2.at[way].valid & packet.sectors) == packet.sectors)) {
    l2.use(way);
    if (packet.kind != StepKind::load) {
      l2.at[way].valid |= packet.sectors;
      l2.at[way].dirty |= packet.sectors;
    }
    if (!store && !packet.injected) {
      state.clients[packet.client].statistics.l2_hit_sectors += sectors_of(packet);
    }
    reply(index);
    return true;
  }
  if (store) {
    if (!may_allocate) return false;
    way = make_room(first, packet.slice);
    if (way == none) return false;
    l2.install(way, packet.line);
    l2.at[way].valid = packet.sectors;
    l2.at[way].dirty = packet.sectors;
    reply(index);
    return true;
  }
  if (way == none) {
    if (!may_allocate || slice.misses >= spec.miss_registers) return false;
    way = make_room(first, packet.slice);
    if (way == none) return false;
    l2.install(way, packet.line);
    ++slice.misses;
  } else if (l2.at[way].pending == 0) {
    if (!may_allocate || slice.misses >= spec.miss_registers) return false;
    ++slice.misses;
  }
  if (!packet.injected) {
    state.clients[packet.client].statistics.l2_miss_sectors += sectors_of(packet);
  }
  l2.use(way);
  const auto missing =
      static_cast<std::uint8_t>(packet.sectors & ~(l2.at[way].valid | l2.at[way].pending));
  l2.at[way].pending |= missing;
  packet.next = l2.at[way].waiters;
  l2.at[way].waiters = index;
  if (missing != 0) {
    Fetch read;
    read.l2_line = way;
    read.slice = packet.slice;
    read.sectors = missing;
    read.row = packet.row;
    read.bank = packet.slice * spec.banks + packet.bank;
    start_fetch(read);
  }
  return true;
}

bool Engine::attempt_past_tags(std::uint32_t index, bool may_allocate) {
  const Packet& packet = state.packets[index];
  SliceState& slice = state.slices[packet.slice];
  if (!may_allocate || slice.misses >= spec.miss_registers) return false;
  ++slice.misses;
  Fetch read;
  read.packet = index;
  read.slice = packet.slice;
  read.sectors = packet.sectors;
  read.row = packet.row;
  read.bank = packet.slice * spec.banks + packet.bank;
  start_fetch(read);
  return true;
}

// Something became free in the slice: those that wait go on, in order.
void Engine::retry(std::uint32_t number) {
  SliceState& slice = state.slices[number];
  while (slice.waiting.head != none) {
    const std::uint32_t index = slice.waiting.head;
    const std::uint32_t next = state.packets[index].next;  // attempt() may thread it elsewhere
    if (!attempt(index, true)) return;
    slice.waiting.head = next;
    if (next == none) slice.waiting.tail = none;
    --slice.waiting.size;
  }
}

void Engine::fill(std::uint32_t index) {
  const Fetch fetch = state.fetches[index];
  state.fetches[index].next = state.free_fetch;
  state.free_fetch = index;
  SliceState& slice = state.slices[fetch.slice];
  if (fetch.l2_line == none) {
    --slice.misses;
    reply(fetch.packet);
    retry(fetch.slice);
    return;
  }
  TagArray& l2 = state.l2;
  const std::uint32_t way = fetch.l2_line;
  l2.at[way].valid |= fetch.sectors;
  l2.at[way].pending &= static_cast<std::uint8_t>(~fetch.sectors);
  // Newest first in the list; answers leave in the order of the requests.
  std::uint32_t ready = none;
  std::uint32_t still = none;
  std::uint32_t last_still = none;
  for (std::uint32_t at = l2.at[way].waiters; at != none;) {
    Packet& packet = state.packets[at];
    const std::uint32_t next = packet.next;
    if ((packet.sectors & ~l2.at[way].valid) == 0) {
      packet.next = ready;
      ready = at;
    } else {
      packet.next = none;
      (last_still == none ? still : state.packets[last_still].next) = at;
      last_still = at;
    }
    at = next;
  }
  l2.at[way].waiters = still;
  while (ready != none) {
    const std::uint32_t next = state.packets[ready].next;
    if (state.packets[ready].kind != StepKind::load) {
      l2.at[way].dirty |= state.packets[ready].sectors;
    }
    reply(ready);
    ready = next;
  }
  if (l2.at[way].pending == 0) --slice.misses;
  retry(fetch.slice);
}

void Engine::touch(std::uint32_t line, bool written) {
  const Place place = decoder(line);
  const std::size_t first = (std::size_t{place.slice} * spec.l2.sets + place.set) * spec.l2.ways;
  TagArray& l2 = state.l2;
  std::uint32_t way = l2.find(first, line);
  if (way == none) {
    way = l2.victim(first);
    if (way == none) return;
    l2.install(way, line);
  }
  l2.at[way].valid = 15;
  if (written) l2.at[way].dirty = 15;
  l2.use(way);
}

}  // namespace demarc::sim::memory
