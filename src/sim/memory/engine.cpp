#include "engine.hpp"

namespace demarc::sim::memory {

void TagArray::resize(std::size_t lines, std::uint32_t new_ways) {
  ways = new_ways;
  at.assign(lines, {});
}

std::uint32_t TagArray::victim(std::size_t first) const {
  std::uint32_t best = none;
  std::uint32_t oldest = none;
  for (std::uint32_t way = 0; way < ways; ++way) {
    const TagLine& candidate = at[first + way];
    if (candidate.line == none) return static_cast<std::uint32_t>(first) + way;
    if (candidate.pending == 0 && candidate.stamp < oldest) {
      best = static_cast<std::uint32_t>(first) + way;
      oldest = candidate.stamp;
    }
  }
  return best;
}

void TagArray::install(std::uint32_t index, std::uint32_t new_line) {
  at[index] = {};
  at[index].line = new_line;
  use(index);
}

Engine::Engine(const Spec& given) : spec(given), decoder(given.address) {
  state.sms.resize(spec.sms());
  state.gpc_request.resize(spec.gpcs);
  state.gpc_reply.resize(spec.gpcs);
  state.port_request.resize(spec.ports);
  state.port_reply.resize(spec.ports);
  state.l1.resize(spec.l1.lines() * spec.sms(), spec.l1.ways);
  state.l2.resize(spec.l2.lines() * spec.slices, spec.l2.ways);
  state.slices.resize(spec.slices);
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
}

std::uint32_t Engine::take_packet(const Packet& packet) {
  if (state.free_packet == none) {
    state.packets.push_back(packet);
    return static_cast<std::uint32_t>(state.packets.size() - 1);
  }
  const std::uint32_t index = state.free_packet;
  state.free_packet = state.packets[index].next;
  state.packets[index] = packet;
  return index;
}

void Engine::drop_packet(std::uint32_t index) {
  state.packets[index].next = state.free_packet;
  state.free_packet = index;
}

void Engine::step() {
  const Event event = state.events.pop();
  // The state is far larger than a core's caches, and events touch it all over: what the coming
  // ones touch is asked for in two steps, as the second place stands in the first. Not a function
  // of its own: GCC takes one for free of effects and drops its calls.
  constexpr std::size_t first_step = 14;
  constexpr std::size_t second_step = 7;
  if (const Event* coming = state.events.ahead(first_step)) {
    switch (coming->kind) {
      case EventKind::gpc_request:
      case EventKind::arrive:
      case EventKind::lookup:
      case EventKind::gpc_reply:
      case EventKind::done:
        __builtin_prefetch(&state.packets[coming->index], 1);
        break;
      case EventKind::warp:
        __builtin_prefetch(&state.warps[coming->index], 1);
        break;
      case EventKind::fill:
        __builtin_prefetch(&state.fetches[coming->index], 1);
        break;
      case EventKind::bank:
        __builtin_prefetch(&state.banks[coming->index], 1);
        break;
      default:
        break;
    }
  }
  if (const Event* coming = state.events.ahead(second_step)) {
    switch (coming->kind) {
      case EventKind::lookup: {
        const TagLine* tags = state.l2.at.data() + set_of(state.packets[coming->index]);
        for (std::uint32_t way = 0; way < spec.l2.ways; way += 4) __builtin_prefetch(tags + way);
        break;
      }
      case EventKind::done: {
        const Packet& packet = state.packets[coming->index];
        if (packet.l1_line != none) __builtin_prefetch(&state.l1.at[packet.l1_line], 1);
        if (!packet.injected) __builtin_prefetch(&state.warps[packet.owner], 1);
        break;
      }
      case EventKind::fill: {
        const Fetch& fetch = state.fetches[coming->index];
        if (fetch.l2_line != none) __builtin_prefetch(&state.l2.at[fetch.l2_line], 1);
        break;
      }
      case EventKind::bank: {
        const std::uint32_t head = state.banks[coming->index].queue[0].head;
        if (head != none) __builtin_prefetch(&state.fetches[head], 1);
        break;
      }
      default:
        break;
    }
  }
  switch (event.kind) {
    case EventKind::kernel_start:
      kernel_start(event.index);
      break;
    case EventKind::warp:
      advance(event.index);
      break;
    case EventKind::lsu:
      state.sms[event.index].lsu_scheduled = false;
      run_lsu(event.index);
      break;
    case EventKind::l1_hit:
      load_done(event.index);
      break;
    case EventKind::inject:
      inject(event.index);
      break;
    case EventKind::gpc_request:
      gpc_request(event.index);
      break;
    case EventKind::arrive:
      arrive(event.index);
      break;
    case EventKind::lookup:
      lookup(event.index);
      break;
    case EventKind::bank:
      state.banks[event.index].scheduled = false;
      serve_bank(event.index);
      break;
    case EventKind::fill:
      fill(event.index);
      break;
    case EventKind::retry:
      state.slices[event.index].retry_scheduled = false;
      retry(event.index);
      break;
    case EventKind::gpc_reply:
      gpc_reply(event.index);
      break;
    case EventKind::done:
      packet_done(event.index);
      break;
  }
}

}  // namespace demarc::sim::memory
