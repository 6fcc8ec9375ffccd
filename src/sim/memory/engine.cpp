#include "engine.hpp"

#include <bit>

namespace demarc::sim::memory {
namespace {

const char nothing_ahead = 0;  // what events need that need nothing

template <class T>
constexpr auto shift_of = static_cast<std::uint32_t>(std::countr_zero(sizeof(T)));

}  // namespace

Engine::Engine(const Spec& given) : spec(given), decoder(given.address) {
  ahead_.fill({&nothing_ahead, 0, 0});
  state.sms.resize(spec.sms());
  state.gpc_request.resize(spec.gpcs);
  state.gpc_reply.resize(spec.gpcs);
  state.port_request.resize(spec.ports);
  state.port_reply.resize(spec.ports);
  if (spec.l1.sets != 0) {
    l1_set_bits_ = static_cast<std::uint32_t>(std::countr_zero(spec.l1.sets));
    state.l1.resize(spec.sms(), spec.l1.sets, spec.l1.ways);
    state.l1_lists.assign(state.l1.indices(), none);
  }
  state.l2.resize(spec.slices, spec.l2.sets, spec.l2.ways);
  state.slices.resize(spec.slices);
  state.registers.resize(std::size_t{spec.slices} * spec.miss_registers);
  for (std::uint32_t i = 0; i < spec.slices; ++i) {
    for (std::uint32_t k = (i + 1) * spec.miss_registers; k-- > i * spec.miss_registers;) {
      state.registers[k].waiters = state.slices[i].free_register;
      state.slices[i].free_register = k;
    }
  }
  state.channels.resize(spec.slices);
  state.banks.resize(std::size_t{spec.slices} * spec.banks);
}

std::uint32_t Engine::add_client(ClientSpec client) {
  const auto index = static_cast<std::uint32_t>(clients.size());
  ClientState added;
  added.allowed.assign(spec.sms(), 0);
  added.threads.assign(spec.sms(), 0);
  for (const std::uint32_t sm : client.sms) added.allowed.at(sm) = 1;
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
  schedule(now(), EventKind::kernel_start, index);
  return index;
}

void Engine::fail(ErrorKind kind, std::string message) {
  if (!state.error) state.error = Error{kind, std::move(message)};
  state.interrupted = true;
}

[[gnu::noinline]] std::uint32_t Engine::add_packet(const Packet& packet) {
  if (state.packets.size() == Event::indices) {
    fail(ErrorKind::check_failed,
         fmt::format("more than {} accesses are under way", Event::indices));
    return 0;
  }
  state.packets.push_back(packet);
  return static_cast<std::uint32_t>(state.packets.size() - 1);
}

// The state is larger than a core's caches, and events touch it all over. Packets on their way ask
// for what they will touch next (engine_l2.cpp); what the other events touch is asked for here, in
// two steps, as the second place stands in the first. Both steps take some events at a time and
// avoid branches on the kind of each, which the host cannot foretell.
[[gnu::noinline]] void Engine::look_ahead() {
  const auto set_pool = [&](EventKind kind, const void* start, std::uint32_t shift) {
    ahead_[static_cast<std::size_t>(kind)] = {static_cast<const char*>(start), shift, none};
  };
  set_pool(EventKind::warp, state.warps.data(), shift_of<WarpSlot>);
  set_pool(EventKind::fill, state.fetches.data(), shift_of<Fetch>);
  set_pool(EventKind::bank, state.banks.data(), shift_of<BankState>);
  for (const Event& coming : state.events.ahead(2 * look_at_once, look_at_once)) {
    const Ahead& pool = ahead_[coming.head & 15U];
    prefetch(pool.start + (std::size_t{coming.index() & pool.mask} << pool.shift));
  }
  const auto events = state.events.ahead(look_at_once, look_at_once);
  std::array<std::uint32_t, 16> kinds{};
  for (std::size_t i = 0; i < events.size(); ++i) kinds[events[i].head & 15U] |= 1U << i;
  const auto each = [&](EventKind kind, auto&& look) {
    for (auto rest = kinds[static_cast<std::size_t>(kind)]; rest != 0; rest &= rest - 1) {
      look(events[static_cast<std::size_t>(std::countr_zero(rest))].index());
    }
  };
  each(EventKind::done, [&](std::uint32_t index) {
    const Packet& packet = state.packets[index];
    if (!packet.injected) prefetch(&state.warps[packet.owner]);
  });
  each(EventKind::fill, [&](std::uint32_t index) {
    const Fetch& fetch = state.fetches[index];
    if (fetch.l2_line == none) return;
    state.l2.prefetch_state(fetch.l2_line);
    const std::uint32_t waiter = state.registers[fetch.owner].waiters;
    if (waiter != none) prefetch(&state.packets[waiter]);
  });
  each(EventKind::bank, [&](std::uint32_t index) {
    const std::uint32_t head = state.banks[index].queue[0].head;
    if (head != none) prefetch(&state.fetches[head]);
  });
  each(EventKind::warp, [&](std::uint32_t index) {
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
  const std::uint32_t index = event.index();
  switch (event.kind()) {
    case EventKind::kernel_start:
      kernel_start(index);
      break;
    case EventKind::warp:
      advance(index);
      break;
    case EventKind::lsu:
      state.sms[index].lsu_scheduled = false;
      run_lsu(index);
      break;
    case EventKind::l1_hit:
      load_done(index);
      break;
    case EventKind::inject:
      inject(index);
      break;
    case EventKind::gpc_request:
      gpc_request(event);
      break;
    case EventKind::arrive:
      arrive(event);
      break;
    case EventKind::lookup:
      lookup(index);
      break;
    case EventKind::bank:
      state.banks[index].scheduled = false;
      serve_bank(index);
      break;
    case EventKind::fill:
      fill(index);
      break;
    case EventKind::retry:
      state.slices[index].retry_scheduled = false;
      retry(index);
      break;
    case EventKind::gpc_reply:
      gpc_reply(event);
      break;
    case EventKind::done:
      packet_done(index);
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
