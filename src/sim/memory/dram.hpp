// The DRAM of a card: a channel behind each slice of the L2, with banks of one open row.
#pragma once

#include <array>

#include "fifo.hpp"
#include "packet.hpp"

namespace demarc::sim::memory {

// A transfer between a slice and its channel.
struct alignas(16) Fetch {
  L2Tags::Way l2_line = none;               // none: for a packet alone, past the tags
  OneOf<PacketIndex, RegisterIndex> owner;  // that packet, or the miss register
  FetchIndex next = none;
  RowNumber row;
  BankIndex bank;
  Packed<SliceIndex, std::uint16_t> slice;
  std::uint8_t sectors = 0;
  bool write = false;
};

struct SliceState {
  Fifo<PacketIndex> waiting;  // loads and atomics that need a miss register, a way or room to write
  Fifo<PacketIndex> stores;   // that need a way or room to write
  Fifo<PacketIndex> past;     // reads past the tags that need one of the registers for these
  std::uint32_t misses = 0;
  std::uint32_t uncached = 0;  // misses of reads past the tags
  RegisterIndex free_register = none;
  bool retry_scheduled = false;
  bool first_absent = false;  // the line of the first that waits was looked for and is not there
};

struct ChannelState {
  Server bus;
  std::uint32_t reads = 0;
  std::uint32_t writes = 0;
  std::uint32_t turn = 0;           // accesses until the other direction, if it waits, has its turn
  std::uint32_t turns = 0;          // that have begun
  Cycles activate_from;             // the next activation of any bank
  std::array<Cycles, 4> windows{};  // when those end that the last four activations began
  std::uint32_t activations = 0;
  std::uint64_t refreshes = 0;  // that have begun
  bool writing = false;
};

// For a bank that is closed.
inline constexpr RowNumber no_row{~std::uint32_t{0}};

struct alignas(64) BankState {
  Fifo<FetchIndex> queue[2];  // reads, writes
  Cycles free_at;
  Cycles activate_from;
  RowNumber row = no_row;
  std::uint32_t streak = 0;
  std::uint32_t turn = ~std::uint32_t{0};  // of the channel, in which the bank opened a row last
  bool scheduled = false;
};

class Dram : public Part {
 public:
  struct State {
    PerIndex<SliceIndex, ChannelState> channels;
    PerIndex<BankIndex, BankState> banks;
    LargePerIndex<FetchIndex, Fetch> fetches;
    FetchIndex free_fetch = none;
    DramStatistics statistics;
  };

  // A slice that waits is tried again when a write has left.
  Dram(Common& common, PerIndex<SliceIndex, SliceState>& slices);

  State state;

  // Its end is the event from_dram, unless it writes.
  void start(const Fetch& fetch);
  // The data of a read lies in the L2.
  void drop(FetchIndex fetch) {
    state.fetches[fetch].next = state.free_fetch;
    state.free_fetch = fetch;
  }
  void serve_bank(BankIndex bank);
  [[nodiscard]] BankIndex bank_of(SliceIndex slice, BankInSlice bank) const {
    return BankIndex(slice.raw() * spec.banks + bank.raw());
  }

 private:
  void activate(BankState& bank, BankIndex index, RowNumber row);
  void refresh(SliceIndex slice);
  void column_access(BankState& bank, BankIndex index, FetchIndex fetch, FetchIndex before);
  // What a bank serves next, what stands before it in the queue, and whether its row is open.
  struct Choice {
    FetchIndex fetch;
    FetchIndex before;
    bool open;
  };
  Choice choose(const BankState& bank, bool writing) const;
  bool other_waits(const ChannelState& channel) const;
  bool turn_lasts(SliceIndex slice) const;
  void choose_direction(SliceIndex slice);

  PerIndex<SliceIndex, SliceState>& slices_;
};

}  // namespace demarc::sim::memory
