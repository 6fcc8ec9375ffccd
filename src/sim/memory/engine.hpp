// The engine of a simulation. Spec: settings, fixed. State: plain data in flat arrays that says
// where everything is. Resources: what the outside lent (sources). Events carry an index.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "block_dispatch.hpp"
#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "slots.hpp"
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
  from_dram,     // data reaches the port of its slice
  fill,          // and lies in the L2
  retry,         // of what waits in a slice
  gpc_reply,     // a packet reaches the reply link of its GPC
  done,          // and its SM
};

// What each of them is about.
// clang-format off
template <EventKind> struct About;
template <> struct About<EventKind::kernel_start> { using Subject = ClientIndex; };
template <> struct About<EventKind::warp>         { using Subject = WarpIndex; };
template <> struct About<EventKind::lsu>          { using Subject = SmIndex; };
template <> struct About<EventKind::l1_hit>       { using Subject = WarpIndex; };
template <> struct About<EventKind::inject>       { using Subject = RequestIndex; };
template <> struct About<EventKind::gpc_request>  { using Subject = PacketIndex; };
template <> struct About<EventKind::arrive>       { using Subject = PacketIndex; };
template <> struct About<EventKind::lookup>       { using Subject = PacketIndex; };
template <> struct About<EventKind::bank>         { using Subject = BankIndex; };
template <> struct About<EventKind::from_dram>    { using Subject = FetchIndex; };
template <> struct About<EventKind::fill>         { using Subject = FetchIndex; };
template <> struct About<EventKind::retry>        { using Subject = SliceIndex; };
template <> struct About<EventKind::gpc_reply>    { using Subject = PacketIndex; };
template <> struct About<EventKind::done>         { using Subject = PacketIndex; };
// clang-format on
template <EventKind kind>
using SubjectOf = typename About<kind>::Subject;

// What a link needs to know of a packet travels in the event, so that packets, of which many are
// under way, are looked at only where they end; and so does what lets the host ask early for what
// the end will touch.
struct Event {
  static constexpr std::uint32_t indices = 1U << 25U;
  std::uint32_t head = 0;  // kind in bits 0-3, sectors on the link in bits 4-6, then the index
  Packed<SmIndex, std::uint16_t> sm;  // of a packet
  std::uint16_t port = 0;             // and port of its slice; on the way back, its L1 set

  template <EventKind kind>
  [[gnu::always_inline]] static Event of(SubjectOf<kind> subject) {
    return {static_cast<std::uint32_t>(kind) | (subject.raw() << 7U), {}, 0};
  }
  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(head & 15U); }
  [[nodiscard]] std::uint32_t sectors() const { return (head >> 4U) & 7U; }
  // For whoever has looked at the kind.
  template <EventKind kind>
  [[nodiscard, gnu::always_inline]] SubjectOf<kind> subject() const {
    return SubjectOf<kind>(head >> 7U);
  }
  [[nodiscard]] PacketIndex packet() const { return PacketIndex(head >> 7U); }
  [[nodiscard]] Event as(EventKind kind) const {
    return {(head & ~15U) | static_cast<std::uint32_t>(kind), sm, port};
  }
};
static_assert(sizeof(Event) == 8);

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

template <class Key>
struct Fifo {
  Key head = none;
  Key tail = none;
  std::uint32_t size = 0;
};

// Of a port of slices, the way of data into the L2: of stores and atomics, which wait in a queue of
// their GPC, and of what comes from DRAM. GPCs take turns. While data of SMs and of DRAM wait, both
// pass for the same time.
struct WritePort {
  Ticks free_at;
  std::vector<Fifo<PacketIndex>> of_gpc;
  std::uint32_t packets = 0;  // that wait in all of them
  std::uint32_t last = 0;     // the GPC that had its turn last
  Fifo<FetchIndex> fills;
  std::int64_t lead = 0;  // ticks that DRAM has had more than SMs since both wait
  bool busy = false;      // something passes; its end serves the next
};

// A line asked for, on its way out or back. Half a line of the host's cache.
struct alignas(16) Packet {
  LineNumber line;
  PacketIndex next = none;                            // in a wait queue or a list of waiters
  OneOf<WarpIndex, RequestIndex, ClientIndex> owner;  // a request: `injected`; a client: `launch`
  L1Tags::Way l1_line = none;  // to be filled; none: the owner waits for it alone
  RowNumber row;
  Packed<SmIndex, std::uint16_t> sm;
  Packed<SliceIndex, std::uint16_t> slice;
  Packed<ClientIndex, std::uint16_t> client;
  Packed<SetInSlice, std::uint16_t> set;  // place in the slice and its channel
  Packed<BankInSlice, std::uint8_t> bank;
  StepKind kind = StepKind::load;
  std::uint8_t sectors = 0;
  bool injected : 1 = false;
  bool cached : 1 = true;
  bool launch : 1 = false;
  bool streams : 1 = false;  // its line is the first that goes
  bool listed : 1 = false;   // the owner is in the list of its L1 line
};
static_assert(sizeof(Packet) == 32);

struct L1Waiter {
  WarpIndex warp = none;
  WaiterIndex next = none;
  std::uint8_t needed = 0;
};

// Of a slice: a line with sectors under way, and who waits for them.
struct MissRegister {
  L2Tags::Way l2_line = none;
  OneOf<PacketIndex, RegisterIndex> chain;  // who waits; of a free register, the next one
};

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

enum class WarpState : std::uint8_t { free, ready, loads, barrier, lsu };
// With the step it is at, of which lines from the second on lie elsewhere.
struct alignas(16) WarpSlot {
  LineEntry line;
  BlockIndex block = none;
  std::uint32_t outstanding = 0;   // loads, L1 hits and atomics under way
  WarpIndex next = none;           // in the LSU queue
  std::uint32_t instructions = 0;  // left to issue
  std::uint16_t shared_rows = 0;   // the same
  std::uint16_t index = 0;         // in the block
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
  Server issue, shared, request, reply;
  Fifo<WarpIndex> lsu;
  Cycles lsu_free;
  bool lsu_scheduled = false;
  bool lsu_stalled = false;
  bool l1_used = false;  // since a kernel began here
  std::uint32_t misses = 0;
  std::uint32_t stores = 0;
  std::uint32_t threads = 0, blocks = 0, shared_bytes = 0, registers = 0;
};

struct SliceState {
  Fifo<PacketIndex> waiting;  // loads and atomics that need a miss register, a way or room to write
  Fifo<PacketIndex> stores;   // that need a way or room to write
  std::uint32_t misses = 0;
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

// Of a bank that is closed.
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
  Cycles kernel_cycles;             // of the run's kernels that have ended
  bool active = false;              // a kernel has started and not ended
  bool known = false;               // `shape` is that of the kernel to start next
  PerIndex<SmIndex, std::uint8_t> allowed;
  PerIndex<SmIndex, std::uint32_t> threads;  // resident
  ClientStatistics statistics;
};

struct InjectedState {
  Request request;
  Completion completion;
  std::uint32_t under_way = 0;
  bool late = false;  // the next one waits for an arrival
};

template <class Key, class T>
using LargePerIndex = PerIndex<Key, T, LargeAllocator<T>>;

struct State {
  EventQueue<Event> events;
  PerIndex<SmIndex, SmState> sms;
  std::vector<Server> gpc_request, gpc_reply, port_request, port_reply;
  std::vector<WritePort> write_ports;
  L1Tags l1;
  L2Tags l2;
  PerIndex<SliceIndex, SliceState> slices;
  PerIndex<SliceIndex, ChannelState> channels;
  PerIndex<BankIndex, BankState> banks;
  PerIndex<RegisterIndex, MissRegister> registers;
  LargePerIndex<PacketIndex, Packet> packets;
  LargePerIndex<FetchIndex, Fetch> fetches;
  PerIndex<L1Tags::Way, WaiterIndex> l1_lists;
  PerIndex<WaiterIndex, L1Waiter> l1_waiters;
  PacketIndex free_packet = none;
  FetchIndex free_fetch = none;
  WaiterIndex free_waiter = none;
  LargePerIndex<WarpIndex, WarpSlot> warps;
  PerIndex<WarpIndex, std::array<LineEntry, 32>> warp_lines;  // of steps with more than one
  Step step;                                                  // as it comes from a source
  std::vector<WarpIndex> free_warps;
  PerIndex<BlockIndex, BlockSlot> blocks;
  std::vector<BlockIndex> free_blocks;
  PerIndex<ClientIndex, ClientState> clients;
  std::uint64_t launches = 0;
  PerIndex<RequestIndex, InjectedState> injected;
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
  PerIndex<ClientIndex, ClientSpec> clients;                       // Resources
  PerIndex<ClientIndex, std::unique_ptr<BlockDispatch>> dispatch;  // null: no policy

  void step();
  ClientIndex add_client(ClientSpec client);
  template <EventKind kind>
  void schedule(Cycles at, SubjectOf<kind> subject) {
    state.events.schedule(at, Event::of<kind>(subject));
  }
  // Events up to and including the next one that interrupts, or until `end` is passed.
  void run_until(Cycles end);
  // Events up to `end`, unless there is an error.
  void run_through(Cycles end);
  [[nodiscard]] Cycles now() const { return state.events.now(); }
  [[nodiscard]] std::string waiting() const;
  void inject(RequestIndex index);
  void injected_done(RequestIndex index);
  void schedule_inject(Cycles at, RequestIndex index) {
    ++state.injected_pending;
    schedule<EventKind::inject>(at, index);
  }
  void touch(LineNumber line, bool written);
  void use_line(const Packet& packet, L2Tags::Way way) {
    if (!packet.streams) state.l2.use(packet.slice, way);
  }
  void install_line(const Packet& packet, L2Tags::Way way) {
    state.l2.install(packet.slice, way, packet.line);
    if (packet.streams) state.l2.let_go(way);
  }
  void fail(ErrorKind kind, std::string message);

 private:
  // SMs (engine_sm.cpp)
  void advance(WarpIndex warp);
  void take_step(WarpIndex warp, BlockSlot& block);
  void barrier(WarpIndex warp);
  void end_warp(WarpIndex warp);
  void load_done(WarpIndex warp);
  void queue_access(WarpIndex warp);
  void run_lsu(SmIndex sm);
  bool issue_line(SmIndex sm, WarpIndex warp, LineEntry entry, Cycles at, bool& l1_hit);
  bool passes_l1(Packet& packet, bool& l1_hit);
  void wait_in_list(WarpIndex warp, L1Tags::Way l1_line, std::uint8_t needed);
  [[nodiscard]] WaiterIndex ready_waiters(L1Tags::Way l1_line);
  void packet_done(PacketIndex index);
  void resume_lsu(SmIndex sm);
  void outside(ClientIndex client, Address address);

  // Blocks (engine_blocks.cpp)
  void kernel_start(ClientIndex client);
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

  // Crossbar and L2 (engine_l2.cpp)
  // Gives the packet its place and sends it off.
  [[nodiscard]] Ticks gpc_ticks(StepKind kind) const;
  void send(Packet& packet, Cycles at);
  void gpc_request(Event event);
  void arrive(Event event);
  WritePort& port_of(SliceIndex slice);
  void wait_at_port(PacketIndex packet);
  void start(WritePort& port);
  void serve(WritePort& port);
  void gpc_reply(Event event);
  void reply(PacketIndex packet);
  void lookup(PacketIndex packet);
  bool attempt(PacketIndex packet, bool may_allocate);
  bool start_miss(PacketIndex packet, L2Tags::Way way);
  [[nodiscard]] std::uint32_t whole_bursts(std::uint32_t missing) const;
  void wait_for(PacketIndex packet, L2Tags::Way way, RegisterIndex number);
  bool attempt_past_tags(PacketIndex packet, bool may_allocate);
  [[nodiscard]] L2Tags::Set l2_set(SliceIndex slice, SetInSlice set) const {
    return L2Tags::Set(slice.raw() * spec.l2.sets + set.raw());
  }
  [[nodiscard]] BankIndex bank_of(SliceIndex slice, BankInSlice bank) const {
    return BankIndex(slice.raw() * spec.banks + bank.raw());
  }
  [[nodiscard]] L1Tags::Set l1_set(SmIndex sm, std::uint32_t number) const {
    return L1Tags::Set(sm.raw() * spec.l1.sets + (number & (spec.l1.sets - 1)));
  }
  [[nodiscard]] L1Tags::Set l1_set(SmIndex sm, LineNumber line) const {
    return l1_set(sm, line.raw() ^ (line.raw() >> l1_set_bits_));
  }
  [[nodiscard]] L2Tags::Way make_room(L2Tags::Set set, SliceIndex slice);
  [[nodiscard]] RegisterIndex open_register(SliceIndex slice, L2Tags::Way l2_line);
  [[nodiscard]] RegisterIndex find_register(SliceIndex slice, L2Tags::Way l2_line) const;
  void close_register(SliceIndex slice, RegisterIndex number);
  void retry(SliceIndex slice);
  void retry_loads(SliceIndex slice);
  void retry_stores(SliceIndex slice);
  void look_behind(PacketIndex first) const;
  void from_dram(FetchIndex fetch);
  void fill(FetchIndex fetch);

  // DRAM (engine_dram.cpp)
  void start_fetch(const Fetch& fetch);
  void serve_bank(BankIndex bank);
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

  void handle(Event event);
  [[nodiscard]] PacketIndex take_packet(const Packet& packet) {
    const PacketIndex index = state.free_packet;
    if (index == none) return add_packet(packet);
    state.free_packet = state.packets[index].next;
    state.packets[index] = packet;
    return index;
  }
  [[nodiscard]] PacketIndex add_packet(const Packet& packet);
  void drop_packet(PacketIndex index) {
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
