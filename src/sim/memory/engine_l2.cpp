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
  const std::uint64_t sectors = request_sectors(sent);
  Cycles leaves = state.sms[sent.sm].request.take(at, sectors * spec.sm_ticks);
  leaves += spec.request_cycles;
  if (!spec.distance.empty()) {
    leaves += spec.distance[std::size_t{sent.slice} * spec.sms() + sent.sm];
  }
  schedule_packet(leaves, spec.gpc_ticks == 0 ? EventKind::arrive : EventKind::gpc_request, index,
                  sectors);
}

void Engine::gpc_request(Event event) {
  Server& link = state.gpc_request[spec.gpc_of_sm[event.place]];
  state.events.schedule(link.take(now(), std::uint64_t{event.sectors()} * spec.gpc_ticks),
                        event.as(EventKind::arrive));
}

void Engine::arrive(Event event) {
  Server& port = state.port_request[event.port];
  state.events.schedule(port.take(now(), std::uint64_t{event.sectors()} * spec.port_ticks),
                        event.as(EventKind::lookup));
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
  const std::uint64_t sectors = sectors_of(packet);
  Server& port = state.port_reply[spec.port_of_slice[packet.slice]];
  const Cycles leaves = port.take(now(), sectors * spec.port_ticks);
  schedule_packet(leaves + spec.l2_cycles + spec.reply_cycles, EventKind::gpc_reply, index,
                  sectors);
}

void Engine::gpc_reply(Event event) {
  const std::uint64_t sectors = event.sectors();
  Cycles at = now();
  if (spec.gpc_ticks != 0) {
    Server& link = state.gpc_reply[spec.gpc_of_sm[event.place]];
    at = link.take(at, sectors * spec.gpc_ticks);
  }
  state.events.schedule(state.sms[event.place].reply.take(at, sectors * spec.sm_ticks),
                        event.as(EventKind::done));
}

// A way of the set for a new line, its old content on the way to DRAM; none: nothing can go now.
std::uint32_t Engine::make_room(std::uint32_t set, std::uint16_t slice) {
  TagArray& l2 = state.l2;
  const std::uint32_t way = l2.victim(set);
  if (way == none || l2.line(way) == none || l2.dirty(way) == 0) return way;
  if (state.channels[slice].writes >= 2 * spec.write_high) return none;
  const Place place = decoder(l2.line(way));
  Fetch write;
  write.write = true;
  write.slice = slice;
  write.sectors = static_cast<std::uint8_t>(l2.dirty(way));
  write.row = place.row;
  write.bank = slice * spec.banks + place.bank;
  start_fetch(write);
  return way;
}

std::uint32_t Engine::open_register(std::uint16_t slice, std::uint32_t l2_line) {
  const std::uint32_t number = state.slices[slice].free_register;
  MissRegister& opened = state.registers[number];
  state.slices[slice].free_register = opened.waiters;
  opened = {l2_line, none};
  ++state.slices[slice].misses;
  return number;
}

std::uint32_t Engine::find_register(std::uint16_t slice, std::uint32_t l2_line) const {
  std::uint32_t number = slice * spec.miss_registers;
  while (state.registers[number].l2_line != l2_line) ++number;
  return number;
}

void Engine::close_register(std::uint16_t slice, std::uint32_t number) {
  state.registers[number] = {none, state.slices[slice].free_register};
  state.slices[slice].free_register = number;
  --state.slices[slice].misses;
}

// Handles the packet, or returns false when it must wait. Without `may_allocate` only what needs
// neither a way nor a miss register is handled.
bool Engine::attempt(std::uint32_t index, bool may_allocate) {
  Packet& packet = state.packets[index];
  if (!packet.cached) return attempt_past_tags(index, may_allocate);
  TagArray& l2 = state.l2;
  const SliceState& slice = state.slices[packet.slice];
  const std::uint32_t set = set_of(packet);
  const std::uint32_t wanted = packet.sectors;
  std::uint32_t way = l2.find(set, packet.line);
  const bool store = packet.kind == StepKind::store;
  if (way != none && (store || (l2.valid(way) & wanted) == wanted)) {
    l2.use(packet.slice, way);
    if (packet.kind != StepKind::load) {
      l2.state(way) |= wanted | (wanted << TagArray::dirty_shift);
    }
    if (!store && !packet.injected) {
      state.clients[packet.client].statistics.l2_hit_sectors += sectors_of(packet);
    }
    reply(index);
    return true;
  }
  if (store) {
    if (!may_allocate) return false;
    way = make_room(set, packet.slice);
    if (way == none) return false;
    l2.install(packet.slice, way, packet.line);
    l2.state(way) |= wanted | (wanted << TagArray::dirty_shift);
    reply(index);
    return true;
  }
  std::uint32_t number = none;
  if (way != none && l2.pending(way) != 0) {
    number = find_register(packet.slice, way);
    l2.use(packet.slice, way);
  } else {
    if (!may_allocate || slice.misses >= spec.miss_registers) return false;
    if (way == none) {
      way = make_room(set, packet.slice);
      if (way == none) return false;
      l2.install(packet.slice, way, packet.line);
    } else {
      l2.use(packet.slice, way);
    }
    number = open_register(packet.slice, way);
  }
  if (!packet.injected) {
    state.clients[packet.client].statistics.l2_miss_sectors += sectors_of(packet);
  }
  std::uint32_t& of_line = l2.state(way);
  const std::uint32_t missing = wanted & ~(of_line | (of_line >> TagArray::pending_shift));
  of_line |= missing << TagArray::pending_shift;
  packet.next = state.registers[number].waiters;
  state.registers[number].waiters = index;
  if (missing != 0) {
    Fetch read;
    read.l2_line = way;
    read.owner = number;
    read.slice = packet.slice;
    read.sectors = static_cast<std::uint8_t>(missing);
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
  read.owner = index;
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
    reply(fetch.owner);
    retry(fetch.slice);
    return;
  }
  TagArray& l2 = state.l2;
  std::uint32_t& of_line = l2.state(fetch.l2_line);
  of_line |= fetch.sectors;
  of_line &= ~(std::uint32_t{fetch.sectors} << TagArray::pending_shift);
  const std::uint32_t valid = of_line & 15U;
  // Newest first in the list; answers leave in the order of the requests.
  std::uint32_t ready = none;
  std::uint32_t still = none;
  std::uint32_t last_still = none;
  for (std::uint32_t at = state.registers[fetch.owner].waiters; at != none;) {
    Packet& packet = state.packets[at];
    const std::uint32_t next = packet.next;
    if ((packet.sectors & ~valid) == 0) {
      packet.next = ready;
      ready = at;
    } else {
      packet.next = none;
      (last_still == none ? still : state.packets[last_still].next) = at;
      last_still = at;
    }
    at = next;
  }
  state.registers[fetch.owner].waiters = still;
  while (ready != none) {
    const Packet& packet = state.packets[ready];
    const std::uint32_t next = packet.next;
    if (packet.kind != StepKind::load) {
      of_line |= std::uint32_t{packet.sectors} << TagArray::dirty_shift;
    }
    reply(ready);
    ready = next;
  }
  if ((of_line & TagArray::pending_bits) == 0) close_register(fetch.slice, fetch.owner);
  retry(fetch.slice);
}

void Engine::touch(std::uint32_t line, bool written) {
  const Place place = decoder(line);
  const std::uint32_t set = place.slice * spec.l2.sets + place.set;
  TagArray& l2 = state.l2;
  std::uint32_t way = l2.find(set, line);
  if (way == none) {
    way = l2.victim(set);
    if (way == none) return;
    l2.install(place.slice, way, line);
  }
  l2.state(way) |= 15U | (written ? 15U << TagArray::dirty_shift : 0U);
  l2.use(place.slice, way);
}

}  // namespace demarc::sim::memory
