// Traces of a launch: which instructions each warp executed under which active mask, and the
// address of every lane of every memory access. The emulator produces them on the fly; a consumer
// is a TraceSink. The file format is described in docs/trace-format.md.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::emulate {

enum class MemorySpace : std::uint8_t { none, global, shared, local, constant, param };
enum class AccessKind : std::uint8_t { none, load, store, atomic };

[[nodiscard]] const char* to_string(MemorySpace space);
[[nodiscard]] const char* to_string(AccessKind kind);

// One static instruction. Its index in TraceHeader::instructions is the id that events carry.
struct TraceInstruction {
  std::string function;    // the PTX function it stands in
  std::uint32_t line = 0;  // 1-based line of the PTX text, 0 when unknown
  std::string text;        // as written
  MemorySpace space =
      MemorySpace::none;  // of its address operand; generic addresses: see AccessEvent
  AccessKind kind = AccessKind::none;
  std::uint32_t bytes = 0;  // per lane, all elements of a vector access together
  // Whether it is the first of a basic block: it is reached from elsewhere, or the one before it
  // branches. True if that is not known.
  bool begins_block = true;
};

// A buffer argument: device addresses [address, address + bytes).
struct TraceBuffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t argument = 0;  // index of the kernel argument that points to it
};

struct TraceHeader {
  std::string kernel;
  std::array<std::uint32_t, 3> grid{1, 1, 1};   // blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};  // threads
  std::uint32_t shared_bytes = 0;               // static and dynamic shared memory of a block
  std::vector<TraceInstruction> instructions;
  std::vector<TraceBuffer> buffers;
};

// Instructions first .. first+count-1 were executed, one after the other, by the lanes of `mask`. A
// memory instruction among them that touched memory follows as an AccessEvent, in the same order.
struct RunEvent {
  std::uint32_t warp = 0;  // within the block
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t mask = 0;
};

// One memory instruction of one warp. addresses[lane] is valid for the lanes of `mask`. Shared,
// local, constant and param addresses are offsets in their space; local ones are offsets in the
// thread's own local memory.
struct AccessEvent {
  std::uint32_t warp = 0;
  std::uint32_t instruction = 0;
  std::uint32_t mask = 0;
  MemorySpace space = MemorySpace::global;  // where a generic address led
  bool affine = false;  // addresses[lane] = base + stride * lane on every lane of mask
  std::uint64_t base = 0;
  std::int64_t stride = 0;
  std::array<std::uint64_t, 32> addresses{};
};

// Encoded events of one block, in the order in which they were executed. A record is a head of 64
// bits and the words of its kind, of 64 bits each. The head:
//
//   bits    what
//   0-2     kind
//   3-31    instruction: of a run the first; of kind warp the warp within the block
//   32-63   mask
//
// Kinds:
//
//   kind          words                  meaning
//   0 warp        none                   the records that follow belong to this warp
//   1 run         count                  as in RunEvent
//   2 affine      base, stride           lane l accesses base + stride * l
//   3 scattered   space, an address a    in bits 0-7 of its word; lowest lane first
//                 lane of the mask
//   4 halves      base, stride, second   lanes 0-15 as affine, lane l of 16-31 accesses
//                                        second + stride * (l - 16)
//
// The space of an affine record, and of one of halves, is in bits 56-63 of its stride word; the
// stride is the sign-extended rest.
struct TraceChunk {
  std::uint32_t block = 0;  // x + grid.x * (y + grid.y * z)
  bool last = false;        // no more chunks of this block follow
  std::span<const std::uint64_t> words;
};

// Receives a trace while it is made. Calls come from one thread at a time, blocks in ascending
// order and the chunks of a block in execution order, whatever the number of emulating threads. An
// error stops the emulation and becomes its result.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // False: only accesses are recorded and no runs. This is cheaper if only addresses matter.
  [[nodiscard]] virtual bool wants_instructions() const { return true; }
  // For each kernel of the launch, begin_kernel, its chunks and end_kernel are called. Then end is
  // called once.
  [[nodiscard]] virtual Result<void> begin_kernel(const TraceHeader& header);
  [[nodiscard]] virtual Result<void> consume(const TraceChunk& chunk) = 0;
  [[nodiscard]] virtual Result<void> end_kernel();
  [[nodiscard]] virtual Result<void> end();
};

namespace trace_detail {
constexpr std::uint64_t kind_warp = 0;
constexpr std::uint64_t kind_run = 1;
constexpr std::uint64_t kind_affine = 2;
constexpr std::uint64_t kind_scattered = 3;
constexpr std::uint64_t kind_halves = 4;
constexpr std::uint64_t head(std::uint64_t kind, std::uint32_t id, std::uint32_t mask) {
  return kind | (std::uint64_t{id} << 3) | (std::uint64_t{mask} << 32);
}
}  // namespace trace_detail

// Calls visitor.run(RunEvent) and visitor.access(AccessEvent) for every event of the chunk. `warp`
// carries the current warp from chunk to chunk of a block; start each block with 0.
template <class Visitor>
void visit_events(const TraceChunk& chunk, std::uint32_t& warp, Visitor&& visitor) {
  const std::uint64_t* at = chunk.words.data();
  const std::uint64_t* const end = at + chunk.words.size();
  AccessEvent access;
  while (at < end) {
    const std::uint64_t head = *at++;
    const auto id = static_cast<std::uint32_t>(head >> 3) & 0x1fffffffU;
    const auto mask = static_cast<std::uint32_t>(head >> 32);
    switch (head & 7U) {
      case trace_detail::kind_warp:
        warp = id;
        break;
      case trace_detail::kind_run:
        visitor.run(RunEvent{warp, id, static_cast<std::uint32_t>(*at++), mask});
        break;
      case trace_detail::kind_affine:
      case trace_detail::kind_halves: {
        access.affine = (head & 7U) == trace_detail::kind_affine;
        access.base = at[0];
        access.space = static_cast<MemorySpace>(at[1] >> 56);
        access.stride = static_cast<std::int64_t>(at[1] << 8) >> 8;
        const auto stride = static_cast<std::uint64_t>(access.stride);
        const std::uint64_t second = access.affine ? access.base + stride * 16 : at[2];
        at += access.affine ? 2 : 3;
        for (std::uint32_t lane = 0; lane < 16; ++lane) {
          access.addresses[lane] = access.base + stride * lane;
          access.addresses[lane + 16] = second + stride * lane;
        }
        access.warp = warp;
        access.instruction = id;
        access.mask = mask;
        visitor.access(static_cast<const AccessEvent&>(access));
        break;
      }
      default: {
        access.affine = false;
        access.space = static_cast<MemorySpace>(*at++ & 0xffU);
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
          access.addresses[static_cast<unsigned>(std::countr_zero(rest))] = *at++;
        }
        access.warp = warp;
        access.instruction = id;
        access.mask = mask;
        visitor.access(static_cast<const AccessEvent&>(access));
        break;
      }
    }
  }
}

// Keeps a whole trace in memory: for tests and small kernels.
class TraceRecorder final : public TraceSink {
 public:
  struct Block {
    std::uint32_t block = 0;
    std::vector<std::uint64_t> words;
  };
  struct Kernel {
    TraceHeader header;
    std::vector<Block> blocks;
  };
  [[nodiscard]] Result<void> begin_kernel(const TraceHeader& header) override;
  [[nodiscard]] Result<void> consume(const TraceChunk& chunk) override;

  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }

 private:
  std::vector<Kernel> kernels_;
};

// Writes the trace file format. The file appears under its name only when end() has succeeded.
class TraceFileWriter final : public TraceSink {
 public:
  explicit TraceFileWriter(std::filesystem::path path, int compression_level = 3);
  ~TraceFileWriter() override;
  TraceFileWriter(const TraceFileWriter&) = delete;
  TraceFileWriter& operator=(const TraceFileWriter&) = delete;
  [[nodiscard]] Result<void> begin_kernel(const TraceHeader& header) override;
  [[nodiscard]] Result<void> consume(const TraceChunk& chunk) override;
  [[nodiscard]] Result<void> end_kernel() override;
  [[nodiscard]] Result<void> end() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Replays a trace file into `sink`: every kernel, every chunk, end. Truncated and damaged files are
// errors.
[[nodiscard]] Result<void> read_trace(const std::filesystem::path& path, TraceSink& sink);

// What an imported kernel contained.
struct ImportedKernel {
  std::string kernel;
  std::uint64_t blocks = 0;
  std::uint64_t warps = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t memory_accesses = 0;  // warp instructions with addresses
};

// Replays a trace in Accel-Sim's text format (tracer versions from 3 on: "-kernel name",
// "#BEGIN_TB", one line per instruction), or all kernels of a kernelslist.g, one after the other.
// Instructions of the machine appear as they are, in the order of their addresses; global, local
// and shared accesses become events. The file is read twice, piece by piece. Errors name file and
// line. A compressed file is an error. docs/trace-format.md says what is taken over.
[[nodiscard]] Result<std::vector<ImportedKernel>> read_accelsim_trace(
    const std::filesystem::path& path, TraceSink& sink);

// Whether a file that begins so is for read_accelsim_trace. Such a file is a kernel, a list of
// kernels, or one of these compressed by xz or gzip, for which read_accelsim_trace says what to do.
// 4 KiB are enough.
[[nodiscard]] bool begins_accelsim_trace(std::string_view beginning);

}  // namespace demarc::emulate
