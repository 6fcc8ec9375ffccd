// The engine of a simulation. Spec: settings, fixed. State: plain data in flat arrays that says
// where everything is. Resources: what the outside lent (sources). Events carry an index.
#pragma once

#include <functional>
#include <optional>

#include "block_dispatch.hpp"
#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "tag_array.hpp"

namespace demarc::sim::memory {

enum class EventKind : std::uint32_t {
  kernel_start,  // of a client
  warp,          // has issued its instructions, or is free again
  lsu,           // of an SM takes its next instruction
  l1_hit,        // of a warp
  inject,        // a request of timed()
  gpc_request,   // a packet reaches the request link of its GPC
  arrive,        // a packet reaches the port of its slice
  lookup,        // and the tags
  bank,          // of DRAM can do something again
  fill,          // data from DRAM
  retry,         // of what waits in a slice
  gpc_reply,     // a packet reaches the reply link of its GPC
  done,          // and its SM
};

// What a link needs to know of a packet travels in the event, so that packets, of which many are
// under way, are looked at only where they end; and so does what lets the host ask early for what
// the end will touch.
struct Event {
  static constexpr std::uint32_t indices = 1U << 25U;
  std::uint32_t head = 0;   // kind in bits 0-3, sectors on the link in bits 4-6, then the index
  std::uint16_t place = 0;  // SM of a packet
  std::uint16_t port = 0;   // and port of its slice; on the way back, its L1 set
  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(head & 15U); }
  [[nodiscard]] std::uint32_t sectors() const { return (head >> 4U) & 7U; }
  [[nodiscard]] std::uint32_t index() const { return head >> 7U; }
  [[nodiscard]] Event as(EventKind kind) const {
    return {(head & ~15U) | static_cast<std::uint32_t>(kind), place, port};
  }
};

// A link or bus, busy until free_at. Users come in order of time.
struct Server {
  Ticks free_at;
  // The cycle in which `ticks` of service, asked for at `now`, have ended.
  Cycles take(Cycles now, Ticks ticks) {
    const Ticks begin = ticks_of(now);
    free_at = (free_at > begin ? free_at : begin) + ticks;
    return cycles_of(free_at);
  }
};

// Sectors in a mask of four; the baseline instruction set has no instruction for it.
inline std::uint32_t sector_count(std::uint8_t mask) {
  return static_cast<std::uint32_t>((0x4332322132212110ULL >> (4U * mask)) & 15U);
}

struct Fifo {
  std::uint32_t head = none;
  std::uint32_t tail = none;
  std::uint32_t size = 0;
};

// A line asked for, on its way out or back. Half a line of the host's cache.
struct alignas(16) Packet {
  LineNumber line;
  std::uint32_t next = none;     // in a wait queue or a list of waiters
  std::uint32_t owner = none;    // warp, or request of timed()
  std::uint32_t l1_line = none;  // to be filled; none: the owner waits for it alone
  RowNumber row;
  std::uint16_t sm = 0;
  std::uint16_t slice = 0;
  std::uint16_t client = 0;
  std::uint16_t set = 0;  // place in the slice and its channel
  std::uint8_t bank = 0;
  StepKind kind = StepKind::load;
  std::uint8_t sectors = 0;
  bool injected : 1 = false;
  bool cached : 1 = true;
  bool listed : 1 = false;  // the owner is in the list of its L1 line
};
static_assert(sizeof(Packet) == 32);

struct L1Waiter {
  std::uint32_t warp = none;
  std::uint32_t next = none;
  std::uint8_t needed = 0;
};

// Of a slice: a line with sectors under way, and who waits for them.
struct MissRegister {
  std::uint32_t l2_line = none;
  std::uint32_t waiters = none;  // list of packets; of a free register, the next one
};

// A transfer between a slice and its channel.
struct alignas(16) Fetch {
  std::uint32_t l2_line = none;  // none: for a packet alone, past the tags
  std::uint32_t owner = none;    // that packet, or the miss register
  std::uint32_t next = none;
  RowNumber row;
  std::uint32_t bank = 0;  // over all channels
  std::uint16_t slice = 0;
  std::uint8_t sectors = 0;
  bool write = false;
};

enum class WarpState : std::uint8_t { free, ready, loads, barrier, lsu };
// With the step it is at, of which lines from the second on lie elsewhere.
struct alignas(16) WarpSlot {
  LineEntry line;
  std::uint32_t block = none;
  std::uint32_t outstanding = 0;   // loads, L1 hits and atomics under way
  std::uint32_t next = none;       // in the LSU queue
  std::uint32_t instructions = 0;  // left to issue
  std::uint16_t index = 0;         // in the block
  std::uint8_t lines = 0;
  std::uint8_t lines_done = 0;
  StepKind kind = StepKind::end;
  WarpState state = WarpState::free;
  bool has_step = false;
  bool wait = false;
};
static_assert(sizeof(WarpSlot) == 32);

struct BlockSlot {
  std::unique_ptr<BlockWork> work;
  std::vector<std::uint32_t> warps;
  std::uint32_t client = 0;
  std::uint32_t sm = 0;
  std::uint32_t live = 0;
  std::uint32_t arrived = 0;  // at the barrier
};

struct SmState {
  Server issue, request, reply;
  Fifo lsu;  // of warps
  Cycles lsu_free;
  bool lsu_scheduled = false;
  bool lsu_stalled = false;
  std::uint32_t misses = 0;
  std::uint32_t stores = 0;
  std::uint32_t threads = 0, blocks = 0, shared_bytes = 0;
};

struct SliceState {
  Fifo waiting;  // packets that need a miss register, a way or room for a write
  std::uint32_t misses = 0;
  std::uint32_t free_register = none;
  bool retry_scheduled = false;
  bool first_absent = false;  // the line of the first that waits was looked for and is not there
};

struct ChannelState {
  Server bus;
  std::uint32_t reads = 0;
  std::uint32_t writes = 0;
  std::uint32_t turn = 0;  // accesses until the other direction, if it waits, has its turn
  bool writing = false;
};

// Of a bank that is closed.
inline constexpr RowNumber no_row{~std::uint32_t{0}};

struct alignas(64) BankState {
  Fifo queue[2];  // reads, writes
  Cycles free_at;
  Cycles activate_from;
  RowNumber row = no_row;
  std::uint32_t streak = 0;
  bool scheduled = false;
};

struct ClientState {
  KernelShape shape;
  std::uint32_t blocks_left = 0;
  std::uint32_t blocks_running = 0;
  std::uint64_t launched = 0;  // place in the order of kernel launches
  Cycles run_start;
  bool active = false;                 // a kernel has started and not ended
  bool known = false;                  // `shape` is that of the kernel to start next
  std::vector<std::uint8_t> allowed;   // by SM
  std::vector<std::uint32_t> threads;  // resident, by SM
  ClientStatistics statistics;
};

struct InjectedState {
  Request request;
  Completion completion;
  std::uint32_t under_way = 0;
  bool late = false;  // the next one waits for an arrival
};

struct State {
  EventQueue<Event> events;
  std::vector<SmState> sms;
  std::vector<Server> gpc_request, gpc_reply, port_request, port_reply;
  TagArray l1, l2;
  std::vector<SliceState> slices;
  std::vector<ChannelState> channels;
  std::vector<BankState> banks;
  std::vector<MissRegister> registers;
  LargeArray<Packet> packets;
  LargeArray<Fetch> fetches;
  std::vector<std::uint32_t> l1_lists;  // of waiters, by L1 line
  std::vector<L1Waiter> l1_waiters;
  std::uint32_t free_packet = none, free_fetch = none, free_waiter = none;
  LargeArray<WarpSlot> warps;
  std::vector<std::array<LineEntry, 32>> warp_lines;  // of steps with more than one
  Step step;                                          // as it comes from a source
  std::vector<std::uint32_t> free_warps;
  std::vector<BlockSlot> blocks;
  std::vector<std::uint32_t> free_blocks;
  std::vector<ClientState> clients;
  std::uint64_t launches = 0;
  std::vector<InjectedState> injected;
  std::size_t injected_open = 0;     // requests with an end that have not reached it
  std::size_t injected_pending = 0;  // accesses under way or about to leave
  bool injected_closing = false;     // those without end stop
  DramStatistics dram;
  std::optional<Error> error;
  bool interrupted = false;  // a launch has ended, or there is an error
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

class Engine {
 public:
  explicit Engine(const Spec& spec);

  const Spec spec;
  const AddressDecoder decoder;
  State state;
  std::vector<ClientSpec> clients;                       // Resources
  std::vector<std::unique_ptr<BlockDispatch>> dispatch;  // of each client; null: no policy

  void step();
  std::uint32_t add_client(ClientSpec client);
  void schedule(Cycles at, EventKind kind, std::uint32_t index) {
    state.events.schedule(at, {static_cast<std::uint32_t>(kind) | (index << 7U)});
  }
  // Events up to and including the next one that interrupts, or until `end` is passed.
  void run_until(Cycles end);
  // Events up to `end`, unless there is an error.
  void run_through(Cycles end);
  [[nodiscard]] Cycles now() const { return state.events.now(); }
  [[nodiscard]] std::string waiting() const;
  void inject(std::uint32_t index);
  void injected_done(std::uint32_t index);
  void schedule_inject(Cycles at, std::uint32_t index) {
    ++state.injected_pending;
    schedule(at, EventKind::inject, index);
  }
  void touch(LineNumber line, bool written);
  void fail(ErrorKind kind, std::string message);

 private:
  // SMs (engine_sm.cpp)
  void advance(std::uint32_t warp);
  void take_step(std::uint32_t warp, BlockSlot& block);
  void barrier(std::uint32_t warp);
  void end_warp(std::uint32_t warp);
  void load_done(std::uint32_t warp);
  void queue_access(std::uint32_t warp);
  void run_lsu(std::uint32_t sm);
  bool issue_line(std::uint32_t sm, std::uint32_t warp, LineEntry entry, Cycles at, bool& l1_hit);
  bool passes_l1(Packet& packet, bool& l1_hit);
  void wait_in_list(std::uint32_t warp, std::uint32_t l1_line, std::uint8_t needed);
  [[nodiscard]] std::uint32_t ready_waiters(std::uint32_t l1_line);
  void packet_done(std::uint32_t index);
  void resume_lsu(std::uint32_t sm);
  void outside(std::uint32_t client, Address address);

  // Blocks (engine_blocks.cpp)
  void kernel_start(std::uint32_t client);
  void kernel_end(std::uint32_t client);
  void place_all(std::uint32_t client);
  void refill(std::uint32_t sm);
  [[nodiscard]] bool fits(std::uint32_t client, std::uint32_t sm) const;
  bool place(std::uint32_t client, std::uint32_t sm);
  void end_block(std::uint32_t block);

  // Crossbar and L2 (engine_l2.cpp)
  // Gives the packet its place and sends it off.
  void send(Packet& packet, Cycles at);
  void gpc_request(Event event);
  void arrive(Event event);
  void gpc_reply(Event event);
  void reply(std::uint32_t packet);
  void lookup(std::uint32_t packet);
  bool attempt(std::uint32_t packet, bool may_allocate);
  bool start_miss(std::uint32_t packet, std::uint32_t way);
  void wait_for(std::uint32_t packet, std::uint32_t way, std::uint32_t number);
  bool attempt_past_tags(std::uint32_t packet, bool may_allocate);
  [[nodiscard]] std::uint32_t set_of(const Packet& packet) const {
    return packet.slice * spec.l2.sets + packet.set;
  }
  [[nodiscard]] std::uint32_t l1_set(std::uint32_t sm, LineNumber line) const {
    return sm * spec.l1.sets + ((line.raw() ^ (line.raw() >> l1_set_bits_)) & (spec.l1.sets - 1));
  }
  [[nodiscard]] std::uint32_t make_room(std::uint32_t set, std::uint16_t slice);
  [[nodiscard]] std::uint32_t open_register(std::uint16_t slice, std::uint32_t l2_line);
  [[nodiscard]] std::uint32_t find_register(std::uint16_t slice, std::uint32_t l2_line) const;
  void close_register(std::uint16_t slice, std::uint32_t number);
  void retry(std::uint32_t slice);
  void look_behind(std::uint32_t first) const;
  void fill(std::uint32_t fetch);

  // DRAM (engine_dram.cpp)
  void start_fetch(const Fetch& fetch);
  void serve_bank(std::uint32_t bank);
  void activate(BankState& bank, std::uint32_t index, RowNumber row);
  void column_access(BankState& bank, std::uint32_t index, std::uint32_t fetch,
                     std::uint32_t before);
  void choose_direction(std::uint32_t slice);

  void handle(Event event);
  [[nodiscard]] std::uint32_t take_packet(const Packet& packet) {
    const std::uint32_t index = state.free_packet;
    if (index == none) return add_packet(packet);
    state.free_packet = state.packets[index].next;
    state.packets[index] = packet;
    return index;
  }
  [[nodiscard]] std::uint32_t add_packet(const Packet& packet);
  void drop_packet(std::uint32_t index) {
    state.packets[index].next = state.free_packet;
    state.free_packet = index;
  }

  void look_ahead();
  void prefetch_l1(const BlockSlot& block, LineEntry entry) const {
    if (spec.l1.sets == 0) return;
    const auto line = line_at(clients[block.client].translation, entry.line());
    if (line) state.l1.prefetch_set(l1_set(block.sm, *line));
  }

  static constexpr std::uint32_t look_at_once = 8;
  // Where the object of an event lies: start + ((index & mask) << shift).
  struct Ahead {
    const char* start;
    std::uint32_t shift;
    std::uint32_t mask;
  };
  std::array<Ahead, 16> ahead_{};  // by kind
  std::uint32_t steps_ = 0;
  std::uint32_t l1_set_bits_ = 0;
};

}  // namespace demarc::sim::memory
