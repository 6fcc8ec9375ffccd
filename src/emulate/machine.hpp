// A lowered kernel (Program), the memory it runs on, and one block of it in execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/launch/launch.hpp"
#include "heap.hpp"
#include "lanes/alu.hpp"
#include "race_clocks.hpp"
#include "warp.hpp"

namespace demarc::emulate {

// Generic addresses: these windows lead to shared and local memory, everything else to global
// memory.
inline constexpr std::uint64_t shared_window = 0x0000'1000'0000'0000;
inline constexpr std::uint64_t local_window = 0x0000'1200'0000'0000;
inline constexpr std::uint64_t constant_window = 0x0000'1400'0000'0000;
inline constexpr std::uint64_t param_window = 0x0000'1600'0000'0000;
inline constexpr std::uint64_t max_local_bytes = 512 << 10;    // per thread
inline constexpr std::uint64_t max_parameter_bytes = 1 << 20;  // per variable of a function
inline constexpr std::uint32_t max_frame_bytes = 1 << 27;      // per function and warp
inline constexpr std::uint64_t window_bytes = 0x0000'0100'0000'0000;
inline constexpr std::uint64_t global_variables_base = 0x0000'6000'0000'0000;
inline constexpr std::uint64_t function_base =
    0x0000'5000'0000'0000;  // + 16 * its index in the module

struct CodeInstruction {
  TraceInstruction trace;
  std::string source;  // file:line of the CUDA source, may be empty
};

// Part of a frame that a function's parameter or result occupies: 32 lanes of `bytes`, lane by
// lane.
struct FrameVariable {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;  // bytes of one lane
  // Bytes that calls compare: 0 of a constant, and of a result that is thrown away, which fit all.
  std::uint32_t size = 0;
  std::uint32_t align = 0;
};

struct Constant {
  std::uint32_t offset = 0;  // offset of a uniform slot
  std::uint64_t value = 0;
};

struct CodeFunction {
  std::string name;
  std::uint32_t entry = 0;
  std::uint32_t frame_bytes = 0;
  std::uint32_t local_bytes = 0;  // bytes of one thread
  std::vector<Constant> constants;
  std::vector<FrameVariable>
      zeroed;  // registers that may be read before they are written; bytes in all
  std::vector<std::uint32_t> uniforms;  // places of the registers in uniform slots
  std::vector<FrameVariable> parameters;
  std::vector<FrameVariable> results;
};

// Payload of a micro-op that needs more than fits in it.
struct CallDetails {
  std::uint32_t function = 0;
  std::vector<FrameVariable> arguments;  // in the caller's frame
  std::vector<FrameVariable> results;
};
struct VectorDetails {
  static constexpr std::uint32_t sink = ~std::uint32_t{0};
  std::uint32_t slots[8] = {};   // slots of the elements; sink: thrown away
  std::uint8_t uniform[8] = {};  // stores: the element is a uniform slot
};

// What the blocks of a cooperative launch share for the barriers of the whole grid. Its address is
// in %envreg1 (the upper half) and %envreg2.
struct GridWorkspace {
  static constexpr std::uint64_t base = 0x0000'6900'0000'0000;
  static constexpr std::uint64_t bytes = 4096;
  std::vector<std::byte> memory = std::vector<std::byte>(bytes);
};

// A texture or a surface of the launch, and where its first texel lies.
struct PlacedImage {
  gpu::Image image;
  std::uint64_t address = 0;
};

// How the bits of an instruction's results depend on those of its operands.
enum class TrackRule : std::uint8_t {
  any,    // all on all
  lanes,  // all on all of any lane
  route,  // each is one of the first operands', which the others choose
  shuffle_up,
  shuffle_down,
  shuffle_butterfly,
  shuffle_index,
  bitwise,  // each on those at the same place, by a table
  sum,
  difference,
  product,  // on those at this place and below
  equality,
  access,
  call
};

// An operand of an instruction, as far as unwritten bits are followed.
struct TrackedOperand {
  static constexpr std::uint32_t unknown = ~std::uint32_t{0};
  std::uint32_t slot = unknown;  // unknown: what it is is not followed; it is written
  std::uint8_t width = 0;        // bytes of a lane; 0: a predicate
  bool uniform = false;
  bool negated = false;
};
struct TrackedInstruction {
  TrackRule rule = TrackRule::any;
  std::uint8_t truth = 0;   // of bitwise, as of lop3
  std::uint8_t routed = 0;  // how many of the operands are
  bool is_signed = false;   // of a load
  std::uint32_t first = 0;  // Program::tracked_operands: written, then read, then addresses
  std::uint8_t written = 0;
  std::uint8_t read = 0;
  std::uint8_t addresses = 0;
};

// Where the shadow bytes of each lane's bytes are; null: nothing to track.
using LaneShadows = std::array<std::uint8_t*, warp_size>;
using LaneSpaces = std::array<MemorySpace, warp_size>;

// A variable of shared memory.
struct SharedPlace {
  std::uint32_t offset = 0;
  std::uint64_t bytes = 0;
  std::string name;
};

struct Program {
  HandlerTables tables;
  std::string kernel;
  std::vector<MicroOp> code;
  std::vector<CodeInstruction> instructions;
  std::vector<CodeFunction> functions;  // [0] is the kernel
  std::vector<std::shared_ptr<void>> details;
  std::vector<TrackedInstruction> tracked;  // by instruction
  std::vector<TrackedOperand> tracked_operands;
  std::vector<ptx::Diagnostic> approximations;
  std::uint32_t shared_bytes = 0;    // static and dynamic
  std::uint32_t shared_granule = 4;  // bytes: the narrowest shared access of the kernel, for races
  std::uint32_t memory_sites = 0;
  std::vector<SharedPlace> shared_places;
  bool ordered = false;       // see Outcome::ordered_kernels
  bool suspends = false;      // a warp may have to wait for another
  bool polls = false;         // a loop looks at global memory that other blocks may change
  bool orders_warps = false;  // otherwise than by barriers of the whole block
  bool calls = false;
  bool allocates = false;                         // device-side malloc and free
  DeviceHeap* heap = nullptr;                     // once a kernel of the module does
  std::unique_ptr<GridWorkspace> grid_workspace;  // where the kernel asks for its address
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  ClusterShape cluster;
  bool explicit_clusters = false;  // the kernel or the launch says how large they are
  bool in_clusters = false;        // blocks have to be there with those of their cluster
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;  // kernel parameters as in memory
  std::vector<std::byte> constants;   // the constant bank
  std::vector<std::uint32_t> tids;    // [warp][dimension][lane]
  std::vector<PlacedImage> images;    // by their numbers in the launch
  std::vector<Region> regions;        // global memory, ascending
  Region constant_region;
  Region parameter_region;
  std::uint64_t instruction_limit = 0;  // warp instructions of a block
  std::uint32_t longest_run = 0;        // instructions that are counted at once
  bool check_uninitialised = true;
  bool check_races = true;
  std::map<std::uint64_t, std::uint32_t> function_of_address;
  std::vector<std::uint32_t> sm_of_block;     // see Card
  std::uint64_t time_ns = 0;                  // added to the warp instructions that clocks count
  std::int64_t turn = std::int64_t{1} << 20;  // warp instructions until the next warp gets its turn

  // %smid of a block.
  [[nodiscard]] std::uint32_t sm_of(std::uint32_t number) const {
    return number < sm_of_block.size() ? sm_of_block[number] : 0;
  }
  [[nodiscard]] const Region* find_region(std::uint64_t low, std::uint64_t high) const;
  [[nodiscard]] std::uint32_t warps() const {
    return ceil_div(block[0] * block[1] * block[2], warp_size);
  }
};

// One memory instruction of one warp while it is carried out. The lanes of `mask` access
// addresses[lane] + delta + lane * pitch on the host.
struct Access {
  alignas(64) std::uint64_t addresses[warp_size];
  std::uint64_t delta;
  std::uint64_t pitch;
  std::uint64_t base;  // when affine: addresses[lane] = base + stride * lane on mask
  std::int64_t stride;
  std::uint8_t*
      shadow;  // null: nothing to track. Shadow byte of a host byte: host address + shadow_delta
  std::uint64_t shadow_delta;
  Mask mask;
  MemorySpace space;
  bool affine;
  bool halves;  // all lanes: 0-15 are base + stride * lane, 16-31 second + stride * (lane - 16)
  std::uint64_t second;
};

// Where an instruction went last.
struct AccessHint {
  const Region* region = nullptr;
  std::uint64_t low = 0;  // its lowest address
};

// Who touched a granule of shared memory last, for race checks; where clocks are used, of each warp
// ([granule][warp]). Plain and strong (atomic, volatile, relaxed) accesses are kept apart, because
// two strong ones do not race. 0: none since the last barrier. bits 0-23 instruction, 24-28 lane,
// 29-34 warp, 36 several warps, 37-63 epoch.
struct RaceShadow {
  std::vector<std::uint64_t> writes;
  std::vector<std::uint64_t> reads;
  std::vector<std::uint64_t> strong_writes;
  std::vector<std::uint64_t> strong_reads;
  std::uint64_t strong_epoch = 0;  // of the last strong access
};

struct BarrierState {
  std::uint32_t arrived = 0;   // warps that have arrived as a whole
  std::uint32_t expected = 0;  // threads; 0: all of the block
  std::vector<Mask> some;     // by warp: lanes that have arrived, of warps that have not as a whole
  std::vector<Mask> waiting;  // by warp
  bool in_use = false;
  std::uint32_t reduction_count = 0;
  bool reduction_and = true;
  bool reduction_or = false;
};

struct PendingFinding {
  Finding finding;
  std::uint32_t instruction = 0;
};

// Where a worker keeps frames; the most recently freed is handed out first, because it is in the
// cache.
class FramePool {
 public:
  std::byte* take(const CodeFunction& function);
  void give_back(const CodeFunction& function, std::byte* frame);

 private:
  std::map<const CodeFunction*, std::vector<std::byte*>> free_;
  std::vector<std::unique_ptr<std::byte[]>> owned_;
};

// "thread (3,0,0)", by its place in the block.
[[nodiscard]] std::string thread_name(const Warp& warp, unsigned lane);

class Unwritten;

// One block being executed by one worker; reused for the next block.
class Block {
 public:
  Block(const Program& program, FramePool& pool);
  ~Block();

  // What handlers use.
  const Program* program;
  FramePool* pool;
  Cluster* cluster = nullptr;  // where the kernel is Program::in_clusters
  std::uint32_t linear = 0;
  std::array<std::uint32_t, 3> index{};
  std::vector<std::uint64_t> trace;  // see TraceChunk
  std::size_t trace_used = 0;
  std::uint32_t trace_warp = 0;
  std::vector<AccessHint> hints;  // by memory site
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> shared_shadow;
  Region shared_region;
  std::vector<std::byte> local;  // [warp][lane][local_bytes]
  std::vector<std::uint8_t> local_shadow;
  std::uint32_t local_bytes = 0;  // from one thread's to the next
  std::uint32_t local_end = 0;    // bytes of one thread that the block's functions have declared
  RaceShadow races;
  std::uint64_t epoch = 1;  // moves on whenever a warp may have been ordered before another
  std::uint64_t unordered_epoch = 1;  // what all warps did before it comes before all they do now
  RaceClocks clocks;                  // of warps, where Program::orders_warps
  std::vector<Warp> warps;
  std::vector<BarrierState> barriers;
  std::vector<PendingFinding> findings;
  std::string printed;
  std::uint32_t running = 0;             // warps that have not ended
  bool stopped = false;                  // by a trap, an assertion or a hang
  std::unique_ptr<Unwritten> unwritten;  // once a warp is tracked
  std::function<void(Block&)> flush;     // called when the trace buffer is full; may empty it
  std::uint64_t executed = 0;            // warp instructions of warps that are not running

  void start(std::uint32_t linear_index, bool tracing, bool trace_runs);
  // Every warp that can run gets its turn. `apart`: lanes that wait at a meeting for lanes that
  // look at memory in vain go on without them. False: the block has ended.
  bool advance(bool apart);
  bool idle = false;              // no warp could run in the last turn: all wait for other blocks
  bool stalled = false;           // all that ran looked at memory in vain
  std::uint32_t vain_rounds = 0;  // rounds in a row in which it was so
  // No lane can run and some wait: for lanes that will never come.
  void report_stuck();
  void report_hang(const Warp& warp, std::string detail);  // at where `warp` goes on
  void report_hang(std::string detail);                    // where a warp is that can run

  [[nodiscard]] std::uint64_t* trace_room(std::size_t words) {
    if (trace_used + words > trace.size()) make_trace_room(words);
    std::uint64_t* at = trace.data() + trace_used;
    trace_used += words;
    return at;
  }
  void grow_local(std::uint32_t bytes);
  [[nodiscard]] Region local_region(const Warp& warp);

  void report(const Warp& warp, const MicroOp* op, unsigned lane, FindingKind kind,
              std::string detail);
  // What was reported of the instruction before, until the next report; null: nothing.
  [[nodiscard]] PendingFinding* reported(const MicroOp* op, FindingKind kind);
  // Whether that was reported of the instruction before; then it is counted. So the words for a
  // finding are made once.
  bool counted(const MicroOp* op, FindingKind kind);
  // As report(), and the block ends there. Null, for the handler to return.
  const MicroOp* stop_with(const Warp& warp, const MicroOp* op, unsigned lane, FindingKind kind,
                           std::string detail);
  // Lane by lane: finds each lane's memory, reports the lanes that may not do what they want and
  // takes them out of the mask, checks and updates the shadow. Afterwards addresses are host
  // addresses.
  void slow_access(Warp& warp, const MicroOp* op, Access& access, AddressKind kind,
                   std::uint32_t bytes, AccessMode mode);
  // Takes lanes out of the mask whose mistake was reported of this instruction before, and counts
  // them. It leaves some of them to slow_access, which is right for all and takes longer.
  void count_repeated(const Warp& warp, const MicroOp* op, Access& access, AddressKind kind,
                      std::uint32_t bytes, AccessMode mode);
  void check_race(Warp& warp, const MicroOp* op, const Access& access, std::uint32_t bytes,
                  AccessMode mode);
  // A load or an atomic finds bytes that were not written before.
  void read_unwritten(Warp& warp, const MicroOp* op, const Access& access, std::uint32_t bytes,
                      const LaneShadows& shadows, const LaneSpaces& spaces);
  // A store by a warp that is tracked.
  void store_tracked(Warp& warp, const MicroOp* op, const Access& access,
                     const LaneShadows& shadows);
  // The lanes that run in `warp` arrive at a barrier for `threads` (0: all).
  void arrive(Warp& warp, const MicroOp* op, std::uint32_t id, std::uint32_t threads);
  void lanes_ended();  // per warp: barriers may have waited for no others
  void next_epoch();   // everything before is ordered before everything after
  void next_moment();  // what a warp does from here on is not what it has handed on
  // A strong access or an atomic: what it hands on and takes up.
  void order_access(const Warp& warp, const MicroOp* op, const Access& access, AccessMode mode);

 private:
  void make_trace_room(std::size_t words);
  void run_ops(Warp& warp, const MicroOp* op);
  void complete(std::uint32_t barrier_id);
  [[nodiscard]] bool is_complete(BarrierState& barrier);
  void note_whole(BarrierState& barrier, const Warp& warp);
  void run_warp(Warp& warp, bool apart);
  void end_turn(Warp& warp, bool apart);
  [[nodiscard]] bool waits_for_cluster() const;
  void order_waiters(std::uint32_t barrier_id);
};

}  // namespace demarc::emulate
