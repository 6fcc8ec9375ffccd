// SMs: thread blocks and their warps, load-store units, L1 caches; and the clients whose kernels
// they run.
#pragma once

#include <map>

#include "block_dispatch.hpp"
#include "mmu.hpp"

namespace demarc::sim::memory {

struct L1Waiter {
  WarpIndex warp = none;
  WaiterIndex next = none;
  std::uint8_t needed = 0;
};

enum class WarpState : std::uint8_t { free, ready, loads, barrier, lsu };
// With the step it is at, of which lines from the second on lie elsewhere.
struct alignas(16) WarpSlot {
  LineEntry line;
  BlockIndex block = none;
  std::uint32_t outstanding : 24 = 0;  // loads, L1 hits and atomics under way
  std::uint32_t float_share : 8 = 0;   // floats among the instructions, in 255ths, rounded up
  WarpIndex next = none;               // in the LSU queue
  std::uint32_t instructions = 0;      // left to issue
  std::uint16_t shared_rows = 0;       // the same
  std::uint16_t index = 0;             // in the block
  std::uint8_t lines = 0;
  std::uint8_t lines_done = 0;
  StepKind kind : 4 = StepKind::end;
  WarpState state : 4 = WarpState::free;
  bool has_step : 1 = false;
  bool wait : 1 = false;
  bool past_l1 : 1 = false;
  bool streams : 1 = false;
};
static_assert(sizeof(WarpSlot) == 32);

struct BlockSlot {
  std::unique_ptr<BlockWork> work;
  std::vector<WarpIndex> warps;
  ClientIndex client;
  SmIndex sm;
  std::uint32_t live = 0;
  std::uint32_t arrived = 0;  // at the barrier
};

struct SmState {
  Server issue, floats, shared;
  Fifo<WarpIndex> lsu;
  Cycles lsu_free;
  bool lsu_scheduled = false;
  bool lsu_stalled = false;
  bool l1_used = false;  // since a kernel began here
  std::uint32_t misses = 0;
  std::uint32_t stores = 0;
  std::uint32_t threads = 0, blocks = 0, shared_bytes = 0, registers = 0;
};

struct ClientState {
  KernelShape shape;
  std::uint32_t blocks_left = 0;
  std::uint32_t blocks_running = 0;
  std::uint32_t stores = 0;      // that the L2 has not acknowledged
  std::uint32_t next_block = 0;  // of the kernel, that the source gives
  // Blocks that the source gave before their policy wanted them.
  std::map<std::uint32_t, std::unique_ptr<BlockWork>> skipped;
  std::uint64_t launched = 0;  // place in the order of kernel launches
  Cycles run_start;
  Cycles kernel_start;
  std::uint32_t launch_misses = 0;  // of the kernel that begins, still to come
  Cycles kernel_cycles;             // cycles of the run's kernels that have ended
  bool active = false;              // a kernel has started and not ended
  bool known = false;               // `shape` is that of the kernel to start next
  PerIndex<SmIndex, std::uint8_t> allowed;
  PerIndex<SmIndex, std::uint32_t> threads;  // resident
};

// Where an address lies on the card; nothing outside the translation or the card's lines.
inline std::optional<LineNumber> line_at(const Translation& translation, Address address) {
  if (translation.chunks.empty()) return find_line(PhysicalAddress(address.raw()));
  const std::uint64_t offset = address - translation.base;
  const std::uint64_t chunk = offset >> translation.chunk_shift;
  if (chunk >= translation.chunks.size()) return std::nullopt;
  const std::uint64_t within = offset & ((std::uint64_t{1} << translation.chunk_shift) - 1);
  return find_line(translation.chunks[chunk] + within);
}

class Sms : public Part {
 public:
  struct State {
    PerIndex<SmIndex, SmState> sms;
    L1Tags l1;
    PerIndex<L1Tags::Way, WaiterIndex> l1_lists;
    PerIndex<WaiterIndex, L1Waiter> l1_waiters;
    WaiterIndex free_waiter = none;
    LargePerIndex<WarpIndex, WarpSlot> warps;
    PerIndex<WarpIndex, std::array<LineEntry, 32>> warp_lines;  // lines of steps with more than one
    Step step;                                                  // as it comes from a source
    std::vector<WarpIndex> free_warps;
    PerIndex<BlockIndex, BlockSlot> blocks;
    std::vector<BlockIndex> free_blocks;
    PerIndex<ClientIndex, ClientState> clients;
    std::uint64_t launches = 0;
  };

  explicit Sms(Common& common);

  State state;
  L2 l2;                                                           // where accesses go
  Mmu mmu;                                                         // and are translated
  PerIndex<ClientIndex, ClientSpec> clients;                       // Resources
  PerIndex<ClientIndex, std::unique_ptr<BlockDispatch>> dispatch;  // null: no policy

  ClientIndex add_client(ClientSpec client);

  // Events.
  void kernel_start(ClientIndex client);
  void advance(WarpIndex warp);
  void run_lsu(SmIndex sm);
  void load_done(WarpIndex warp);
  void packet_done(const Packet& packet);

  void prefetch_l1(const BlockSlot& block, LineEntry entry) const {
    if (spec.l1.sets == 0) return;
    const auto line = line_at(clients[block.client].translation, entry.line());
    if (line) state.l1.prefetch_set(l1_set_of(block.sm, *line));
  }

 private:
  // Warps and L1s (sms.cpp)
  void take_step(WarpIndex warp, BlockSlot& block);
  void barrier(WarpIndex warp);
  void complete_barrier(BlockSlot& block);
  void end_warp(WarpIndex warp);
  void queue_access(WarpIndex warp);
  bool issue_line(SmIndex sm, WarpIndex warp, LineEntry entry, Cycles at, bool& l1_hit);
  bool passes_l1(Packet& packet, bool& l1_hit);
  void send_translated(Packet& packet, Cycles at, Address address);
  void wait_in_list(WarpIndex warp, L1Tags::Way l1_line, std::uint8_t needed);
  [[nodiscard]] WaiterIndex ready_waiters(L1Tags::Way l1_line);
  void resume_lsu(SmIndex sm);
  void outside(ClientIndex client, Address address);
  [[nodiscard]] L1Tags::Set l1_set_of(SmIndex sm, LineNumber line) const {
    return l1_set(spec, sm, line.raw() ^ (line.raw() >> l1_set_bits_));
  }

  // Blocks (sm_blocks.cpp)
  void kernel_end(ClientIndex client);
  void read_for_launch(ClientIndex client);
  void begin_blocks(ClientIndex client);
  void place_all(ClientIndex client);
  void refill(SmIndex sm);
  [[nodiscard]] bool fits(ClientIndex client, SmIndex sm) const;
  // The next block in index order; false: there is an error.
  bool place_next(ClientIndex client, SmIndex sm);
  bool place(ClientIndex client, SmIndex sm, std::uint32_t index);
  Result<std::unique_ptr<BlockWork>> take_block(ClientIndex client, std::uint32_t index);
  void end_kernel_if_done(ClientIndex number);
  void end_block(BlockIndex block);
  void forget_l1(SmIndex sm);

  std::uint32_t l1_set_bits_ = 0;
};

}  // namespace demarc::sim::memory
