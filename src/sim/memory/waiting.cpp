// Says why a simulation is stuck: lists every queue that holds something.
#include "engine.hpp"

namespace demarc::sim::memory {
namespace {

std::string client_line(const ClientSpec& spec, const ClientState& client,
                        const ClientStatistics& statistics) {
  if (!client.active) {
    return fmt::format("client {}: no kernel runs, {} launches finished\n", spec.name,
                       statistics.run_cycles.size());
  }
  return fmt::format(
      "client {}: kernel of {} blocks of {} threads, {} bytes of shared memory: {} "
      "not placed, {} running\n",
      spec.name, client.shape.blocks, client.shape.threads, client.shape.shared_bytes,
      client.blocks_left, client.blocks_running);
}

// What is on links and waits of fixed length, by where it arrives next.
std::string events_line(const EventQueue<Event>& events) {
  constexpr std::array<std::pair<EventKind, std::string_view>, 7> places{
      {{EventKind::gpc_request, "request links of GPCs"},
       {EventKind::arrive, "ports"},
       {EventKind::lookup, "tags"},
       {EventKind::walk, "page walkers"},
       {EventKind::fill, "L2, from DRAM"},
       {EventKind::gpc_reply, "reply links of GPCs"},
       {EventKind::done, "SMs"}}};
  std::array<std::size_t, 16> count{};
  events.each([&](const Event& event) { ++count[static_cast<std::size_t>(event.kind())]; });
  std::string text;
  for (const auto& [kind, name] : places) {
    const std::size_t found = count[static_cast<std::size_t>(kind)];
    if (found > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", found, name);
  }
  return text.empty() ? text : fmt::format("on the way to: {}\n", text);
}

struct WarpCount {
  std::uint32_t loads = 0, barrier = 0, lsu = 0, ready = 0;
};

}  // namespace

std::string Engine::waiting() const {
  const Spec& spec = common.spec;
  std::string text;
  for (const ClientIndex i : sms.clients.keys()) {
    text += client_line(sms.clients[i], sms.state.clients[i], common.statistics[i]);
  }
  PerIndex<SmIndex, WarpCount> counts(spec.sms());
  for (const WarpSlot& warp : sms.state.warps) {
    if (warp.state == WarpState::free) continue;
    WarpCount& count = counts[sms.state.blocks[warp.block].sm];
    count.loads += warp.state == WarpState::loads ? 1 : 0;
    count.barrier += warp.state == WarpState::barrier ? 1 : 0;
    count.lsu += warp.state == WarpState::lsu ? 1 : 0;
    count.ready += warp.state == WarpState::ready ? 1 : 0;
  }
  for (const SmIndex i : sms.state.sms.keys()) {
    const SmState& sm = sms.state.sms[i];
    if (sm.blocks == 0 && sm.misses == 0 && sm.stores == 0) continue;
    const WarpCount& count = counts[i];
    text += fmt::format(
        "SM {}: {} blocks; warps: {} wait for loads, {} at a barrier, {} for the load-store "
        "unit{}, "
        "{} others; {} of {} miss registers, {} of {} store registers\n",
        i, sm.blocks, count.loads, count.barrier, count.lsu, sm.lsu_stalled ? " (stalled)" : "",
        count.ready, sm.misses, spec.l1_miss_registers, sm.stores, spec.store_registers);
  }
  if (state.injected_pending > 0) {
    text += fmt::format("timed accesses: {} under way\n", state.injected_pending);
  }
  text += events_line(common.events);
  const Mmu::State& mmu = sms.mmu.state;
  if (mmu.waiters_now > 0) {
    text += fmt::format("page walks: {} of {} walkers, {} walks wait for one; {} accesses wait\n",
                        mmu.busy, spec.walkers, mmu.waiting.size, mmu.waiters_now);
  }
  for (const SliceIndex i : l2.state.slices.keys()) {
    const SliceState& slice = l2.state.slices[i];
    const ChannelState& channel = dram.state.channels[i];
    if (slice.misses == 0 && slice.waiting.size + slice.stores.size + slice.past.size == 0 &&
        channel.reads + channel.writes == 0) {
      continue;
    }
    text += fmt::format(
        "slice {}: {} of {} miss registers, {} packets wait; channel: {} reads, {} "
        "writes wait, {}\n",
        i, slice.misses, spec.miss_registers,
        slice.waiting.size + slice.stores.size + slice.past.size, channel.reads, channel.writes,
        channel.writing ? "writing" : "reading");
    for (const BankInSlice b : indices<BankInSlice>(spec.banks)) {
      const BankState& bank = dram.state.banks[dram.bank_of(i, b)];
      if (bank.queue[0].size + bank.queue[1].size == 0) continue;
      text += fmt::format(
          "  bank {}: {} reads, {} writes, row {}\n", b, bank.queue[0].size, bank.queue[1].size,
          bank.row == no_row ? std::string("closed") : fmt::format("{:#x}", bank.row));
    }
  }
  return text;
}

}  // namespace demarc::sim::memory
