// What a kernel touches in global memory, as runs: consecutive threads of a block whose addresses
// are an arithmetic progression. Closed forms and the emulator both yield runs; maps, coalescing
// and hit rates are computed from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/emulate/trace.hpp"

namespace demarc::locality {

using emulate::AccessKind;

// How much is known of an address without running the kernel.
enum class AccessClass : std::uint8_t {
  affine,          // every thread executes it; an affine function of the thread and block indices
  guarded_affine,  // the same under conditions on these indices
  loop_affine,     // inside a loop whose trips are known
  data_dependent   // its address, a condition or a trip count depends on loaded data
};

enum class Source : std::uint8_t { symbolic, emulated };

[[nodiscard]] const char* to_string(AccessClass access_class);  // "affine under a guard" ...
[[nodiscard]] const char* to_string(Source source);

// One static memory instruction.
struct Access {
  std::string instruction;  // as written in PTX
  std::uint32_t index = 0;  // in the body of the kernel
  std::uint32_t line = 0;   // line of the PTX text, from 1
  std::string source_line;  // "k.cu:12" where the PTX has .loc, else empty
  std::string space = "global";
  AccessKind kind = AccessKind::load;
  std::uint32_t bytes = 4;  // per thread
  std::string expression;   // "param5 + 4*(tid.y + 4*ctaid.y)"
  AccessClass access_class = AccessClass::affine;
  Source source = Source::symbolic;
  bool passes_l1 = false;  // .cg, .cv, .volatile ...: the L1 does not answer it
  // It accesses texels of a texture or a surface, one by one, in plain order. A card keeps the
  // texels of an array in an order of its own.
  bool texels = false;
  bool waits = true;  // before its next access the warp waits for this one's data, and for what it
                      // asked before
  std::uint64_t executed = 0;      // thread accesses
  std::uint64_t requests = 0;      // warp instructions with at least one active lane
  double sectors_per_request = 0;  // distinct 32-byte sectors per warp instruction, mean
};

// The trips of a loop for which a run stands. In trip t, 0 <= t < trips, its addresses are t *
// stride further on, its request is the t-th after, and its step is t * steps later.
struct Loop {
  std::uint32_t trips = 1;
  std::uint32_t steps = 0;
  std::int64_t stride = 0;  // bytes
  friend bool operator==(const Loop&, const Loop&) = default;
};

// Threads thread .. thread+count-1 of `block` execute `access`, at the addresses address + k *
// stride. Runs of one warp with equal access and request belong to one warp instruction; `step`
// orders the requests of a warp.
struct Run {
  std::uint64_t address = 0;
  std::int64_t stride = 0;  // bytes
  std::uint32_t block = 0;
  std::uint32_t count = 1;
  std::uint32_t request = 0;  // how often the warp executed the access before, in any lane
  std::uint32_t step = 0;
  std::uint16_t thread = 0;
  std::uint16_t access = 0;  // index into AccessRuns::accesses
  std::uint32_t loop = 0;    // index into AccessRuns::loops
};

struct AccessRuns {
  std::array<std::uint32_t, 3> grid{1, 1, 1};   // blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};  // threads
  std::vector<Access> accesses;
  std::vector<Run> runs;            // blocks ascending
  std::vector<Loop> loops{Loop{}};  // without repetition; the first stands for no loop

  [[nodiscard]] const Loop& loop_of(const Run& run) const { return loops[run.loop]; }
  [[nodiscard]] std::uint32_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  [[nodiscard]] std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

// The index of an equal loop; the loop is added if there is none.
[[nodiscard]] std::uint32_t loop_index(AccessRuns& runs, const Loop& loop);

// The same accesses as runs without loops. Time and memory grow with the trips.
[[nodiscard]] AccessRuns expanded(const AccessRuns& runs);

// Fills executed, requests and sectors_per_request of every access.
void count_requests(AccessRuns& runs);

// The runs of the accesses of one kind only; `access` is renumbered.
[[nodiscard]] AccessRuns only(const AccessRuns& runs, AccessKind kind);

// Index of the first run of every block, and one past the last: blocks() + 1 values.
[[nodiscard]] std::vector<std::size_t> block_starts(const AccessRuns& runs);

}  // namespace demarc::locality
