// The simulated machine: state and wiring. One event loop; each part of the way of a request has
// its own file: compute.cpp (work-groups, waves), translation_path.cpp (TLBs, GMMU, IOMMU),
// data_path.cpp (caches, remote lines), migration.cpp (pages that move).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "bypass.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/translation/simulate.hpp"
#include "events.hpp"
#include "gpu_memory.hpp"
#include "network.hpp"
#include "page_map.hpp"
#include "slot_pool.hpp"
#include "tlb.hpp"
#include "walker_pool.hpp"

namespace demarc::sim::translation {

// What a watcher of a simulation is told.
enum class Moment : std::uint8_t {
  l2_missed,      // a page is neither in the GPU's L2 TLB nor asked for
  gmmu_began,     // a walk
  gmmu_ended,     //
  iommu_asked,    // a request has arrived at the IOMMU
  iommu_ended,    // a walk
  placed,         // a page has come from CPU memory (or been assigned) to this GPU
  l2_filled,      // an answer has reached the GPU's L2 TLB
  l1_filled,      // and the TLB of one of its CUs
  access_ended,   // all lines of a wave's memory instruction are there
  move_began,     // this GPU gets the page: all GPUs are told to drain
  drained,        // all GPUs have ended their remote accesses; the owner is told to shoot it down
  shot_down,      // the owner has; the page belongs to the new GPU
  page_copied,    // the last piece is written
  owner_resumed,  // the former owner runs again, the answer leaves the IOMMU
};
struct Happening {
  Moment moment;
  Cycles cycle;
  GpuIndex gpu;
  std::optional<PageNumber> page = {};
  std::optional<WaveSlot> wave = {};  // of access_ended
};
using Watch = std::function<void(const Happening&)>;

inline constexpr std::uint32_t simds = 4;  // of a CU

// What a CU holds at a time: waves by registers and slots, work-groups by LDS.
struct Occupancy {
  std::uint32_t waves = 0;
  std::uint32_t groups = 0;
};
[[nodiscard]] Occupancy occupancy_of(const Settings& settings, const KernelShape& shape);
// The GPU that runs a work-group. `split` is not `native`.
[[nodiscard]] GpuIndex gpu_of_group(const Settings& settings, Split split, const KernelShape& shape,
                                    std::uint32_t group);
// The first of `count` things in order that belong to share `share` of so many equal ones.
[[nodiscard]] constexpr std::uint64_t first_of_share(std::uint64_t share, std::uint64_t count,
                                                     std::uint64_t shares) {
  return ceil_div(share * count, shares);
}
// The first work-group from `from` on that this GPU runs; as many as there are when none is left.
[[nodiscard]] std::uint32_t next_group_of(const Settings& settings, Split split,
                                          const KernelShape& shape, GpuIndex gpu,
                                          std::uint32_t from);
// Placements that follow from who touches a page first.
[[nodiscard]] constexpr bool has_homes(const Settings& settings) {
  return settings.placement == Placement::first_touch || settings.placement == Placement::far;
}
// Per page the GPU where it will lie; `untouched` where no line lies, or under other placements.
inline constexpr GpuIndex untouched{~std::uint32_t{0}};
[[nodiscard]] PageMap<GpuIndex> homes_under(const Settings& settings, Split split,
                                            const Application& application);

class System {
 public:
  System(const Settings& settings, Architecture architecture, const Application& application,
         Watch watch = {});
  Result<Summary> run(const Progress& progress);

 private:
  // A memory instruction in flight.
  struct Access {
    WaveSlot wave;
    std::uint32_t next = 0;     // line that the TLB looks at next
    std::uint32_t pending = 0;  // lines whose completion time is not known yet
    Cycles start;               // the first cu_lines lines reach the TLB, the next a cycle later
    Cycles done;
    std::optional<LineNumber> sent;  // the last line that went over a link
    MemoryInstruction instruction;
  };
  struct Wave {
    CuIndex cu;
    std::uint32_t simd = 0;
    GroupSlot group;
    WavePosition at;
    MemoryInstruction next;  // valid while fetched
    bool fetched = false;
    bool past_barrier = false;
    bool ended = false;
    bool waits_for_loads = false;
    std::uint32_t loads = 0;     // in flight
    std::uint32_t accesses = 0;  // in flight, stores too
  };
  struct Group {
    std::uint32_t waves_left = 0;
    std::uint32_t waves = 0;
    std::vector<WaveSlot> at_barrier;
  };
  struct LineWaiter {
    AccessSlot access;
    LineNumber line;
    Sectors sectors;
  };
  // `wide_lines` lines under one tag.
  using WideLine = Index<struct WideLineTag>;
  struct L1Line {
    Sectors valid = 0;
    std::array<Cycles, 4> ready{};  // per sector, when the data is there
  };
  // Those of a line of another GPU that are on their way, and who waits for which.
  struct RemoteLines {
    Sectors asked = 0;
    std::vector<LineWaiter> waiting;
  };
  struct Cu {
    Cu(const Settings& settings, GpuIndex gpu_index);
    GpuIndex gpu;
    std::uint32_t waves = 0;
    std::uint32_t groups = 0;
    std::array<std::uint32_t, simds> simd_waves{};
    std::array<Cycles, simds> simd_free{};
    Turns shared_turn;  // of the next row of shared memory
    Cycles port_free;   // the line port behind the memory pipeline
    std::uint32_t lines_in_flight = 0;
    std::deque<WaveSlot> waiting_waves;  // for room in flight
    std::deque<AccessSlot> queue;        // before the TLB
    Tlb<LineWaiter> tlb;
    Turns tlb_turn;  // of the next look-up
    bool tlb_blocked = false;
    bool tlb_scheduled = false;
    LruSets<WideLine> l1;
    PerIndex<LruSlot, L1Line> l1_lines;
    std::vector<Cycles> l1_misses;      // per miss register: when it is free; a heap, soonest first
    std::deque<LineWaiter> l1_waiting;  // for one
    std::unordered_map<LineNumber, RemoteLines> remote_waiting;  // under remote_in_l1
    bool l1_scheduled = false;
  };
  struct L2Request {
    CuIndex cu;
    PageNumber page;
  };
  struct Gpu {
    explicit Gpu(const Settings& settings);
    Tlb<CuIndex> tlb;
    std::deque<L2Request> queue;
    Turns tlb_turn;
    bool tlb_blocked = false;
    bool tlb_scheduled = false;
    WalkerPool gmmu;
    std::unique_ptr<BypassDecision> bypass;
    GpuMemory memory;
    std::uint32_t next_group = 0;  // first group not yet looked at
    std::uint32_t next_cu = 0;
    std::uint32_t dispatched = 0;  // in this step
    bool dispatch_stalled = false;
    // Migration: a GPU that gives a page away stands still; all hold new remote accesses back.
    bool paused = false;
    bool rdma_held = false;
    bool drain_asked = false;
    std::uint32_t remote_in_flight = 0;
    std::vector<Event> deferred;    // while paused
    std::vector<MessageSlot> held;  // while rdma_held
  };
  enum class MessageKind : std::uint8_t {
    // Of a page.
    translate,   // GPU -> CPU
    translated,  // CPU -> GPU
    page_data,   // CPU -> GPU, with the translation
    // Of a line.
    read_line,   // GPU -> owner
    write_line,  // GPU -> owner
    line_data,   // owner -> GPU
    write_done,  // owner -> GPU
    // Of the one migration under way, in order.
    drain,          // CPU -> every GPU
    drained,        // GPU -> CPU
    shoot_down,     // CPU -> owner
    shot_down,      // owner -> CPU
    fetch_page,     // CPU -> new owner
    fetch_piece,    // new owner -> owner
    piece,          // owner -> new owner
    page_fetched,   // new owner -> CPU
    resume,         // CPU -> owner
    resumed,        // owner -> CPU
    release_lines,  // CPU -> every GPU
  };
  struct RemoteLine {
    AccessSlot access = {};
    FrameLine of_owner = {};   // in the owner's memory
    LineNumber of_space = {};  // and in the application's space
  };
  // Half of a cache line of the host's: many thousands may be under way.
  struct alignas(32) Message {
    MessageKind kind = MessageKind::translate;
    Node from = {};
    Node to = {};
    std::uint32_t flits = 1;
    PageNumber page = {};
    bool moved_here = false;   // translated: the page has just come to the receiver
    bool joins = false;        // of a line: the message before it has the header of both
    std::uint8_t sectors = 0;  // of a line
    RemoteLine line = {};
    std::uint8_t hop = 0;  // links that are behind it
  };
  static_assert(sizeof(Message) == 32);

  static constexpr GpuIndex in_cpu_memory{~std::uint32_t{0}};
  static constexpr GpuIndex no_gpu{~std::uint32_t{0}};

  // Frames of a GPU are given out in order of first touch; those of pages that lie somewhere from
  // the start, in order of the pages.
  struct Place {
    GpuIndex owner = in_cpu_memory;
    FrameNumber frame;
  };
  struct PageState {
    std::uint64_t known_by = 0;  // a bit for each GPU whose GMMU knows the page
    std::uint32_t moves = 0;     // under remote=migration
    bool moving = false;
  };

  void handle(const Event& event);
  // What the event is about: see About.
  template <EventKind kind>
  [[gnu::always_inline]] void at(Cycles when, SubjectOf<kind> subject) {
    schedule(when, Event::of<kind>(subject));
  }
  template <EventKind kind>
  [[gnu::always_inline]] void at(Cycles when, SubjectOf<kind> subject, PageNumber page) {
    schedule(when, Event::of<kind>(subject, page));
  }
  void schedule(Cycles when, const Event& event) { events_.schedule(when, event); }
  [[nodiscard]] Cycles now() const { return events_.now(); }
  // The cycle after this one.
  [[nodiscard]] Cycles then() const { return now() + 1_cycles; }
  void tell(Moment moment, GpuIndex gpu, PageNumber page) const {
    if (watch_) watch_({.moment = moment, .cycle = now(), .gpu = gpu, .page = page});
  }
  [[nodiscard]] CuIndex cu_of(GpuIndex gpu, std::uint32_t number) const {
    return CuIndex(gpu.raw() * settings_.cus + number);
  }
  [[nodiscard, gnu::always_inline]] FrameLine frame_line(LineNumber line) const {
    return line_in(places_[pages_.page_of(line)].frame, line, pages_);
  }
  [[nodiscard]] std::string describe_queues() const;
  [[nodiscard]] std::string describe_waves() const;
  [[nodiscard]] bool lies_from_the_start() const;
  void place_pages();
  void lay_where_it_lies(PageNumber page);
  // The next free frame of a GPU gets the page.
  void lay(PageNumber page, GpuIndex gpu);
  [[nodiscard]] Summary summarise() const;

  // compute.cpp
  void start_kernel(KernelNumber kernel);
  void dispatch(GpuIndex gpu);
  [[nodiscard]] bool place_group(GpuIndex gpu, std::uint32_t group);
  void wave_next(WaveSlot wave);
  [[nodiscard]] Cycles shared_memory_done(Cu& cu, std::uint32_t rows);
  void wave_issue(WaveSlot wave);
  void end_wave(WaveSlot wave);
  void access_done(AccessSlot access);

  // translation_path.cpp
  void run_l1_tlb(CuIndex cu);
  void fill_l1_tlb(CuIndex cu, PageNumber page);
  void run_l2_tlb(GpuIndex gpu);
  void fill_l2_tlb(GpuIndex gpu, PageNumber page);
  void miss_l2_tlb(GpuIndex gpu, PageNumber page, Cycles when);
  void ask_iommu(GpuIndex gpu, PageNumber page, Cycles when);
  void run_gmmu(GpuIndex gpu);
  void gmmu_done(GpuIndex gpu, PageNumber page);
  [[nodiscard]] bool knows(GpuIndex gpu, PageNumber page) const {
    return (states_[page].known_by >> gpu.raw() & 1) != 0;
  }
  void learn(GpuIndex gpu, PageNumber page);
  void run_iommu();
  void iommu_done(GpuIndex gpu, PageNumber page);
  void resolve(GpuIndex gpu, PageNumber page);
  void place(GpuIndex gpu, PageNumber page);
  void page_arrived(PageNumber page, GpuIndex with_data = no_gpu);
  [[nodiscard]] Message translated(GpuIndex gpu, PageNumber page) const;
  void answer(GpuIndex gpu, PageNumber page);

  // data_path.cpp
  void access_line(const LineWaiter& wanted, Cycles when);
  [[nodiscard]] WideLine wide(LineNumber line) const {
    return WideLine(line.raw() >> (settings_.wide_lines - 1));
  }
  // Bits of a line's sectors under its tag.
  [[nodiscard]] Sectors under_tag(LineNumber line, Sectors sectors) const {
    return sectors << (2 * (line.raw() & (settings_.wide_lines - 1)));
  }
  [[nodiscard]] std::optional<Cycles> find_in_l1(Cu& cu, LineNumber line, Sectors sectors) const;
  void put_into_l1(Cu& cu, LineNumber line, Sectors sectors, Cycles ready) const;
  [[nodiscard]] std::uint32_t line_flits(std::uint32_t header, const Message& message,
                                         bool with_data) const;
  void run_l1_misses(CuIndex cu);
  void miss_l1(Cu& cu, const LineWaiter& miss, Cycles when);
  void start_l1_miss(Cu& cu, const LineWaiter& miss, Cycles when);
  void wait_for_l1_register(Cu& cu);
  void complete_line(AccessSlot access, Cycles when);
  void send(const Message& message, Cycles when);
  void hop(MessageSlot message);
  void receive(const Message& message);
  void send_line(const Message& message, Cycles when);
  void line_returned(GpuIndex gpu);

  // migration.cpp
  [[nodiscard]] bool moves(PageNumber page) const;
  [[nodiscard]] bool stale(GpuIndex gpu, PageNumber page) const;
  [[nodiscard]] GpuIndex gpu_of(const Event& event) const;
  [[nodiscard]] bool defer(const Event& event);
  void start_next_move();
  void receive_move(const Message& message);
  void shoot_down(GpuIndex gpu);
  void resume(GpuIndex gpu);
  void end_move();

  const Settings& settings_;
  Architecture architecture_;
  const Application& application_;
  Split split_;

  EventQueue<Event> events_;
  PerIndex<CuIndex, Cu> cus_;
  PerIndex<GpuIndex, Gpu> gpus_;
  Network network_;
  WalkerPool iommu_;

  PageSize pages_;
  Ports line_ports_;
  Ports shared_ports_;
  Ports l1_ports_;
  Ports l2_ports_;
  std::uint64_t page_count_;
  PageMap<Place> places_;
  PageMap<PageState> states_;
  PerIndex<GpuIndex, FrameNumber> next_frame_;
  std::unordered_map<PageNumber, std::vector<GpuIndex>> waiting_for_move_;
  Cycles protocol_free_;
  PageMap<GpuIndex> homes_;  // placement=first-touch and far: where each page will lie

  std::deque<WalkRequest> move_queue_;
  struct {
    bool active = false;
    PageNumber page;
    GpuIndex from;
    GpuIndex to;
    std::uint32_t undrained = 0;  // GPUs
    std::uint32_t pieces = 0;     // not yet here
    std::string_view phase;
  } move_;
  std::uint64_t migrations_ = 0;
  Watch watch_;

  KernelNumber kernel_;
  std::uint32_t groups_left_ = 0;
  Occupancy most_;

  SlotPool<WaveSlot, Wave> waves_;
  SlotPool<GroupSlot, Group> groups_;
  SlotPool<AccessSlot, Access> accesses_;
  SlotPool<MessageSlot, Message> messages_;

  std::uint64_t lines_ = 0;
  std::uint64_t gmmu_hits_ = 0;
  std::uint64_t gmmu_bypassed_ = 0;
  std::uint64_t iommu_accesses_ = 0;
  std::uint64_t first_touches_ = 0;
  std::uint64_t remote_owned_ = 0;
  std::uint64_t remote_lines_ = 0;
  bool finished_ = false;
};

}  // namespace demarc::sim::translation
