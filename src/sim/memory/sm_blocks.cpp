// Kernels and thread blocks: which block runs where.
#include "sms.hpp"

namespace demarc::sim::memory {

ClientIndex Sms::add_client(ClientSpec client) {
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
  mmu.add_client(client.translation);
  dispatch.push_back(std::move(policy));
  clients.push_back(std::move(client));
  state.clients.push_back(std::move(added));
  common_.statistics.emplace_back();
  if (auto begun = clients.back().source->restart(); !begun) {
    fail(begun.error().kind, begun.error().message);
  }
  state.clients.back().run_start = now();
  schedule<EventKind::kernel_start>(now(), index);
  return index;
}

void Sms::kernel_start(ClientIndex number) {
  ClientState& client = state.clients[number];
  if (!client.known) {
    const auto more = clients[number].source->next_kernel(client.shape);
    if (!more) return fail(more.error().kind, more.error().message);
    if (!*more) {
      return fail(ErrorKind::invalid_input,
                  fmt::format("{}: the launch has no kernel", clients[number].name));
    }
  }
  client.known = false;
  client.blocks_left = client.shape.blocks;
  client.next_block = 0;
  client.launched = ++state.launches;
  client.active = true;
  client.kernel_start = now();
  client.launch_misses = spec.launch_misses;
  read_for_launch(number);
}

// What a kernel needs before its first block and no cache has, one read after the other, from the
// client's own memory.
void Sms::read_for_launch(ClientIndex number) {
  ClientState& client = state.clients[number];
  if (client.launch_misses == 0) return begin_blocks(number);
  --client.launch_misses;
  const Translation& translation = clients[number].translation;
  const std::uint64_t chunks = translation.chunks.size();
  Packet packet;
  packet.line = chunks == 0 ? LineNumber(0) : line_of(translation.chunks[client.launched % chunks]);
  packet.sectors = 1;
  packet.owner = number;
  packet.sm = clients[number].sms.front();
  packet.client = number;
  packet.cached = false;
  packet.launch = true;
  l2.send(packet, now());
}

void Sms::begin_blocks(ClientIndex number) {
  for (const SmIndex sm : clients[number].sms) forget_l1(sm);
  place_all(number);
  if (state.clients[number].shape.blocks == 0) kernel_end(number);
}

// A card's L1s are empty when a kernel begins.
void Sms::forget_l1(SmIndex number) {
  SmState& sm = state.sms[number];
  if (!sm.l1_used) return;
  sm.l1_used = false;
  state.l1.forget(number);
}

// The next kernel of a launch starts after a pause, and so does the next launch.
void Sms::kernel_end(ClientIndex number) {
  ClientState& client = state.clients[number];
  client.active = false;
  client.kernel_cycles += now() - client.kernel_start;
  const auto more = clients[number].source->next_kernel(client.shape);
  if (!more) return fail(more.error().kind, more.error().message);
  client.known = *more;
  schedule<EventKind::kernel_start>(now() + spec.launch_cycles, number);
  if (*more) return;
  common_.statistics[number].run_cycles.push_back(now() - client.run_start);
  common_.statistics[number].kernel_cycles.push_back(client.kernel_cycles);
  client.kernel_cycles = Cycles();
  common_.interrupted = true;
  client.run_start = now() + spec.launch_cycles;
  if (auto begun = clients[number].source->restart(); !begun) {
    fail(begun.error().kind, begun.error().message);
  }
}

bool Sms::fits(ClientIndex client, SmIndex number) const {
  const SmState& sm = state.sms[number];
  const KernelShape& shape = state.clients[client].shape;
  const std::uint32_t most = clients[client].threads_per_sm;
  if (most != 0 && state.clients[client].threads[number] + shape.warps() * 32 > most) return false;
  return sm.blocks < spec.blocks && sm.threads + shape.warps() * 32 <= spec.threads &&
         (spec.shared_bytes == 0 || sm.shared_bytes + shape.shared_bytes <= spec.shared_bytes) &&
         (spec.registers == 0 || sm.registers + shape.block_registers() <= spec.registers);
}

// Without a policy: breadth first, each block goes to the SM with the fewest threads.
void Sms::place_all(ClientIndex number) {
  const ClientState& client = state.clients[number];
  BlockDispatch* const policy = dispatch[number].get();
  if (policy != nullptr) policy->begin();
  while (client.blocks_left > 0 && !common_.error) {
    if (policy != nullptr) {
      const auto [sm, block] =
          policy->choose(client.shape, client.shape.blocks - client.blocks_left);
      if (sm == none || !place(number, sm, block)) return;
      continue;
    }
    SmIndex best = none;
    for (const SmIndex sm : clients[number].sms) {
      if (!fits(number, sm)) continue;
      if (best == none || state.sms[sm].threads < state.sms[best].threads) best = sm;
    }
    if (best == none || !place_next(number, best)) return;
  }
}

// Takes a block of the kernel out of the source, which gives them in index order.
Result<std::unique_ptr<BlockWork>> Sms::take_block(ClientIndex number, std::uint32_t index) {
  ClientState& client = state.clients[number];
  if (const auto skipped = client.skipped.find(index); skipped != client.skipped.end()) {
    auto work = std::move(skipped->second);
    client.skipped.erase(skipped);
    return work;
  }
  for (;; ++client.next_block) {
    DEMARC_TRY(auto work, clients[number].source->next_block());
    if (client.next_block == index) {
      ++client.next_block;
      return work;
    }
    client.skipped.emplace(client.next_block, std::move(work));
  }
}

bool Sms::place_next(ClientIndex number, SmIndex sm) {
  const ClientState& client = state.clients[number];
  return place(number, sm, client.shape.blocks - client.blocks_left);
}

bool Sms::place(ClientIndex number, SmIndex sm_number, std::uint32_t index) {
  auto work = take_block(number, index);
  if (!work) {
    fail(work.error().kind, work.error().message);
    return false;
  }
  ClientState& client = state.clients[number];
  --client.blocks_left;
  ++client.blocks_running;
  ++common_.statistics[number].blocks;
  const KernelShape& shape = client.shape;
  SmState& sm = state.sms[sm_number];
  ++sm.blocks;
  sm.threads += shape.warps() * 32;
  client.threads[sm_number] += shape.warps() * 32;
  sm.shared_bytes += shape.shared_bytes;
  sm.registers += shape.block_registers();
  for (const ClientIndex i : dispatch.keys()) {
    if (dispatch[i]) dispatch[i]->placed(sm_number, shape, i == number);
  }
  BlockIndex slot = none;
  if (state.free_blocks.empty()) {
    slot = state.blocks.next_key();
    state.blocks.emplace_back();
  } else {
    slot = state.free_blocks.back();
    state.free_blocks.pop_back();
  }
  BlockSlot& block = state.blocks[slot];
  block.work = std::move(*work);
  block.warps.clear();
  block.client = number;
  block.sm = sm_number;
  block.live = shape.warps();
  block.arrived = 0;
  for (std::uint32_t i = 0; i < shape.warps(); ++i) {
    WarpIndex warp = none;
    if (state.free_warps.empty()) {
      warp = state.warps.next_key();
      state.warps.emplace_back();
      state.warp_lines.emplace_back();
    } else {
      warp = state.free_warps.back();
      state.free_warps.pop_back();
    }
    WarpSlot& added = state.warps[warp];
    added.block = slot;
    added.index = static_cast<std::uint16_t>(i);
    added.outstanding = 0;
    added.has_step = false;
    added.state = WarpState::ready;
    block.warps.push_back(warp);
    schedule<EventKind::warp>(now() + spec.block_start_cycles, warp);
  }
  return true;
}

void Sms::end_block(BlockIndex slot) {
  BlockSlot& block = state.blocks[slot];
  const ClientIndex number = block.client;
  const SmIndex sm_number = block.sm;
  ClientState& client = state.clients[number];
  const KernelShape shape = client.shape;
  SmState& sm = state.sms[sm_number];
  --sm.blocks;
  sm.threads -= shape.warps() * 32;
  client.threads[sm_number] -= shape.warps() * 32;
  sm.shared_bytes -= shape.shared_bytes;
  sm.registers -= shape.block_registers();
  for (const ClientIndex i : dispatch.keys()) {
    if (dispatch[i]) dispatch[i]->ended(sm_number, shape, i == number);
  }
  state.free_warps.insert(state.free_warps.end(), block.warps.rbegin(), block.warps.rend());
  block.work.reset();
  state.free_blocks.push_back(slot);
  --client.blocks_running;
  end_kernel_if_done(number);
  refill(sm_number);
}

// A kernel ends when the L2 has acknowledged its last store.
void Sms::end_kernel_if_done(ClientIndex number) {
  const ClientState& client = state.clients[number];
  if (client.blocks_left == 0 && client.blocks_running == 0 && client.stores == 0)
    kernel_end(number);
}

// Room on one SM: kernels that have waited longest come first. One that does not fit now will not
// fit when more has been placed, so each is asked once.
void Sms::refill(SmIndex sm) {
  for (std::uint64_t asked = 0;;) {
    ClientIndex chosen = none;
    for (const ClientIndex i : state.clients.keys()) {
      const ClientState& client = state.clients[i];
      if (!client.active || client.blocks_left == 0 || client.allowed[sm] == 0) continue;
      if (client.launched <= asked) continue;
      if (chosen == none || client.launched < state.clients[chosen].launched) chosen = i;
    }
    if (chosen == none) return;
    const ClientState& client = state.clients[chosen];
    asked = client.launched;
    if (dispatch[chosen]) {
      place_all(chosen);
    } else {
      while (client.blocks_left > 0 && fits(chosen, sm) && place_next(chosen, sm)) {
      }
    }
    if (common_.error) return;
  }
}

}  // namespace demarc::sim::memory
