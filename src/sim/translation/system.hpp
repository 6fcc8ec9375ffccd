// The simulated machine: state and wiring. One event loop; each part of the way of a request has
// its own file: compute.cpp (work-groups, waves), translation_path.cpp (TLBs, GMMU, IOMMU),
// data_path.cpp (caches, remote lines), migration.cpp (pages that move).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bypass.hpp"
#include "demarc/sim/translation/simulate.hpp"
#include "gpu_memory.hpp"
#include "network.hpp"
#include "tlb.hpp"
#include "walker_pool.hpp"

namespace demarc::sim::translation {

// What a watcher of a simulation is told, with the cycle, the GPU and the page (or the wave).
enum class Moment : std::uint8_t {
  l2_missed,      // a page is neither in the GPU's L2 TLB nor asked for
  gmmu_began,     // a walk
  gmmu_ended,     //
  iommu_asked,    // a request has arrived at the IOMMU
  iommu_ended,    // a walk
  placed,         // a page has come from CPU memory (or been assigned) to this GPU
  l2_filled,      // an answer has reached the GPU's L2 TLB
  l1_filled,      // and the TLB of one of its CUs
  access_ended,   // all lines of a memory instruction are there (page: the wave)
  move_began,     // this GPU gets the page: all GPUs are told to drain
  drained,        // all GPUs have ended their remote accesses; the owner is told to shoot it down
  shot_down,      // the owner has; the page belongs to the new GPU
  page_copied,    // the last piece is written
  owner_resumed,  // the former owner runs again, the answer leaves the IOMMU
};
using Watch = std::function<void(Moment, Cycles, std::uint32_t gpu, std::uint32_t page)>;

// What a CU holds at a time: waves by registers and slots, work-groups by LDS.
struct Occupancy {
  std::uint32_t waves = 0;
  std::uint32_t groups = 0;
};
[[nodiscard]] Occupancy occupancy_of(const Settings& settings, const KernelShape& shape);
// The GPU that runs a work-group. `split` is not `native`.
[[nodiscard]] std::uint32_t gpu_of_group(const Settings& settings, Split split,
                                         const KernelShape& shape, std::uint32_t group);
// Per page the GPU of Placement::first_touch; `untouched` where no line lies.
inline constexpr std::uint32_t untouched = ~std::uint32_t{0};
[[nodiscard]] std::vector<std::uint32_t> first_touch_homes(const Settings& settings, Split split,
                                                           const Application& application);

class System {
 public:
  System(const Settings& settings, Architecture architecture, const Application& application,
         Watch watch = {});
  Result<Summary> run(const Progress& progress);

 private:
  enum class EventKind : std::uint32_t {
    kernel_start,  // a: kernel
    dispatch,      // a: GPU
    wave_next,     // a: wave; looks at its next instruction
    wave_issue,    // a: wave; its vector instructions are done, the memory instruction leaves
    l1_run,        // a: CU
    l1_fill,       // a: CU, b: page
    l2_arrive,     // a: CU, b: page
    l2_run,        // a: GPU
    gmmu_arrive,   // a: GPU, b: page
    gmmu_done,     // a: GPU, b: page
    iommu_done,    // a: GPU, b: page
    page_moved,    // a: GPU, b: page (first_touch=protocol)
    flushed,       // a: GPU that gives a page away
    entered,       // a: GPU, b: page; its GMMU has entered a page that moved here
    hop,           // a: message; it stands before its next link
    l1_free,       // a: CU; a miss register has become free for who waits
    access_done,   // a: access
  };
  struct Event {
    EventKind kind;
    std::uint32_t a;
    std::uint32_t b;
  };

  // A memory instruction in flight.
  struct Access {
    std::uint32_t wave = 0;
    std::uint32_t next = 0;     // line that the TLB looks at next
    std::uint32_t pending = 0;  // lines whose completion time is not known yet
    Cycles start = 0;           // line i reaches the TLB at start + i
    Cycles done = 0;
    MemoryInstruction instruction;
  };
  struct Wave {
    std::uint32_t cu = 0;
    std::uint32_t simd = 0;
    std::uint32_t group_slot = 0;
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
    std::vector<std::uint32_t> at_barrier;
  };
  struct LineWaiter {
    std::uint32_t access;
    std::uint32_t line;
  };
  struct Cu {
    Cu(const Settings& settings, std::uint32_t gpu_index);
    std::uint32_t gpu;
    std::uint32_t waves = 0;
    std::uint32_t groups = 0;
    Cycles simd_free[4] = {};
    Cycles port_free = 0;  // the line port behind the memory pipeline
    std::uint32_t lines_in_flight = 0;
    std::deque<std::uint32_t> waiting_waves;  // for room in flight
    std::deque<std::uint32_t> queue;          // accesses before the TLB
    Tlb<LineWaiter> tlb;
    std::uint64_t tlb_slot = 0;  // next look-up, in cycles x ports
    bool tlb_blocked = false;
    bool tlb_scheduled = false;
    LruSets l1;
    std::vector<Cycles> l1_ready;       // per tag: when its data is there
    std::vector<Cycles> l1_misses;      // per miss register: when it is free
    std::deque<LineWaiter> l1_waiting;  // for one
    bool l1_scheduled = false;
  };
  struct PageWaiter {
    std::uint32_t cu;
  };
  struct L2Request {
    std::uint32_t cu;
    std::uint32_t page;
  };
  struct Gpu {
    Gpu(const Settings& settings, std::uint32_t pages);
    Tlb<PageWaiter> tlb;
    std::deque<L2Request> queue;
    std::uint64_t tlb_slot = 0;
    bool tlb_blocked = false;
    bool tlb_scheduled = false;
    WalkerPool gmmu;
    std::vector<std::uint8_t> table;  // per page: the GMMU knows it
    std::unique_ptr<BypassDecision> bypass;
    GpuMemory memory;
    std::uint32_t next_group = 0;  // first group not yet looked at
    std::uint32_t next_cu = 0;
    bool dispatch_stalled = false;
    // Migration: a GPU that gives a page away stands still; all hold new remote accesses back.
    bool paused = false;
    bool rdma_held = false;
    bool drain_asked = false;
    std::uint32_t remote_in_flight = 0;
    std::vector<Event> deferred;      // while paused
    std::vector<std::uint32_t> held;  // messages, while rdma_held
  };
  enum class MessageKind : std::uint32_t {
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
    std::uint32_t access = 0;
    std::uint32_t of_owner = 0;  // its number in the owner's memory
    std::uint32_t of_space = 0;  // and in the application's space
  };
  struct Message {
    MessageKind kind = MessageKind::translate;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t flits = 1;
    std::uint32_t page = 0;
    bool moved_here = false;  // translated: the page has just come to the receiver
    RemoteLine line = {};
    std::uint32_t hop = 0;  // links that are behind it
  };

  static constexpr std::uint32_t in_cpu_memory = ~std::uint32_t{0};
  static constexpr std::uint32_t no_gpu = ~std::uint32_t{0};

  void handle(const Event& event);
  void at(Cycles when, EventKind kind, std::uint32_t a, std::uint32_t b = 0) {
    events_.schedule(when, {kind, a, b});
  }
  [[nodiscard]] Cycles now() const { return events_.now(); }
  void tell(Moment moment, std::uint32_t gpu, std::uint32_t page) const {
    if (watch_) watch_(moment, now(), gpu, page);
  }
  [[nodiscard]] std::string describe_queues() const;
  [[nodiscard]] std::string describe_waves() const;
  void place_pages();
  [[nodiscard]] Summary summarise() const;

  // compute.cpp
  void start_kernel(std::uint32_t kernel);
  void dispatch(std::uint32_t gpu);
  [[nodiscard]] bool place_group(std::uint32_t gpu, std::uint32_t group);
  void wave_next(std::uint32_t wave);
  void wave_issue(std::uint32_t wave);
  void end_wave(std::uint32_t wave);
  void access_done(std::uint32_t access);

  // translation_path.cpp
  void run_l1_tlb(std::uint32_t cu);
  void fill_l1_tlb(std::uint32_t cu, std::uint32_t page);
  void run_l2_tlb(std::uint32_t gpu);
  void fill_l2_tlb(std::uint32_t gpu, std::uint32_t page);
  void miss_l2_tlb(std::uint32_t gpu, std::uint32_t page, Cycles when);
  void run_gmmu(std::uint32_t gpu);
  void gmmu_done(std::uint32_t gpu, std::uint32_t page);
  void learn(std::uint32_t gpu, std::uint32_t page);
  void run_iommu();
  void iommu_done(std::uint32_t gpu, std::uint32_t page);
  void resolve(std::uint32_t gpu, std::uint32_t page);
  void place(std::uint32_t gpu, std::uint32_t page);
  void page_arrived(std::uint32_t page, std::uint32_t with_data = no_gpu);
  void answer(std::uint32_t gpu, std::uint32_t page);

  // data_path.cpp
  void access_line(std::uint32_t access, std::uint32_t line, Cycles when);
  void run_l1_misses(std::uint32_t cu);
  void miss_l1(Cu& cu, const LineWaiter& miss, Cycles when);
  void complete_line(std::uint32_t access, Cycles when);
  void send(const Message& message, Cycles when);
  void hop(std::uint32_t message);
  void receive(const Message& message);
  void send_line(const Message& message, Cycles when);
  void line_returned(std::uint32_t gpu);

  // migration.cpp
  [[nodiscard]] bool moves(std::uint32_t page) const;
  [[nodiscard]] bool stale(std::uint32_t gpu, std::uint32_t page) const;
  [[nodiscard]] std::uint32_t gpu_of(const Event& event) const;
  [[nodiscard]] bool defer(const Event& event);
  void start_next_move();
  void receive_move(const Message& message);
  void shoot_down(std::uint32_t gpu);
  void resume(std::uint32_t gpu);
  void end_move();

  const Settings& settings_;
  Architecture architecture_;
  const Application& application_;
  Split split_;

  EventQueue<Event> events_;
  std::vector<Cu> cus_;  // of all GPUs, in order
  std::vector<Gpu> gpus_;
  Network network_;
  WalkerPool iommu_;

  std::uint32_t page_shift_;               // line number -> page number
  std::vector<std::uint32_t> page_owner_;  // GPU, or in_cpu_memory
  std::vector<std::uint32_t>
      page_frame_;  // in its owner's memory: frames are given out in order of first touch
  std::vector<std::uint32_t> frames_used_;  // per GPU
  std::vector<std::uint8_t> page_moving_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> waiting_for_move_;  // page -> GPUs
  Cycles protocol_free_ = 0;
  std::vector<std::uint32_t> page_home_;  // placement=first-touch: where each page will lie

  std::deque<WalkRequest> move_queue_;
  struct {
    bool active = false;
    std::uint32_t page = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t undrained = 0;  // GPUs
    std::uint32_t pieces = 0;     // not yet here
    std::string_view phase;
  } move_;
  std::vector<std::uint32_t> page_moves_;  // per page, under remote=migration
  std::uint64_t migrations_ = 0;
  Watch watch_;

  std::uint32_t kernel_ = 0;
  std::uint32_t groups_left_ = 0;
  Occupancy most_;

  std::vector<Wave> waves_;
  std::vector<std::uint32_t> free_waves_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> free_groups_;
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> free_accesses_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;

  std::uint64_t lines_ = 0;
  std::uint64_t gmmu_hits_ = 0;
  std::uint64_t gmmu_bypassed_ = 0;
  std::uint64_t iommu_accesses_ = 0;
  std::uint64_t first_touches_ = 0;
  std::uint64_t remote_owned_ = 0;
  std::uint64_t remote_lines_ = 0;
  bool finished_ = false;
};

// Takes an entry from a pool with a free list.
template <class T>
std::uint32_t take_slot(std::vector<T>& pool, std::vector<std::uint32_t>& free) {
  if (!free.empty()) {
    const std::uint32_t slot = free.back();
    free.pop_back();
    return slot;
  }
  pool.emplace_back();
  return static_cast<std::uint32_t>(pool.size() - 1);
}

}  // namespace demarc::sim::translation
