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

std::uint32_t head_of(EventKind kind, std::uint32_t index, std::uint64_t sectors) {
  return static_cast<std::uint32_t>(kind) | (static_cast<std::uint32_t>(sectors) << 4U) |
         (index << 7U);
}

bool carries_reply(const Packet& packet) {
  return packet.kind == StepKind::load || packet.kind == StepKind::atomic;
}

}  // namespace

void Engine::send(Packet& packet, Cycles at) {
  const Place place = decoder(packet.line);
  packet.slice = place.slice.raw<std::uint16_t>();
  packet.set = place.set.raw<std::uint16_t>();
  packet.bank = place.bank.raw<std::uint8_t>();
  packet.row = place.row;
  const std::uint64_t sectors = request_sectors(packet);
  Cycles leaves = state.sms[packet.sm].request.take(at, sectors * spec.sm_ticks);
  leaves += spec.request_cycles;
  if (!spec.distance.empty()) {
    leaves += Cycles(spec.distance[std::size_t{packet.slice} * spec.sms() + packet.sm]);
  }
  const auto kind = spec.gpc_ticks == Ticks() ? EventKind::arrive : EventKind::gpc_request;
  state.events.schedule(leaves, {head_of(kind, take_packet(packet), sectors), packet.sm,
                                 static_cast<std::uint16_t>(spec.port_of_slice[packet.slice])});
}

void Engine::gpc_request(Event event) {
  prefetch(&state.packets[event.index()]);
  Server& link = state.gpc_request[spec.gpc_of_sm[event.place]];
  state.events.schedule(link.take(now(), event.sectors() * spec.gpc_ticks),
                        event.as(EventKind::arrive));
}

void Engine::arrive(Event event) {
  state.l2.prefetch_set(set_of(state.packets[event.index()]));
  Server& port = state.port_request[event.port];
  state.events.schedule(port.take(now(), event.sectors() * spec.port_ticks),
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
  // The L1 set, as far as it fits: see gpc_reply().
  const auto l1_set = static_cast<std::uint16_t>(state.l1.set_of(packet.l1_line));
  state.events.schedule(leaves + spec.l2_cycles + spec.reply_cycles,
                        {head_of(EventKind::gpc_reply, index, sectors), packet.sm, l1_set});
}

void Engine::gpc_reply(Event event) {
  prefetch(&state.packets[event.index()]);
  if (spec.l1.sets != 0) {
    state.l1.prefetch_set(event.place * spec.l1.sets + (event.port & (spec.l1.sets - 1)));
  }
  const std::uint64_t sectors = event.sectors();
  Cycles at = now();
  if (spec.gpc_ticks != Ticks()) {
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
  if (way == none || l2.line(way) == TagArray::no_line || l2.dirty(way) == 0) return way;
  if (state.channels[slice].writes >= 2 * spec.write_high) return none;
  const Place place = decoder(l2.line(way));
  Fetch write;
  write.write = true;
  write.slice = slice;
  write.sectors = static_cast<std::uint8_t>(l2.dirty(way));
  write.row = place.row;
  write.bank = slice * spec.banks + place.bank.raw();
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
  SliceState& slice = state.slices[packet.slice];
  if (may_allocate) slice.first_absent = false;
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
  if (way != none && l2.pending(way) != 0) {
    l2.use(packet.slice, way);
    wait_for(index, way, find_register(packet.slice, way));
    return true;
  }
  if (!may_allocate) return false;
  slice.first_absent = way == none;  // if it has to wait
  return start_miss(index, way);
}

// A load or an atomic that finds its line not there (`way` none), or without its sectors.
bool Engine::start_miss(std::uint32_t index, std::uint32_t way) {
  const Packet& packet = state.packets[index];
  if (state.slices[packet.slice].misses >= spec.miss_registers) return false;
  if (way == none) {
    way = make_room(set_of(packet), packet.slice);
    if (way == none) return false;
    state.l2.install(packet.slice, way, packet.line);
  } else {
    state.l2.use(packet.slice, way);
  }
  wait_for(index, way, open_register(packet.slice, way));
  return true;
}

// The packet joins those that miss register `number` answers; what has not been asked for is.
void Engine::wait_for(std::uint32_t index, std::uint32_t way, std::uint32_t number) {
  Packet& packet = state.packets[index];
  if (!packet.injected) {
    state.clients[packet.client].statistics.l2_miss_sectors += sectors_of(packet);
  }
  std::uint32_t& of_line = state.l2.state(way);
  const std::uint32_t missing = packet.sectors & ~(of_line | (of_line >> TagArray::pending_shift));
  of_line |= missing << TagArray::pending_shift;
  packet.next = state.registers[number].waiters;
  state.registers[number].waiters = index;
  if (missing == 0) return;
  Fetch read;
  read.l2_line = way;
  read.owner = number;
  read.slice = packet.slice;
  read.sectors = static_cast<std::uint8_t>(missing);
  read.row = packet.row;
  read.bank = packet.slice * spec.banks + packet.bank;
  start_fetch(read);
}

bool Engine::attempt_past_tags(std::uint32_t index, bool may_allocate) {
  const Packet& packet = state.packets[index];
  SliceState& slice = state.slices[packet.slice];
  if (may_allocate) slice.first_absent = false;
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

// Asks for what the packet behind the first one that waits will touch, and for the one behind it:
// both came long ago.
void Engine::look_behind(std::uint32_t first) const {
  if (first == none) return;
  const std::uint32_t second = state.packets[first].next;
  if (second == none) return;
  const Packet& packet = state.packets[second];  // asked for when its turn was one later
  state.l2.prefetch_set(set_of(packet));
  prefetch(&state.banks[packet.slice * spec.banks + packet.bank]);
  if (packet.next != none) prefetch(&state.packets[packet.next]);
}

// Something became free in the slice: those that wait go on, in order.
void Engine::retry(std::uint32_t number) {
  SliceState& slice = state.slices[number];
  while (slice.waiting.head != none) {
    const std::uint32_t index = slice.waiting.head;
    const std::uint32_t next = state.packets[index].next;  // attempt() may thread it elsewhere
    if (!(slice.first_absent ? start_miss(index, none) : attempt(index, true))) return;
    slice.first_absent = false;
    slice.waiting.head = next;
    if (next == none) slice.waiting.tail = none;
    --slice.waiting.size;
    look_behind(next);
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

void Engine::touch(LineNumber line, bool written) {
  const Place place = decoder(line);
  const std::uint32_t slice = place.slice.raw();
  const std::uint32_t set = slice * spec.l2.sets + place.set.raw();
  TagArray& l2 = state.l2;
  std::uint32_t way = l2.find(set, line);
  if (way == none) {
    way = l2.victim(set);
    if (way == none) return;
    l2.install(slice, way, line);
    state.slices[slice].first_absent = false;
  }
  l2.state(way) |= 15U | (written ? 15U << TagArray::dirty_shift : 0U);
  l2.use(slice, way);
}

}  // namespace demarc::sim::memory
