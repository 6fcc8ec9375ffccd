// Applications from outside: access streams of real kernels and of files. The emulator makes the
// first block by block; docs/simulate.md gives the formats of the second. Warps of 32 lanes run in
// pairs as waves of 64.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "demarc/launch/launch.hpp"
#include "demarc/sim/memory/work.hpp"
#include "demarc/sim/translation/application.hpp"

namespace demarc::ptx {
struct Module;
}

namespace demarc::sim::translation {

struct StreamOptions {
  std::string name = "stream";
  std::uint32_t page_bytes = 4096;     // bytes of the settings it will be run under
  Split split = Split::contiguous;     // what `native` means for it
  std::uint32_t coalesced_lanes = 64;  // also of the settings: 32, or 64 with lines of both warps
  std::uint32_t vgprs = 32;            // per lane, and
  std::uint32_t sgprs = 32;            // per wave: they bound the waves of a CU
  std::uint64_t max_lines = 500'000'000;  // line accesses kept in memory (4 bytes each)
  // Accesses to addresses [first, second) are left out. An example is coefficients that a GPU with
  // scalar loads reads through its scalar cache, not by vector accesses.
  std::vector<std::pair<Address, Address>> left_out = {};
};

// Takes the blocks of a launch in order and becomes an Application.
class StreamBuilder {
 public:
  explicit StreamBuilder(StreamOptions options);
  ~StreamBuilder();
  StreamBuilder(const StreamBuilder&) = delete;
  StreamBuilder& operator=(const StreamBuilder&) = delete;

  // `blocks_x`: blocks of the grid's first dimension.
  void begin_kernel(const memory::KernelShape& shape, std::uint32_t blocks_x);
  // It is an error to add more blocks than the kernel has, or more lines than the options allow.
  [[nodiscard]] Result<void> add_block(const memory::PackedBlock& block);
  // Pages are numbered in ascending order of their addresses; gaps between them are closed. Errors:
  // a kernel that lacks blocks, a stream that touches no memory, more than 2^32 lines.
  [[nodiscard]] Result<std::unique_ptr<Application>> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Result<std::unique_ptr<Application>> application_of_stream(
    const memory::PackedLaunch& launch, const StreamOptions& options);
// Emulates the launch and keeps only its line accesses. What the emulator finds wrong is an error.
// `threads`: number of threads that emulate; 0: all cores.
[[nodiscard]] Result<std::unique_ptr<Application>> application_of_launch(
    const ptx::Module& module, const gpu::Launch& launch, const StreamOptions& options,
    unsigned threads = 0);

}  // namespace demarc::sim::translation
