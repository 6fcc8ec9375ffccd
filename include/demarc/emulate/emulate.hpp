// Runs PTX kernels on the CPU, warp by warp. The 32 lanes are vectors and reconverge at the
// immediate post-dominator. Blocks run in parallel on all cores; the results do not depend on the
// number of threads.
//
//   DEMARC_TRY(auto outcome, emulate::run(module, launch, {}, nullptr));
//   if (!outcome.findings.empty()) … emulate::describe(outcome.findings.front()) …
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/emulate/trace.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/ptx/diagnostic.hpp"

namespace demarc::ptx {
struct Module;
}

namespace demarc::emulate {

enum class InstructionSet { automatic, baseline, avx2, avx512 };

// An endless block reaches it within seconds, whether one of its threads runs or all of them.
inline constexpr std::uint64_t default_instruction_limit = std::uint64_t{1} << 27;

struct Options {
  // Checks that cost time. Out-of-bounds and misaligned accesses are always found.
  bool check_uninitialised = true;  // reads of shared, local and uninitialised global bytes that
                                    // were never written
  bool check_races = true;          // shared memory, between barriers
  // Buffers whose index is listed hold no data at the start: reading a byte before writing it is a
  // finding.
  std::vector<std::size_t> uninitialised_buffers;
  unsigned threads = 0;  // 0: all cores
  // A block whose warps execute more instructions than this is a hang, which ends the run.
  std::uint64_t instruction_limit = default_instruction_limit;
  // How many blocks are there at once at most, where those that are there wait through global
  // memory for others. 0: as many as an H100 holds.
  std::uint32_t resident_blocks = 0;
  // The largest number of findings kept. One place in the code is one finding, however often it
  // occurs.
  std::size_t finding_limit = 64;
  InstructionSet instruction_set = InstructionSet::automatic;  // the widest this CPU has
  std::string source = "ptx";                                  // names the PTX text in messages
  Progress progress;
};

enum class FindingKind {
  out_of_bounds,
  misaligned,
  uninitialised_read,
  shared_race,
  barrier_divergence,
  assertion,
  trap,
  hang,
  limit,  // something the emulator bounds was exceeded, e.g. the call depth
};

[[nodiscard]] const char* to_string(FindingKind kind);

// What a check found, at the place where it was first seen (lowest block, then execution order
// within the block).
struct Finding {
  FindingKind kind = FindingKind::out_of_bounds;
  std::string kernel;
  std::array<std::uint32_t, 3> block{};
  std::array<std::uint32_t, 3> thread{};
  std::uint32_t line = 0;   // line of the PTX text
  std::string source;       // "file:line" of the CUDA source where the PTX has .loc, else empty
  std::string instruction;  // as written
  std::string detail;       // the address and what is there, the other thread of a race, …
  std::uint64_t count = 1;  // occurrences of this kind at this instruction
};

// "out-of-bounds access: k.ptx:12: ld.global.u32 %r1, [%rd1]; kernel halo, block (1,0,0), thread
// (3,0,0): …"
[[nodiscard]] std::string describe(const Finding& finding, const std::string& ptx_name);

struct KernelStatistics {
  std::string kernel;
  std::uint64_t blocks = 0;
  std::uint64_t warps = 0;
  std::uint64_t thread_instructions = 0;  // PTX instructions times executing lanes
  std::uint64_t warp_instructions = 0;
  std::uint64_t longest_warp = 0;  // warp instructions of the warp that executed most
  std::uint64_t divergent_branches = 0;
  std::uint64_t barriers = 0;         // warps arriving at one
  std::uint64_t memory_accesses = 0;  // warp instructions that touched memory
  double seconds = 0;                 // seconds of the wall clock
  double cpu_seconds = 0;             // seconds of all threads together
};

struct Outcome {
  gpu::Memory buffers;                   // after the last kernel, in the order of Launch::buffers
  std::vector<std::uint64_t> addresses;  // device addresses of the buffers
  std::vector<Finding> findings;
  // Instructions that were not carried out as a card does it (docs/emulate.md). Each mnemonic is
  // listed once, at its first place. The severity is approximated, `text` is the mnemonic,
  // `message` says what is done instead.
  std::vector<ptx::Diagnostic> approximations;
  std::string printed;  // what the kernels' printf said, in block order
  std::vector<KernelStatistics> kernels;
  // Kernels whose blocks ran on one thread, one after the other or in turns, because a global
  // atomic's result is used or does not commute, or because a loop looks at global memory that
  // other blocks may change.
  std::vector<std::string> ordered_kernels;
  InstructionSet instruction_set = InstructionSet::baseline;
  unsigned threads = 1;
};

// Runs every kernel of the launch in sequence. `sink` may be null. A finding is not an error of
// run(): the outcome carries it. These are errors: a kernel or a variable that the module does not
// define, arguments that do not fit the parameters, a reachable instruction that is not covered
// (named with line and text), and errors of the sink.
[[nodiscard]] Result<Outcome> run(const ptx::Module& module, const gpu::Launch& launch,
                                  const Options& options = {}, TraceSink* sink = nullptr);

// The same with given buffer contents instead of the launch's own.
[[nodiscard]] Result<Outcome> run_on(const ptx::Module& module, const gpu::Launch& launch,
                                     gpu::Memory memory, const Options& options = {},
                                     TraceSink* sink = nullptr);

[[nodiscard]] const char* to_string(InstructionSet set);
[[nodiscard]] InstructionSet widest_instruction_set();  // of this CPU, as far as built

}  // namespace demarc::emulate
