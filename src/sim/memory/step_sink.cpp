// Turns the trace of a kernel into the steps of its warps, block by block.
#include <algorithm>
#include <bit>
#include <optional>

#include "demarc/sim/memory/emulated.hpp"
#include "traced_code.hpp"

namespace demarc::sim::memory {

namespace {

// Rows of its banks that a warp's access to shared memory takes, one a cycle: lanes that want
// different words of one bank wait for each other; 8 bytes a lane take a half warp at a time, 16 a
// quarter.
std::uint32_t shared_rows(const emulate::AccessEvent& event, std::uint32_t bytes) {
  constexpr std::uint32_t banks = 32;
  constexpr std::uint32_t word = 4;
  const std::uint32_t words = std::max(bytes / word, 1U);
  const std::uint32_t lanes = std::max(banks / words, 1U);
  std::uint32_t rows = 0;
  for (std::uint32_t first = 0; first < 32; first += lanes) {
    std::array<std::array<std::uint64_t, 32>, banks> seen{};  // words of each bank
    std::array<std::uint32_t, banks> count{};
    std::uint32_t most = 0;
    for (std::uint32_t lane = first; lane < first + lanes; ++lane) {
      if ((event.mask >> lane & 1U) == 0) continue;
      for (std::uint32_t i = 0; i < words; ++i) {
        const std::uint64_t at = event.addresses[lane] / word + i;
        const auto bank = static_cast<std::uint32_t>(at % banks);
        const auto end = seen[bank].begin() + count[bank];
        if (std::find(seen[bank].begin(), end, at) != end) continue;
        seen[bank][count[bank]++] = at;
        most = std::max(most, count[bank]);
      }
    }
    rows += most;
  }
  return rows;
}

// Whether a store leaves bytes of its sectors as they were. Lanes write aligned words of one size.
bool fills_in_part(const emulate::AccessEvent& event, std::uint32_t bytes, const Step& step) {
  std::uint64_t sectors = 0;
  for (std::uint32_t i = 0; i < step.count; ++i)
    sectors += static_cast<std::uint64_t>(std::popcount(step.lines[i].sectors()));
  std::array<std::uint64_t, 32> written{};
  std::uint32_t count = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if ((event.mask >> lane & 1U) != 0) written[count++] = event.addresses[lane];
  }
  std::sort(written.begin(), written.begin() + count);
  const auto different = std::unique(written.begin(), written.begin() + count) - written.begin();
  return static_cast<std::uint64_t>(different) * bytes < sectors * sector_bytes;
}

}  // namespace

namespace step_detail {

struct WarpBuilder {
  PackedSteps steps;
  std::uint32_t at = 0;  // instructions of the run in hand not yet counted: [at, end)
  std::uint32_t end = 0;
  std::uint32_t instructions = 0;
  std::uint32_t floats = 0;
  std::uint32_t shared_rows = 0;
  bool wait = false;
  bool partial = false;
  std::vector<std::uint32_t> uses;  // of loads under way
};
}  // namespace step_detail

using step_detail::WarpBuilder;

// A step's at which it ends; one access has 1024 at most.
constexpr std::uint32_t max_shared_rows = 60000;

struct StepSink::State {
  OnKernel on_kernel;
  OnBlock on_block;
  emulate::TraceHeader header;
  TracedCode code;
  std::vector<step_detail::WarpBuilder> warps;
  std::uint32_t blocks = 0;
  std::uint32_t block = 0;               // the next one that must end
  std::uint32_t warp = 0;                // carried from chunk to chunk
  std::optional<std::uint32_t> no_warp;  // one that the block does not have
  Step step;

  void emit(WarpBuilder& builder, StepKind kind, CacheUse use) {
    step.kind = kind;
    step.wait = builder.wait;
    step.past_l1 = use.past_l1 && kind == StepKind::load;
    step.streams = use.streams;
    step.partial = builder.partial;
    builder.partial = false;
    step.instructions = builder.instructions;
    step.floats = builder.floats;
    step.shared_rows = static_cast<std::uint16_t>(builder.shared_rows);
    builder.shared_rows = 0;
    builder.wait = false;
    builder.instructions = 0;
    builder.floats = 0;
    builder.steps.add(step);
  }
  void emit_work(WarpBuilder& builder, StepKind kind) {
    step.count = 0;
    emit(builder, kind, {});
  }

  // Before instruction i: does a load under way deliver what it needs?
  void wait_for_use(WarpBuilder& builder, std::uint32_t i) {
    if (std::find(builder.uses.begin(), builder.uses.end(), i) == builder.uses.end()) return;
    if (builder.instructions > 0 || builder.wait) emit_work(builder, StepKind::work);
    builder.wait = true;
    builder.uses.clear();
  }

  void count_until(WarpBuilder& builder, std::uint32_t upto) {
    if (upto <= builder.at) return;
    if (code.special[upto] == code.special[builder.at]) {
      builder.instructions += upto - builder.at;
      builder.floats += code.floats[upto] - code.floats[builder.at];
      builder.at = upto;
      return;
    }
    for (; builder.at < upto; ++builder.at) {
      if (code.special[builder.at + 1] != code.special[builder.at]) {
        wait_for_use(builder, builder.at);
      }
      ++builder.instructions;
      builder.floats += code.floats[builder.at + 1] - code.floats[builder.at];
      if (code.barrier[builder.at] != 0) emit_work(builder, StepKind::barrier);
    }
  }

  bool has_warp(std::uint32_t number) {
    if (number < warps.size()) return true;
    no_warp = number;
    return false;
  }

  void run(const emulate::RunEvent& event) {
    if (!has_warp(event.warp)) return;
    WarpBuilder& builder = warps[event.warp];
    count_until(builder, builder.end);
    builder.at = event.first;
    builder.end = event.first + event.count;
  }

  void access(const emulate::AccessEvent& event) {
    if (event.mask == 0 || !has_warp(event.warp)) return;
    WarpBuilder& builder = warps[event.warp];
    const std::uint32_t i = event.instruction;
    count_until(builder, i);
    wait_for_use(builder, i);
    ++builder.instructions;
    builder.at = i + 1;
    const emulate::TraceInstruction& instruction = header.instructions[i];
    if (event.space == emulate::MemorySpace::shared) {
      builder.shared_rows += shared_rows(event, instruction.bytes);
      if (builder.shared_rows >= max_shared_rows) emit_work(builder, StepKind::work);
    }
    if (event.space != emulate::MemorySpace::global) return;
    step.count = coalesce(event.addresses, event.mask, instruction.bytes, step.lines);
    StepKind kind = StepKind::load;
    if (instruction.kind == emulate::AccessKind::store) {
      kind = StepKind::store;
      builder.partial = fills_in_part(event, instruction.bytes, step);
    }
    if (instruction.kind == emulate::AccessKind::atomic) {
      kind = code.reduces[i] != 0 ? StepKind::reduce : StepKind::atomic;
    }
    emit(builder, kind, code.cache_use[i]);
    if ((kind == StepKind::load || kind == StepKind::atomic) && code.first_use[i] != no_use) {
      builder.uses.push_back(code.first_use[i]);
    }
  }

  Result<void> end_block() {
    auto packed = std::make_shared<PackedBlock>();
    for (WarpBuilder& builder : warps) {
      count_until(builder, builder.end);
      if (builder.instructions > 0 || builder.wait) emit_work(builder, StepKind::work);
      packed->warps.push_back(std::move(builder.steps));
      builder = WarpBuilder{};
    }
    warp = 0;
    ++this->block;
    return on_block(std::move(packed));
  }
};

StepSink::StepSink(OnKernel on_kernel, OnBlock on_block) : state_(std::make_unique<State>()) {
  state_->on_kernel = std::move(on_kernel);
  state_->on_block = std::move(on_block);
}
StepSink::~StepSink() = default;

Result<void> StepSink::begin_kernel(const emulate::TraceHeader& header) {
  const auto product = [](const std::array<std::uint32_t, 3>& sizes, std::uint64_t most) {
    std::uint64_t all = 1;
    for (const std::uint32_t size : sizes) all = all > most ? all : all * size;
    return all;
  };
  constexpr std::uint64_t max_blocks = 0xffffffffU;
  constexpr std::uint64_t max_threads = 1024;
  const std::uint64_t blocks = product(header.grid, max_blocks);
  const std::uint64_t threads = product(header.block, max_threads);
  if (blocks == 0 || blocks > max_blocks || threads == 0 || threads > max_threads)
    return invalid_input(
        "kernel '{}': its grid is empty or too large, or its blocks do not have 1 to 1024 threads",
        header.kernel);
  if (header.shared_bytes > 1U << 20U) {
    return invalid_input("kernel '{}': a block has at most 1 MiB of shared memory", header.kernel);
  }
  state_->header = header;
  state_->code = study_code(state_->header.instructions);
  KernelShape shape;
  shape.blocks = state_->blocks = static_cast<std::uint32_t>(blocks);
  shape.threads = static_cast<std::uint32_t>(threads);
  shape.shared_bytes = header.shared_bytes;
  state_->warps.clear();
  state_->warps.resize(shape.warps());
  state_->warp = state_->block = 0;
  return state_->on_kernel(shape);
}

Result<void> StepSink::consume(const emulate::TraceChunk& chunk) {
  if (chunk.block != state_->block || state_->block == state_->blocks) {
    return invalid_input("kernel '{}': block {} comes where block {} of {} is due",
                         state_->header.kernel, chunk.block, state_->block, state_->blocks);
  }
  emulate::visit_events(chunk, state_->warp, *state_);
  if (state_->no_warp) {
    return invalid_input("kernel '{}', block {}: warp {} of {}", state_->header.kernel, chunk.block,
                         *state_->no_warp, state_->warps.size());
  }
  if (chunk.last) return state_->end_block();
  return {};
}

Result<void> StepSink::end_kernel() {
  if (state_->block == state_->blocks) return {};
  return invalid_input("kernel '{}': the trace has {} of its {} blocks", state_->header.kernel,
                       state_->block, state_->blocks);
}

}  // namespace demarc::sim::memory
