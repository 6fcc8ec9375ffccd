// The locality of one kernel launch: what every global access touches (KNOM Review 2022, section
// III). It comes from closed forms if the addresses follow from parameters and indices, and from
// the emulator if they depend on data.
//
//   DEMARC_TRY(const auto analysis, locality::analyse(module, launch, {}));
//   analysis.inter.degree_of_sharing …
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/locality/maps.hpp"
#include "demarc/locality/runs.hpp"

namespace demarc::ptx {
struct Module;
}

namespace demarc::locality {

enum class Method : std::uint8_t { symbolic, emulated, mixed };
[[nodiscard]] const char* to_string(Method method);

enum class Force : std::uint8_t { automatic, symbolic, emulated };

struct Options {
  std::string kernel;  // empty: the only kernel of the launch, else the one that loads most
  // Which of the kernel's launches to analyse, counted from 0. -1: the one that loads most.
  std::int64_t instance = -1;
  Granularity granularity = Granularity::element;
  Count count = Count::accesses;
  AccessKind kind = AccessKind::load;  // what the maps are drawn from
  // symbolic: it is an error if an access of `kind` depends on data. emulated: everything comes
  // from the emulator.
  Force force = Force::automatic;
  // The most cells of the map between blocks; see inter_map.
  std::uint64_t max_cells = all_cells;
  unsigned threads = 0;  // threads of the emulator; 0: all cores
  // Warp instructions of a block that are followed one by one: a block with more hangs. Trips of a
  // loop that has a closed form are not followed, nor are instructions that decide no address.
  std::uint64_t instruction_limit = emulate::default_instruction_limit;
  Progress progress;
};

struct Analysis {
  std::string kernel;
  gpu::Dim3 grid;
  gpu::Dim3 block;
  std::uint32_t instance = 0;
  Granularity granularity = Granularity::element;
  Count count = Count::accesses;
  AccessKind kind = AccessKind::load;
  Method method = Method::symbolic;
  AccessRuns all;  // every global access
  InterResult inter;
  IntraResult intra;
  // The accesses that share or coalesce worst, by source line, and what would help, in words.
  std::vector<std::string> advice;
  std::string trees_json;          // the syntax trees of the kernel's ld.global (Figure 4)
  std::vector<std::string> notes;  // what was left out or approximated, in words
  // Number of instructions that may touch global memory and that neither closed forms nor the
  // emulator cover, and of accesses of another kind than Options::kind that only the emulator could
  // have followed. Each has its note.
  std::uint32_t left_out = 0;
  // Accesses that are outside of the buffers or not aligned, in words. They are part of the maps.
  std::vector<std::string> findings;
};

// These are errors: a kernel that the launch does not name or the module does not define; more than
// 1024 threads or 65535 accesses; what the emulator refuses, if closed forms of the accesses of
// `Options::kind` do not suffice; and (check_failed) a kernel that does not run to its end.
[[nodiscard]] Result<Analysis> analyse(const ptx::Module& module, const gpu::Launch& launch,
                                       const Options& options);

// How much work may go into it. If closed forms take more operations, they are given up and the
// emulator is used; with `beginning` they cover only the kernel's beginning. If the emulator takes
// more work, this is an error (missing_capability) that says so.
struct Effort {
  std::uint64_t row_operations = 2'000'000'000;  // a thousand for each of two million rows
  // Operations of one row of threads, and a fourth of the words that it may keep. The emulator
  // finds out whether a row that takes more ends; if it does, closed forms are looked for without
  // this.
  static constexpr std::uint64_t any_row = ~std::uint64_t{0} / 4;
  std::uint64_t max_of_row = std::uint64_t{1} << 23U;
  bool beginning = false;
  std::uint64_t trace_words = ~std::uint64_t{0};  // of 8 bytes, from all kernels up to this one
  // Runs of a block that are kept while it is not known whether the block ends. If it makes more
  // and ends, the launch is emulated again.
  std::uint64_t max_runs_of_block = std::uint64_t{1} << 22U;
  std::uint64_t emulated_buffer_bytes = ~std::uint64_t{0};  // bytes of the launch
  // Options::instruction_limit. If threads that are followed execute more, closed forms are given
  // up, and the emulator names the place.
  std::uint64_t instruction_limit = emulate::default_instruction_limit;
};

// The access runs alone: `kernels` is the index of the kernel launch in Launch::kernels.
struct Collected {
  AccessRuns runs;
  Method method = Method::symbolic;
  std::vector<std::string> notes;
  std::uint32_t left_out = 0;         // see Analysis
  std::vector<std::string> findings;  // see Analysis
  // Only the kernel's beginning was followed (Effort): its first blocks, in a grid of one
  // dimension, and each row of threads as far as was allowed.
  bool cut = false;
};
[[nodiscard]] Result<Collected> collect_runs(const ptx::Module& module, const gpu::Launch& launch,
                                             std::size_t kernel_launch, Force force,
                                             unsigned threads = 0, const Progress& progress = {},
                                             const Effort& effort = {});

// Shared memory of a block of `kernel`, static and dynamic, for PredictOptions.
[[nodiscard]] std::uint32_t shared_bytes_of(const ptx::Module& module,
                                            const gpu::KernelLaunch& kernel);

// {"schema": "demarc.locality/1", "kernel", "grid", "block", "accesses": [...], "inter", "intra",
//  "method", ...}; docs/locality.md lists the keys.
[[nodiscard]] std::string analysis_json(const Analysis& analysis, bool with_maps);

}  // namespace demarc::locality
