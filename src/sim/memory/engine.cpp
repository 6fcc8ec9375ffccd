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

Engine::Engine(const Spec& given) : common(given), sms(common) {
  ahead_.fill({&nothing_ahead, 0, 0});
}

// One access of a request leaves. An access counts as pending from its event until its arrival.
void Engine::inject(RequestIndex index) {
  InjectedState& injected = state.injected[index];
  const Request& request = injected.request;
  if (request.repeats == 0 && state.injected_closing) {
    --state.injected_pending;
    return;
  }
  constexpr std::uint32_t max_under_way = 2;
  if (request.interval != Cycles() && injected.under_way == max_under_way) {
    --state.injected_pending;
    injected.late = true;
    return;
  }
  ++injected.under_way;
  if (request.interval != Cycles()) schedule_inject(now() + request.interval, index);
  Packet packet;
  packet.line = line_of(request.address);
  packet.sectors = static_cast<std::uint8_t>(sector_of(request.address));
  packet.owner = index;
  packet.sm = request.sm;
  packet.kind = request.kind;
  packet.injected = true;
  packet.cached = request.cached || request.kind != StepKind::load;
  l2.send(packet, now());
}

void Engine::injected_done(RequestIndex index) {
  InjectedState& injected = state.injected[index];
  --state.injected_pending;
  --injected.under_way;
  if (injected.completion.count++ == 0) injected.completion.first = now();
  injected.completion.last = now();
  if (injected.completion.count == injected.request.repeats) {
    --state.injected_open;
  } else if (injected.request.interval == Cycles() || injected.late) {
    injected.late = false;
    schedule_inject(now(), index);
  }
}

// The state is larger than a core's caches, and events touch it all over. Packets on their way ask
// for what they will touch next (l2.cpp); what the other events touch is asked for here, in
// two steps, as the second place stands in the first. Both steps take some events at a time and
// avoid branches on the kind of each, which the host cannot foretell.
[[gnu::noinline]] void Engine::look_ahead() {
  const auto set_pool = [&](EventKind kind, const void* start, std::uint32_t shift) {
    ahead_[static_cast<std::size_t>(kind)] = {static_cast<const char*>(start), shift, None::raw};
  };
  set_pool(EventKind::warp, sms.state.warps.data(), shift_of<WarpSlot>);
  set_pool(EventKind::from_dram, dram.state.fetches.data(), shift_of<Fetch>);
  set_pool(EventKind::fill, dram.state.fetches.data(), shift_of<Fetch>);
  set_pool(EventKind::bank, dram.state.banks.data(), shift_of<BankState>);
  for (const Event& coming : common.events.ahead(2 * look_at_once, look_at_once)) {
    const Ahead& pool = ahead_[coming.head & 15U];
    prefetch(pool.start + (std::size_t{(coming.head >> 7U) & pool.mask} << pool.shift));
  }
  const auto events = common.events.ahead(look_at_once, look_at_once);
  std::array<std::uint32_t, 16> kinds{};
  for (std::size_t i = 0; i < events.size(); ++i) kinds[events[i].head & 15U] |= 1U << i;
  const auto each = [&]<EventKind kind>(std::integral_constant<EventKind, kind>, auto&& look) {
    for (auto rest = kinds[static_cast<std::size_t>(kind)]; rest != 0; rest &= rest - 1) {
      look(events[static_cast<std::size_t>(std::countr_zero(rest))].template subject<kind>());
    }
  };
  each(of_kind<EventKind::done>, [&](PacketIndex index) {
    const Packet& packet = l2.state.packets[index];
    if (!packet.injected) prefetch(&sms.state.warps[packet.owner.as<WarpIndex>()]);
  });
  each(of_kind<EventKind::fill>, [&](FetchIndex index) {
    const Fetch& fetch = dram.state.fetches[index];
    if (fetch.l2_line == none) return;
    l2.state.tags.prefetch_state(fetch.l2_line);
    const PacketIndex waiter =
        l2.state.registers[fetch.owner.as<RegisterIndex>()].chain.as<PacketIndex>();
    if (waiter != none) prefetch(&l2.state.packets[waiter]);
  });
  each(of_kind<EventKind::bank>, [&](BankIndex index) {
    const FetchIndex head = dram.state.banks[index].queue[0].head;
    if (head != none) prefetch(&dram.state.fetches[head]);
  });
  each(of_kind<EventKind::warp>, [&](WarpIndex index) {
    const WarpSlot& warp = sms.state.warps[index];
    const BlockSlot& block = sms.state.blocks[warp.block];
    if (!warp.has_step) {
      const BlockWork* const work = block.work.get();
      prefetch(work);
      prefetch(reinterpret_cast<const char*>(work) + host_line);
    } else if (warp.instructions == 0) {
      sms.prefetch_l1(block, warp.line);
    }
  });
}

[[gnu::always_inline]] inline void Engine::packet_done(const Packet& packet) {
  if (packet.injected) {
    injected_done(packet.owner.as<RequestIndex>());
  } else {
    sms.packet_done(packet);
  }
}

[[gnu::always_inline]] inline void Engine::handle(Event event) {
  switch (event.kind()) {
    case EventKind::kernel_start:
      sms.kernel_start(event.subject<EventKind::kernel_start>());
      break;
    case EventKind::warp:
      sms.advance(event.subject<EventKind::warp>());
      break;
    case EventKind::lsu:
      sms.state.sms[event.subject<EventKind::lsu>()].lsu_scheduled = false;
      sms.run_lsu(event.subject<EventKind::lsu>());
      break;
    case EventKind::l1_hit:
      sms.load_done(event.subject<EventKind::l1_hit>());
      break;
    case EventKind::inject:
      inject(event.subject<EventKind::inject>());
      break;
    case EventKind::gpc_request:
      l2.gpc_request(event);
      break;
    case EventKind::arrive:
      l2.arrive(event);
      break;
    case EventKind::lookup:
      l2.lookup(event.subject<EventKind::lookup>());
      break;
    case EventKind::bank:
      dram.state.banks[event.subject<EventKind::bank>()].scheduled = false;
      dram.serve_bank(event.subject<EventKind::bank>());
      break;
    case EventKind::from_dram:
      l2.from_dram(event.subject<EventKind::from_dram>());
      break;
    case EventKind::fill:
      l2.fill(event.subject<EventKind::fill>());
      break;
    case EventKind::retry:
      l2.state.slices[event.subject<EventKind::retry>()].retry_scheduled = false;
      l2.retry(event.subject<EventKind::retry>());
      break;
    case EventKind::gpc_reply:
      l2.gpc_reply(event);
      break;
    case EventKind::done:
      packet_done(l2.take_out(event.subject<EventKind::done>()));
      break;
    case EventKind::walk:
      sms.mmu.walk(event.subject<EventKind::walk>());
      break;
    case EventKind::walked:
      sms.mmu.walked(event.subject<EventKind::walked>());
      break;
  }
}

void Engine::step() {
  const Event event = common.events.pop();
  if (++steps_ % look_at_once == 0) look_ahead();
  handle(event);
}

void Engine::run_until(Cycles end) {
  common.interrupted = false;
  do {
    step();
  } while (!common.interrupted && !common.events.empty() && now() <= end);
}

void Engine::run_through(Cycles end) {
  while (!common.error && common.events.next_time() <= end) step();
}

}  // namespace demarc::sim::memory
