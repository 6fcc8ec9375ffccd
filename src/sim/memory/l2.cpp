// What packets do in the crossbar and in the slices of the L2.
#include "l2.hpp"

namespace demarc::sim::memory {
namespace {

std::uint64_t sectors_of(const Packet& packet) {
  return sector_count(packet.sectors);
}

// A store carries its data, a load only its address.
std::uint64_t request_sectors(const Packet& packet) {
  return packet.kind == StepKind::load ? 1 : sectors_of(packet);
}

std::uint32_t head_of(EventKind kind, PacketIndex index, std::uint64_t sectors) {
  return static_cast<std::uint32_t>(kind) | (static_cast<std::uint32_t>(sectors) << 4U) |
         (index.raw() << 7U);
}

bool carries_reply(const Packet& packet) {
  return packet.kind == StepKind::load || packet.kind == StepKind::atomic;
}

// For those that wait; `next` was behind it.
void drop_first(Fifo<PacketIndex>& queue, PacketIndex next) {
  queue.head = next;
  if (next == none) queue.tail = none;
  --queue.size;
}

}  // namespace

L2::L2(Common& common, const L1Tags& l1)
    : Part(common), decoder(spec.address), dram(common, state.slices), l1_(l1) {
  state.sms.resize(spec.sms());
  state.gpc_request.resize(spec.gpcs);
  state.gpc_reply.resize(spec.gpcs);
  state.port_request.resize(spec.ports);
  state.write_ports.resize(spec.ports);
  for (WritePort& port : state.write_ports) port.of_gpc.resize(spec.gpcs);
  state.port_reply.resize(spec.ports);
  state.tags.resize(spec.slices, spec.l2.sets, spec.l2.ways);
  state.slices.resize(spec.slices);
  state.registers.resize(std::size_t{spec.slices} * spec.miss_registers);
  for (const SliceIndex slice : state.slices.keys()) {
    const std::uint32_t first = slice.raw() * spec.miss_registers;
    for (std::uint32_t k = first + spec.miss_registers; k-- > first;) {
      state.registers[RegisterIndex(k)].chain = state.slices[slice].free_register;
      state.slices[slice].free_register = RegisterIndex(k);
    }
  }
}

[[gnu::noinline]] PacketIndex L2::add_packet(const Packet& packet) {
  if (state.packets.size() == Event::indices) {
    fail(ErrorKind::check_failed,
         fmt::format("more than {} accesses are under way", Event::indices));
    return {};
  }
  state.packets.push_back(packet);
  return PacketIndex(state.packets.size() - 1);
}

// A sector's time on the link of a GPC, on the way to the L2.
Ticks L2::gpc_ticks(StepKind kind) const {
  if (kind == StepKind::load) return spec.gpc_ticks;
  return kind == StepKind::store ? spec.gpc_store_ticks : spec.gpc_atomic_ticks;
}

inline void L2::give_place(Packet& packet) const {
  const Place place = decoder(packet.line);
  packet.slice = place.slice;
  packet.set = place.set;
  packet.bank = place.bank;
  packet.row = place.row;
}

L2::Leaving L2::prepare(Packet& packet, Cycles at) {
  give_place(packet);
  const std::uint64_t sectors = request_sectors(packet);
  const bool load = packet.kind == StepKind::load;
  Cycles leaves =
      state.sms[packet.sm].request.take(at, load ? spec.sm_ticks : sectors * spec.sm_store_ticks);
  leaves += spec.request_cycles + spec.distance(packet.slice, packet.sm);
  const auto kind = gpc_ticks(packet.kind) == Ticks() ? EventKind::arrive : EventKind::gpc_request;
  return {leaves,
          {head_of(kind, put_in(packet), sectors), packet.sm,
           static_cast<std::uint16_t>(spec.port_of_slice[packet.slice])}};
}

void L2::send_from_walker(Packet& packet, Cycles at) {
  give_place(packet);
  leave({at,
         {head_of(EventKind::arrive, put_in(packet), 1), packet.sm,
          static_cast<std::uint16_t>(spec.port_of_slice[packet.slice])}});
}

void L2::gpc_request(Event event) {
  const StepKind kind = state.packets[event.packet()].kind;
  const std::uint64_t sectors = kind == StepKind::load ? 1 : event.sectors();
  Server& link = state.gpc_request[spec.gpc_of_sm[event.sm]];
  common_.events.schedule(link.take(now(), sectors * gpc_ticks(kind)), event.as(EventKind::arrive));
}

void L2::arrive(Event event) {
  const Packet& packet = state.packets[event.packet()];
  state.tags.prefetch_set(l2_set(packet.slice, packet.set));
  if (packet.kind == StepKind::load) {  // an address does not wait for the data of stores
    Server& port = state.port_request[event.port];
    common_.events.schedule(port.take(now(), spec.port_ticks), event.as(EventKind::lookup));
    return;
  }
  wait_at_port(event.packet());
}

void L2::lookup(PacketIndex index) {
  const Packet& packet = state.packets[index];
  if (packet.kind != StepKind::load) serve(port_of(packet.slice));
  SliceState& slice = state.slices[packet.slice];
  if (!packet.cached && (slice.past.size > 0 || takes_no_more_past_tags(slice))) {
    push_back(slice.past, state.packets, index);
    return;
  }
  Fifo<PacketIndex>& waiting = packet.kind == StepKind::store ? slice.stores : slice.waiting;
  if (!attempt(index, waiting.size == 0)) push_back(waiting, state.packets, index);
}

// Data, or the acknowledgement of a write, on its way back.
void L2::reply(PacketIndex index) {
  const Packet& packet = state.packets[index];
  if (!carries_reply(packet)) {
    schedule<EventKind::done>(now() + spec.l2_cycles + spec.reply_cycles, index);
    return;
  }
  const std::uint64_t sectors = sectors_of(packet);
  Server& port = state.port_reply[spec.port_of_slice[packet.slice]];
  const Cycles leaves = port.take(now(), sectors * spec.port_ticks);
  if (packet.walk) {
    schedule<EventKind::walked>(leaves + spec.l2_cycles, index);
    return;
  }
  // The L1 set, as far as it fits: see gpc_reply().
  const auto set = static_cast<std::uint16_t>(l1_.set_of(packet.l1_line).raw());
  common_.events.schedule(leaves + spec.l2_cycles + spec.reply_cycles,
                          {head_of(EventKind::gpc_reply, index, sectors), packet.sm, set});
}

void L2::gpc_reply(Event event) {
  prefetch(&state.packets[event.packet()]);
  if (spec.l1.sets != 0) {
    l1_.prefetch_set(l1_set(spec, event.sm, event.port));
  }
  const std::uint64_t sectors = event.sectors();
  Cycles at = now();
  if (spec.gpc_ticks != Ticks()) {
    Server& link = state.gpc_reply[spec.gpc_of_sm[event.sm]];
    at = link.take(at, sectors * spec.gpc_ticks);
  }
  common_.events.schedule(state.sms[event.sm].reply.take(at, sectors * spec.sm_ticks),
                          event.as(EventKind::done));
}

// A way of the set for a new line, its old content on the way to DRAM; none: nothing can go now.
L2Tags::Way L2::make_room(L2Tags::Set set, SliceIndex slice) {
  L2Tags& l2 = state.tags;
  const L2Tags::Way way = l2.victim(set);
  if (way == none || l2.line(way) == L2Tags::no_line || l2.dirty(way) == 0) return way;
  if (dram.state.channels[slice].writes >= 2 * spec.write_high) return none;
  const Place place = decoder(l2.line(way));
  Fetch write;
  write.write = true;
  write.slice = slice;
  write.sectors = static_cast<std::uint8_t>(l2.dirty(way));
  write.row = place.row;
  write.bank = dram.bank_of(slice, place.bank);
  dram.start(write);
  return way;
}

RegisterIndex L2::open_register(SliceIndex slice, L2Tags::Way l2_line) {
  const RegisterIndex number = state.slices[slice].free_register;
  MissRegister& opened = state.registers[number];
  state.slices[slice].free_register = opened.chain.as<RegisterIndex>();
  opened = {.l2_line = l2_line, .chain = none};
  ++state.slices[slice].misses;
  return number;
}

RegisterIndex L2::find_register(SliceIndex slice, L2Tags::Way l2_line) const {
  RegisterIndex number(slice.raw() * spec.miss_registers);
  while (state.registers[number].l2_line != l2_line) ++number;
  return number;
}

void L2::close_register(SliceIndex slice, RegisterIndex number) {
  state.registers[number] = {.l2_line = none, .chain = state.slices[slice].free_register};
  state.slices[slice].free_register = number;
  --state.slices[slice].misses;
}

// Handles the packet, or returns false when it must wait. Without `may_allocate` only what needs
// neither a way nor a miss register is handled.
bool L2::attempt(PacketIndex index, bool may_allocate) {
  Packet& packet = state.packets[index];
  if (!packet.cached) return attempt_past_tags(index, may_allocate);
  L2Tags& l2 = state.tags;
  SliceState& slice = state.slices[packet.slice];
  const bool store = packet.kind == StepKind::store;
  if (may_allocate && !store) slice.first_absent = false;
  const L2Tags::Set set = l2_set(packet.slice, packet.set);
  const std::uint32_t wanted = packet.sectors;
  L2Tags::Way way = l2.find(set, packet.line);
  if (way != none && (store || (l2.valid(way) & wanted) == wanted)) {
    use_line(packet, way);
    if (packet.kind != StepKind::load) {
      l2.state(way) |= wanted | (wanted << L2Tags::dirty_shift);
    }
    if (!store && packet.of_kernel()) {
      common_.statistics[packet.client].l2_hit_sectors += sectors_of(packet);
    }
    reply(index);
    return true;
  }
  if (store) {
    if (!may_allocate) return false;
    way = make_room(set, packet.slice);
    if (way == none) return false;
    install_line(packet, way);
    l2.state(way) |= wanted | (wanted << L2Tags::dirty_shift);
    reply(index);
    return true;
  }
  if (way != none && l2.pending(way) != 0) {
    use_line(packet, way);
    wait_for(index, way, find_register(packet.slice, way));
    return true;
  }
  if (!may_allocate) return false;
  slice.first_absent = way == none;  // if it has to wait
  return start_miss(index, way);
}

// A load or an atomic that finds its line not there (`way` none), or without its sectors.
bool L2::start_miss(PacketIndex index, L2Tags::Way way) {
  const Packet& packet = state.packets[index];
  if (state.slices[packet.slice].misses >= spec.miss_registers) return false;
  if (way == none) {
    way = make_room(l2_set(packet.slice, packet.set), packet.slice);
    if (way == none) return false;
    install_line(packet, way);
  } else {
    use_line(packet, way);
  }
  wait_for(index, way, open_register(packet.slice, way));
  return true;
}

// The sectors of the bursts that have some of `missing`: the DRAM gives no less.
std::uint32_t L2::whole_bursts(std::uint32_t missing) const {
  std::uint32_t all = 0;
  for (std::uint32_t first = 0; first < line_bytes / sector_bytes; first += spec.burst_sectors) {
    const std::uint32_t burst = ((1U << spec.burst_sectors) - 1) << first & 15U;
    if ((missing & burst) != 0) all |= burst;
  }
  return all;
}

// The packet joins those that miss register `number` answers; what has not been asked for is.
void L2::wait_for(PacketIndex index, L2Tags::Way way, RegisterIndex number) {
  Packet& packet = state.packets[index];
  std::uint32_t& of_line = state.tags.state(way);
  const std::uint32_t known = (of_line | (of_line >> L2Tags::pending_shift)) & 15U;
  const std::uint32_t missing = packet.sectors & ~known;
  if (packet.of_kernel()) {
    ClientStatistics& statistics = common_.statistics[packet.client];
    statistics.l2_miss_sectors += sector_count(static_cast<std::uint8_t>(missing));
    statistics.l2_hit_sectors += sector_count(static_cast<std::uint8_t>(packet.sectors & known));
  }
  const std::uint32_t fetched = whole_bursts(missing) & ~known;
  of_line |= fetched << L2Tags::pending_shift;
  packet.next = state.registers[number].chain.as<PacketIndex>();
  state.registers[number].chain = index;
  if (missing == 0) return;
  Fetch read;
  read.l2_line = way;
  read.owner = number;
  read.slice = packet.slice;
  read.sectors = static_cast<std::uint8_t>(fetched);
  read.row = packet.row;
  read.bank = dram.bank_of(packet.slice, packet.bank);
  dram.start(read);
}

bool L2::attempt_past_tags(PacketIndex index, bool may_allocate) {
  const Packet& packet = state.packets[index];
  SliceState& slice = state.slices[packet.slice];
  if (may_allocate) slice.first_absent = false;
  if (!may_allocate || slice.misses >= spec.miss_registers) return false;
  if (takes_no_more_past_tags(slice)) return false;
  ++slice.misses;
  ++slice.uncached;
  Fetch read;
  read.owner = index;
  read.slice = packet.slice;
  read.sectors = packet.sectors;
  read.row = packet.row;
  read.bank = dram.bank_of(packet.slice, packet.bank);
  dram.start(read);
  return true;
}

// Asks for what the packet behind the first one that waits will touch, and for the one behind it:
// both came long ago.
void L2::look_behind(PacketIndex first) const {
  if (first == none) return;
  const PacketIndex second = state.packets[first].next;
  if (second == none) return;
  const Packet& packet = state.packets[second];  // asked for when its turn was one later
  state.tags.prefetch_set(l2_set(packet.slice, packet.set));
  prefetch(&dram.state.banks[dram.bank_of(packet.slice, packet.bank)]);
  if (packet.next != none) prefetch(&state.packets[packet.next]);
}

// Something became free in the slice: those that wait go on, in order. Loads and stores do not wait
// for each other, and no load waits for a read past the tags that lacks a register of its kind.
void L2::retry(SliceIndex number) {
  retry_past_tags(number);
  retry_loads(number);
  retry_stores(number);
}

void L2::retry_past_tags(SliceIndex number) {
  SliceState& slice = state.slices[number];
  while (slice.past.head != none) {
    const PacketIndex index = slice.past.head;
    const PacketIndex next = state.packets[index].next;
    if (!attempt(index, true)) return;
    drop_first(slice.past, next);
  }
}

void L2::retry_loads(SliceIndex number) {
  SliceState& slice = state.slices[number];
  while (slice.waiting.head != none) {
    const PacketIndex index = slice.waiting.head;
    const PacketIndex next = state.packets[index].next;  // attempt() may thread it elsewhere
    if (!state.packets[index].cached && takes_no_more_past_tags(slice)) {
      drop_first(slice.waiting, next);
      push_back(slice.past, state.packets, index);
      continue;
    }
    if (!(slice.first_absent ? start_miss(index, none) : attempt(index, true))) return;
    slice.first_absent = false;
    drop_first(slice.waiting, next);
    look_behind(next);
  }
}

void L2::retry_stores(SliceIndex number) {
  SliceState& slice = state.slices[number];
  while (slice.stores.head != none) {
    const PacketIndex index = slice.stores.head;
    const PacketIndex next = state.packets[index].next;
    if (!attempt(index, true)) return;
    drop_first(slice.stores, next);
    look_behind(next);
  }
}

void L2::fill(FetchIndex index) {
  const Fetch fetch = dram.state.fetches[index];
  serve(port_of(fetch.slice));
  dram.drop(index);
  SliceState& slice = state.slices[fetch.slice];
  if (fetch.l2_line == none) {
    --slice.misses;
    --slice.uncached;
    reply(fetch.owner.as<PacketIndex>());
    retry(fetch.slice);
    return;
  }
  L2Tags& l2 = state.tags;
  const RegisterIndex number = fetch.owner.as<RegisterIndex>();
  std::uint32_t& of_line = l2.state(fetch.l2_line);
  of_line |= fetch.sectors;
  of_line &= ~(std::uint32_t{fetch.sectors} << L2Tags::pending_shift);
  const std::uint32_t valid = of_line & 15U;
  // Newest first in the list; answers leave in the order of the requests.
  PacketIndex ready = none;
  PacketIndex still = none;
  PacketIndex last_still = none;
  for (PacketIndex at = state.registers[number].chain.as<PacketIndex>(); at != none;) {
    Packet& packet = state.packets[at];
    const PacketIndex next = packet.next;
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
  state.registers[number].chain = still;
  while (ready != none) {
    const Packet& packet = state.packets[ready];
    const PacketIndex next = packet.next;
    if (packet.kind != StepKind::load) {
      of_line |= std::uint32_t{packet.sectors} << L2Tags::dirty_shift;
    }
    reply(ready);
    ready = next;
  }
  if ((of_line & L2Tags::pending_bits) == 0) close_register(fetch.slice, number);
  retry(fetch.slice);
}

void L2::touch(LineNumber line, bool written) {
  const Place place = decoder(line);
  const SliceIndex slice = place.slice;
  const L2Tags::Set set = l2_set(slice, place.set);
  L2Tags& l2 = state.tags;
  L2Tags::Way way = l2.find(set, line);
  if (way == none) {
    way = l2.victim(set);
    if (way == none) return;
    l2.install(slice, way, line);
    state.slices[slice].first_absent = false;
  }
  l2.state(way) |= 15U | (written ? 15U << L2Tags::dirty_shift : 0U);
  l2.use(slice, way);
}

}  // namespace demarc::sim::memory
