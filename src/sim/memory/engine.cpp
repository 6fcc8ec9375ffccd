// Builds the engine, runs its loop over events, and prefetches into the host's caches.
#include "engine.hpp"

#include <bit>

namespace demarc::sim::memory {
namespace {

const char nothing_ahead = 0;  // what events need that need nothing

template <EventKind kind>
constexpr std::integral_constant<EventKind, kind> of_kind;

template <class T>
constexpr auto shift_of = static_cast<std::uint32_t>(std::countr_zero(sizeof(T)));

}  // namespace

Engine::Engine(const Spec& given) : spec(given), decoder(given.address) {
  ahead_.fill({&nothing_ahead, 0, 0});
  state.sms.resize(spec.sms());
  state.gpc_request.resize(spec.gpcs);
  state.gpc_reply.resize(spec.gpcs);
  state.port_request.resize(spec.ports);
  state.write_ports.resize(spec.ports);
  for (WritePort& port : state.write_ports) port.of_gpc.resize(spec.gpcs);
  state.port_reply.resize(spec.ports);
  if (spec.l1.sets != 0) {
    l1_set_bits_ = static_cast<std::uint32_t>(std::countr_zero(spec.l1.sets));
    state.l1.resize(spec.sms(), spec.l1.sets, spec.l1.ways);
    state.l1_lists.assign(state.l1.indices(), none);
  }
  state.l2.resize(spec.slices, spec.l2.sets, spec.l2.ways);
  state.slices.resize(spec.slices);
  state.registers.resize(std::size_t{spec.slices} * spec.miss_registers);
  for (const SliceIndex slice : state.slices.keys()) {
    const std::uint32_t first = slice.raw() * spec.miss_registers;
    for (std::uint32_t k = first + spec.miss_registers; k-- > first;) {
      state.registers[RegisterIndex(k)].chain = state.slices[slice].free_register;
      state.slices[slice].free_register = RegisterIndex(k);
    }
  }
  state.channels.resize(spec.slices);
  state.banks.resize(std::size_t{spec.slices} * spec.banks);
}

ClientIndex Engine::add_client(ClientSpec client) {
  const ClientIndex index = clients.next_key();
  ClientState added;
  added.allowed.assign(spec.sms(), 0);
  added.threads.assign(spec.sms(), 0);
  for (const SmIndex sm : client.sms) added.allowed.at(sm) = 1;
  std::unique_ptr<BlockDispatch> policy;
  if (client.dispatch != nullptr) {
    policy = std::make_unique<BlockDispatch>(spec, client);
    for (const BlockSlot& block : state.blocks) {  // what others have running already
      if (block.work) policy->placed(block.sm, state.clients[block.client].shape, false);
    }
  }
  dispatch.push_back(std::move(policy));
  clients.push_back(std::move(client));
  state.clients.push_back(std::move(added));
  if (auto begun = clients.back().source->restart(); !begun) {
    fail(begun.error().kind, begun.error().message);
  }
  state.clients.back().run_start = now();
  schedule<EventKind::kernel_start>(now(), index);
  return index;
}

void Engine::fail(ErrorKind kind, std::string message) {
  if (!state.error) state.error = Error{kind, std::move(message)};
  state.interrupted = true;
}

[[gnu::noinline]] PacketIndex Engine::add_packet(const Packet& packet) {
  if (state.packets.size() == Event::indices) {
    fail(ErrorKind::check_failed,
         fmt::format("more than {} accesses are under way", Event::indices));
    return {};
  }
  state.packets.push_back(packet);
  return PacketIndex(state.packets.size() - 1);
}

// The state is larger than a core's caches, and events touch it all over. Packets on their way ask
// for what they will touch next (engine_l2.cpp); what the other events touch is asked for here, in
// two steps, as the second place stands in the first. Both steps take some events at a time and
// avoid branches on the kind of each, which the host cannot foretell.
[[gnu::noinline]] void Engine::look_ahead() {
  const auto set_pool = [&](EventKind kind, const void* start, std::uint32_t shift) {
    ahead_[static_cast<std::size_t>(kind)] = {static_cast<const char*>(start), shift, None::raw};
  };
  set_pool(EventKind::warp, state.warps.data(), shift_of<WarpSlot>);
  set_pool(EventKind::from_dram, state.fetches.data(), shift_of<Fetch>);
  set_pool(EventKind::fill, state.fetches.data(), shift_of<Fetch>);
  set_pool(EventKind::bank, state.banks.data(), shift_of<BankState>);
  for (const Event& coming : state.events.ahead(2 * look_at_once, look_at_once)) {
    const Ahead& pool = ahead_[coming.head & 15U];
    prefetch(pool.start + (std::size_t{(coming.head >> 7U) & pool.mask} << pool.shift));
  }
  const auto events = state.events.ahead(look_at_once, look_at_once);
  std::array<std::uint32_t, 16> kinds{};
  for (std::size_t i = 0; i < events.size(); ++i) kinds[events[i].head & 15U] |= 1U << i;
  const auto each = [&]<EventKind kind>(std::integral_constant<EventKind, kind>, auto&& look) {
    for (auto rest = kinds[static_cast<std::size_t>(kind)]; rest != 0; rest &= rest - 1) {
      look(events[static_cast<std::size_t>(std::countr_zero(rest))].template subject<kind>());
    }
  };
  each(of_kind<EventKind::done>, [&](PacketIndex index) {
    const Packet& packet = state.packets[index];
    if (!packet.injected) prefetch(&state.warps[packet.owner.as<WarpIndex>()]);
  });
  each(of_kind<EventKind::fill>, [&](FetchIndex index) {
    const Fetch& fetch = state.fetches[index];
    if (fetch.l2_line == none) return;
    state.l2.prefetch_state(fetch.l2_line);
    const PacketIndex waiter =
        state.registers[fetch.owner.as<RegisterIndex>()].chain.as<PacketIndex>();
    if (waiter != none) prefetch(&state.packets[waiter]);
  });
  each(of_kind<EventKind::bank>, [&](BankIndex index) {
    const FetchIndex head = state.banks[index].queue[0].head;
    if (head != none) prefetch(&state.fetches[head]);
  });
  each(of_kind<EventKind::warp>, [&](WarpIndex index) {
    const WarpSlot& warp = state.warps[index];
    const BlockSlot& block = state.blocks[warp.block];
    if (!warp.has_step) {
      const BlockWork* const work = block.work.get();
      prefetch(work);
      prefetch(reinterpret_cast<const char*>(work) + host_line);
    } else if (warp.instructions == 0) {
      prefetch_l1(block, warp.line);
    }
  });
}

[[gnu::always_inline]] inline void Engine::handle(Event event) {
  switch (event.kind()) {
    case EventKind::kernel_start:
      kernel_start(event.subject<EventKind::kernel_start>());
      break;
    case EventKind::warp:
      advance(event.subject<EventKind::warp>());
      break;
    case EventKind::lsu:
      state.sms[event.subject<EventKind::lsu>()].lsu_scheduled = false;
      run_lsu(event.subject<EventKind::lsu>());
      break;
    case EventKind::l1_hit:
      load_done(event.subject<EventKind::l1_hit>());
      break;
    case EventKind::inject:
      inject(event.subject<EventKind::inject>());
      break;
    case EventKind::gpc_request:
      gpc_request(event);
      break;
    case EventKind::arrive:
      arrive(event);
      break;
    case EventKind::lookup:
      lookup(event.subject<EventKind::lookup>());
      break;
    case EventKind::bank:
      state.banks[event.subject<EventKind::bank>()].scheduled = false;
      serve_bank(event.subject<EventKind::bank>());
      break;
    case EventKind::from_dram:
      from_dram(event.subject<EventKind::from_dram>());
      break;
    case EventKind::fill:
      fill(event.subject<EventKind::fill>());
      break;
    case EventKind::retry:
      state.slices[event.subject<EventKind::retry>()].retry_scheduled = false;
      retry(event.subject<EventKind::retry>());
      break;
    case EventKind::gpc_reply:
      gpc_reply(event);
      break;
    case EventKind::done:
      packet_done(event.subject<EventKind::done>());
      break;
  }
}

void Engine::step() {
  const Event event = state.events.pop();
  if (++steps_ % look_at_once == 0) look_ahead();
  handle(event);
}

void Engine::run_until(Cycles end) {
  state.interrupted = false;
  do {
    step();
  } while (!state.interrupted && !state.events.empty() && now() <= end);
}

void Engine::run_through(Cycles end) {
  while (!state.error && state.events.next_time() <= end) step();
}

}  // namespace demarc::sim::memory
