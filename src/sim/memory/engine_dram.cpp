// DRAM: a channel behind each slice, with banks of one open row. First ready, first come, first
// served: the oldest access to the open row goes before older ones to other rows, up to a limit.
// Writes gather until many wait and are then drained together; a read that comes meanwhile waits
// until few are left. The bus pays for each change of direction. Neither
// direction starves the other: after a turn's worth of accesses the one that waits may go. Both is
// what an H100 and an H200 do (docs/measurements/loaded.md).
#include <algorithm>

#include "engine.hpp"
#include "fifo.hpp"

namespace demarc::sim::memory {
namespace {

constexpr std::uint32_t row_window = 12;  // accesses of a bank that are looked through

}  // namespace

void Engine::start_fetch(const Fetch& fetch) {
  FetchIndex index = state.free_fetch;
  if (index == none) {
    index = state.fetches.next_key();
    state.fetches.push_back(fetch);
  } else {
    state.free_fetch = state.fetches[index].next;
    state.fetches[index] = fetch;
  }
  ChannelState& channel = state.channels[fetch.slice];
  ++(fetch.write ? channel.writes : channel.reads);
  push_back(state.banks[fetch.bank].queue[fetch.write ? 1 : 0], state.fetches, index);
  choose_direction(fetch.slice);
  serve_bank(fetch.bank);
}

void Engine::choose_direction(SliceIndex slice) {
  ChannelState& channel = state.channels[slice];
  const bool other_waits = channel.writing ? channel.reads > 0 : channel.writes >= spec.write_high;
  if (!other_waits) channel.turn = spec.turn;
  const bool turn_over = channel.turn == 0;
  const bool writing =
      channel.writing ? channel.writes > 0 &&
                            (channel.reads == 0 || (channel.writes > spec.write_low && !turn_over))
                      : channel.writes >= spec.write_high && (channel.reads == 0 || turn_over);
  if (writing == channel.writing) return;
  channel.writing = writing;
  channel.turn = spec.turn;
  ++state.dram.turnarounds;
  channel.bus.free_at =
      std::max(channel.bus.free_at, ticks_of(now())) + ticks_of(spec.turnaround_cycles);
  for (const BankInSlice bank : indices<BankInSlice>(spec.banks)) serve_bank(bank_of(slice, bank));
}

// A refresh that is due closes all rows of the channel and keeps it for a while. Channels have
// theirs one after the other.
void Engine::refresh(SliceIndex slice) {
  if (spec.refresh_interval_cycles == Cycles()) return;
  const std::uint64_t interval = spec.refresh_interval_cycles.raw();
  const std::uint64_t ahead = interval * slice.raw() / spec.slices;
  ChannelState& channel = state.channels[slice];
  const std::uint64_t due = (now().raw() + ahead) / interval;
  if (due == channel.refreshes) return;
  channel.refreshes = due;
  if (due * interval < ahead) return;  // before the first cycle
  const Cycles end = Cycles(due * interval - ahead) + spec.refresh_cycles;
  channel.bus.free_at = std::max(channel.bus.free_at, ticks_of(end));
  channel.activate_from = std::max(channel.activate_from, end);
  for (const BankInSlice bank : indices<BankInSlice>(spec.banks)) {
    state.banks[bank_of(slice, bank)].row = no_row;
  }
}

void Engine::activate(BankState& bank, BankIndex index, RowNumber row) {
  Cycles start = now() + (bank.row == no_row ? Cycles() : spec.precharge_cycles);
  start = std::max(start, bank.activate_from);
  // Its turn among those of the channel; a bank that is not ready then holds no other one.
  ChannelState& channel = state.channels[SliceIndex(index.raw() / spec.banks)];
  Cycles& window = channel.windows[channel.activations++ % channel.windows.size()];
  const Cycles turn = std::max({now(), channel.activate_from, window});
  channel.activate_from = turn + spec.activate_gap_cycles;
  window = turn + spec.activate_window_cycles;
  start = std::max(start, turn);
  bank.activate_from = start + spec.row_cycles;
  bank.row = row;
  bank.streak = 0;
  bank.free_at = start + spec.activate_cycles;
  bank.scheduled = true;
  ++state.dram.activations;
  schedule<EventKind::bank>(bank.free_at, index);
}

void Engine::column_access(BankState& bank, BankIndex index, FetchIndex number, FetchIndex before) {
  const Fetch fetch = state.fetches[number];
  ChannelState& channel = state.channels[fetch.slice];
  Fifo<FetchIndex>& queue = bank.queue[fetch.write ? 1 : 0];
  remove_after(queue, state.fetches, before);
  bank.streak = before == none ? 0 : bank.streak + 1;
  const std::uint64_t sectors = sector_count(fetch.sectors);
  const std::uint64_t bursts =
      (sectors + spec.burst_sectors - 1) / spec.burst_sectors * spec.burst_sectors;
  const Ticks ticks = bursts * spec.burst_ticks;
  const Cycles end = channel.bus.take(now() + spec.column_cycles, ticks);
  const Cycles begin((channel.bus.free_at - ticks).raw() / ticks_per_cycle);
  // The next column access of the bank leaves so that its data follows on the bus.
  bank.free_at = std::max(begin - spec.column_cycles + cycles_of(ticks), now() + 1_cycles);
  ++state.dram.row_hits;
  if (channel.turn > 0) --channel.turn;
  if (fetch.write) {
    state.dram.write_sectors += sectors;
    --channel.writes;
    state.fetches[number].next = state.free_fetch;
    state.free_fetch = number;
  } else {
    state.dram.read_sectors += sectors;
    --channel.reads;
    schedule<EventKind::from_dram>(end + spec.dram_cycles, number);
  }
  if (!bank.scheduled && (bank.queue[0].size + bank.queue[1].size) > 0) {
    bank.scheduled = true;
    schedule<EventKind::bank>(bank.free_at, index);
  }
  choose_direction(fetch.slice);
  SliceState& slice = state.slices[fetch.slice];
  if (fetch.write && slice.waiting.size + slice.stores.size > 0 && !slice.retry_scheduled) {
    slice.retry_scheduled = true;  // not now: a lookup may be under way
    schedule<EventKind::retry>(now(), fetch.slice);
  }
}

void Engine::serve_bank(BankIndex index) {
  BankState& bank = state.banks[index];
  if (bank.scheduled) return;
  const SliceIndex slice(index.raw() / spec.banks);
  refresh(slice);
  const ChannelState& channel = state.channels[slice];
  const Fifo<FetchIndex>& queue = bank.queue[channel.writing ? 1 : 0];
  if (queue.head == none) return;
  if (now() < bank.free_at) {
    bank.scheduled = true;
    schedule<EventKind::bank>(bank.free_at, index);
    return;
  }
  if (bank.row != no_row && now() > bank.free_at + spec.row_idle_cycles) bank.row = no_row;
  FetchIndex before = none;
  FetchIndex chosen = queue.head;
  if (state.fetches[chosen].row != bank.row && bank.streak < spec.row_streak &&
      bank.row != no_row) {
    FetchIndex previous = chosen;
    FetchIndex at = state.fetches[chosen].next;
    for (std::uint32_t seen = 1; at != none && seen < row_window; ++seen) {
      if (state.fetches[at].row == bank.row) {
        before = previous;
        chosen = at;
        break;
      }
      previous = at;
      at = state.fetches[at].next;
    }
  }
  if (state.fetches[chosen].row != bank.row) {
    activate(bank, index, state.fetches[chosen].row);
  } else {
    column_access(bank, index, chosen, before);
  }
}

}  // namespace demarc::sim::memory
