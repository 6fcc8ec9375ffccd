// What SMs run: a launch is kernels one after the other, a kernel is thread blocks, a block is
// warps, a warp is a sequence of steps. Steps are asked for one at a time, so a source may make
// them as they are needed: from a trace, from the emulator, from a loop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/memory/lines.hpp"

namespace demarc::sim::memory {

enum class StepKind : std::uint8_t { load, store, atomic, reduce, barrier, work, end };

// `instructions` are issued first, then the access, with `count` lines. The warp waits for the
// value of an atomic as for that of a load; a reduction has no value. `wait`: before the
// instructions, all loads of the warp must have arrived. Two flags are what a program says about
// the caches: the L2 answers a load `past_l1` (.cg); a line that `streams` (.cs) is the first that
// its caches give up.
struct Step {
  StepKind kind = StepKind::end;
  bool wait = false;
  bool past_l1 = false;
  bool streams = false;
  bool partial = false;    // a store that fills a sector in part
  std::uint8_t count = 0;  // at most 32
  std::uint32_t instructions = 0;
  std::uint16_t shared_rows = 0;  // rows of shared memory that those instructions access
  std::uint32_t floats = 0;       // those that compute with 32-bit floating-point numbers
  std::array<LineEntry, 32> lines{};
};

// What the banks of shared memory give in one cycle.
inline constexpr std::uint32_t shared_row_bytes = 128;

struct KernelShape {
  std::uint32_t blocks = 0;
  std::uint32_t threads = 32;  // per block
  std::uint32_t shared_bytes = 0;
  std::uint32_t registers = 0;  // per thread; 0: not known
  [[nodiscard]] std::uint32_t warps() const { return (threads + 31) / 32; }
  // Registers that a block takes of an SM. A warp gets those of its threads in units of 256.
  [[nodiscard]] std::uint32_t block_registers() const {
    return warps() * ((registers * 32 + 255) / 256 * 256);
  }
  friend bool operator==(const KernelShape&, const KernelShape&) = default;
};

// The steps of one thread block.
class BlockWork {
 public:
  BlockWork() = default;
  BlockWork(const BlockWork&) = delete;
  BlockWork& operator=(const BlockWork&) = delete;
  virtual ~BlockWork() = default;
  // The next step of `warp`; StepKind::end when there is none.
  virtual void next(std::uint32_t warp, Step& step) = 0;
};

// A launch that can be run again and again. Blocks are asked for in order.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  [[nodiscard]] virtual Result<void> restart() = 0;
  // False: the launch has no further kernel.
  [[nodiscard]] virtual Result<bool> next_kernel(KernelShape& shape) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<BlockWork>> next_block() = 0;
};

// The first word of a packed step: kind in bits 0-2, wait in bit 3, past_l1 in bit 4, streams in
// bit 5, partial in bit 6, in bit 7 whether a word of floats follows, count in bits 8-15,
// instructions in bits 16-47, shared_rows in bits 48-63.
[[nodiscard]] std::uint64_t head_of(const Step& step);
// Reads everything but the lines, with floats as 0. True: their number is the next word.
bool read_head(std::uint64_t head, Step& step);

// Steps packed into words: a head, the number of floats if it is not 0, then the words of `count`
// line entries.
class PackedSteps {
 public:
  void add(const Step& step);
  // Reads the step at `at` and moves `at` behind it; at the end of the words, StepKind::end.
  void read(std::size_t& at, Step& step) const;
  [[nodiscard]] std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }
  [[nodiscard]] bool empty() const { return words_.empty(); }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

struct PackedBlock {
  std::vector<PackedSteps> warps;
  [[nodiscard]] std::size_t bytes() const;
};
[[nodiscard]] std::unique_ptr<BlockWork> replay_block(std::shared_ptr<const PackedBlock> block);

struct PackedKernel {
  KernelShape shape;
  std::vector<std::shared_ptr<const PackedBlock>> blocks;
};
// A whole launch in memory, shared by any number of sources.
struct PackedLaunch {
  std::vector<PackedKernel> kernels;
  [[nodiscard]] std::size_t bytes() const;
};
[[nodiscard]] std::unique_ptr<Source> replay_launch(std::shared_ptr<const PackedLaunch> launch);

// Addresses of the active lanes, `bytes` each, as line entries in ascending order; returns how
// many. Lanes are the bits of `mask`.
[[nodiscard]] std::uint8_t coalesce(const std::array<std::uint64_t, 32>& addresses,
                                    std::uint32_t mask, std::uint32_t bytes,
                                    std::array<LineEntry, 32>& lines);

}  // namespace demarc::sim::memory
