// First ready, first come, first served: the oldest access to the open row goes before older ones
// to other rows, up to a limit. Writes gather until many wait and are then drained together. Reads
// and writes take turns: while the other direction waits, each bank opens one row, and the number
// of accesses per turn is limited. The bus pays for each change of direction. This is what an H100
// and an H200 do (docs/measurements/loaded.md).
#include "dram.hpp"

#include <algorithm>

#include "demarc/base/rounding.hpp"

namespace demarc::sim::memory {
namespace {

constexpr std::uint32_t row_window = 12;  // accesses of a bank that are looked through

}  // namespace

Dram::Dram(Common& common, PerIndex<SliceIndex, SliceState>& slices)
    : Part(common), slices_(slices) {
  state.channels.resize(spec.slices);
  state.banks.resize(std::size_t{spec.slices} * spec.banks);
}

void Dram::start(const Fetch& fetch) {
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

bool Dram::other_waits(const ChannelState& channel) const {
  return channel.writing ? channel.reads > 0 : channel.writes >= spec.write_high;
}

// The access that a bank serves next: the oldest to its open row, unless older ones have waited
// for long.
Dram::Choice Dram::choose(const BankState& bank, bool writing) const {
  const Fifo<FetchIndex>& queue = bank.queue[writing ? 1 : 0];
  Choice oldest{queue.head, none, false};
  if (queue.head == none) return oldest;
  oldest.open = state.fetches[queue.head].row == bank.row;
  if (oldest.open || bank.streak >= spec.row_streak || bank.row == no_row) return oldest;
  FetchIndex before = queue.head;
  for (std::uint32_t seen = 1; seen < row_window; ++seen) {
    const FetchIndex at = state.fetches[before].next;
    if (at == none) break;
    if (state.fetches[at].row == bank.row) return {at, before, true};
    before = at;
  }
  return oldest;
}

// Whether a bank may serve something in this turn, in which each opens one row.
bool Dram::turn_lasts(SliceIndex slice) const {
  const ChannelState& channel = state.channels[slice];
  if (channel.turn == 0) return false;
  for (const BankInSlice in_slice : indices<BankInSlice>(spec.banks)) {
    const BankState& bank = state.banks[bank_of(slice, in_slice)];
    const Choice next = choose(bank, channel.writing);
    if (next.fetch != none && (next.open || bank.turn != channel.turns)) return true;
  }
  return false;
}

void Dram::choose_direction(SliceIndex slice) {
  ChannelState& channel = state.channels[slice];
  if (!other_waits(channel)) {
    channel.turn = spec.turn;
    ++channel.turns;
    if (!channel.writing || channel.writes > 0) return;
  } else if (channel.writing ? channel.writes > spec.write_low && turn_lasts(slice)
                             : turn_lasts(slice)) {
    return;
  }
  channel.writing = !channel.writing;
  channel.turn = spec.turn;
  ++channel.turns;
  ++state.statistics.turnarounds;
  channel.bus.free_at =
      std::max(channel.bus.free_at, ticks_of(now())) + ticks_of(spec.turnaround_cycles);
  for (const BankInSlice bank : indices<BankInSlice>(spec.banks)) serve_bank(bank_of(slice, bank));
}

// A refresh that is due closes all rows of the channel and keeps it for a while. Channels have
// theirs one after the other.
void Dram::refresh(SliceIndex slice) {
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

void Dram::activate(BankState& bank, BankIndex index, RowNumber row) {
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
  ++state.statistics.activations;
  schedule<EventKind::bank>(bank.free_at, index);
}

void Dram::column_access(BankState& bank, BankIndex index, FetchIndex number, FetchIndex before) {
  const Fetch fetch = state.fetches[number];
  ChannelState& channel = state.channels[fetch.slice];
  Fifo<FetchIndex>& queue = bank.queue[fetch.write ? 1 : 0];
  remove_after(queue, state.fetches, before);
  bank.streak = before == none ? 0 : bank.streak + 1;
  const std::uint64_t sectors = sector_count(fetch.sectors);
  const std::uint64_t bursts = round_up(sectors, spec.burst_sectors);
  const Ticks ticks = bursts * spec.burst_ticks;
  const Cycles end = channel.bus.take(now() + spec.column_cycles, ticks);
  const Cycles begin((channel.bus.free_at - ticks).raw() / ticks_per_cycle);
  // The next column access of the bank leaves so that its data follows on the bus.
  bank.free_at = std::max(begin - spec.column_cycles + cycles_of(ticks), now() + 1_cycles);
  ++state.statistics.row_hits;
  if (channel.turn > 0) --channel.turn;
  if (fetch.write) {
    state.statistics.write_sectors += sectors;
    --channel.writes;
    drop(number);
  } else {
    state.statistics.read_sectors += sectors;
    --channel.reads;
    schedule<EventKind::from_dram>(end + spec.dram_cycles, number);
  }
  if (!bank.scheduled && (bank.queue[0].size + bank.queue[1].size) > 0) {
    bank.scheduled = true;
    schedule<EventKind::bank>(bank.free_at, index);
  }
  choose_direction(fetch.slice);
  SliceState& slice = slices_[fetch.slice];
  if (fetch.write && slice.waiting.size + slice.stores.size > 0 && !slice.retry_scheduled) {
    slice.retry_scheduled = true;  // not now: a lookup may be under way
    schedule<EventKind::retry>(now(), fetch.slice);
  }
}

void Dram::serve_bank(BankIndex index) {
  BankState& bank = state.banks[index];
  if (bank.scheduled) return;
  const SliceIndex slice(index.raw() / spec.banks);
  refresh(slice);
  const ChannelState& channel = state.channels[slice];
  if (bank.queue[channel.writing ? 1 : 0].head == none) return;
  if (now() < bank.free_at) {
    bank.scheduled = true;
    schedule<EventKind::bank>(bank.free_at, index);
    return;
  }
  if (bank.row != no_row && now() > bank.free_at + spec.row_idle_cycles) bank.row = no_row;
  const Choice next = choose(bank, channel.writing);
  if (next.open) {
    column_access(bank, index, next.fetch, next.before);
  } else if (bank.turn != channel.turns || !other_waits(channel)) {
    bank.turn = channel.turns;
    activate(bank, index, state.fetches[next.fetch].row);
  } else {
    choose_direction(slice);  // a refresh may have closed the last row of the turn
  }
}

}  // namespace demarc::sim::memory
