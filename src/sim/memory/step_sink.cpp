#include <algorithm>
#include <map>

#include "demarc/sim/memory/emulated.hpp"

namespace demarc::sim::memory {
namespace {

using emulate::TraceInstruction;

// The register names in an instruction as written, without its guard.
std::vector<std::string_view> registers_in(std::string_view text) {
  std::vector<std::string_view> names;
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at)) {
    std::size_t end = at + 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      ++end;
    }
    names.push_back(text.substr(at, end - at));
    at = end;
  }
  return names;
}

std::string_view without_guard(std::string_view text) {
  if (text.empty() || text.front() != '@') return text;
  const auto space = text.find(' ');
  return space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
}

// What a load writes: its first operand, which may be a vector in braces.
std::vector<std::string_view> written_by(std::string_view text) {
  text = without_guard(text);
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {};
  const std::string_view operands = text.substr(space + 1);
  const auto brace = operands.find('{');
  const auto comma = operands.find(',');
  const bool vector = brace != std::string_view::npos && brace < comma;
  return registers_in(operands.substr(0, vector ? operands.find('}') : comma));
}

constexpr std::uint32_t no_use = ~std::uint32_t{0};

}  // namespace

namespace step_detail {

// What of an instruction matters here.
struct Code {
  std::vector<std::uint32_t> first_use;  // of a load: where a register it writes is used
  std::vector<std::uint8_t> barrier;
  std::vector<std::uint8_t> reduces;
  std::vector<std::uint32_t> special;  // barriers and first uses before index i
};

struct WarpBuilder {
  PackedSteps steps;
  std::uint32_t at = 0;  // instructions of the run in hand not yet counted: [at, end)
  std::uint32_t end = 0;
  std::uint32_t instructions = 0;
  bool wait = false;
  std::vector<std::uint32_t> uses;  // of loads under way
};
}  // namespace step_detail

namespace {

using step_detail::Code;

Code study_code(const std::vector<TraceInstruction>& instructions) {
  std::map<std::string_view, std::vector<std::uint32_t>> uses;
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    for (const std::string_view name : registers_in(instructions[i].text)) uses[name].push_back(i);
  }
  Code code;
  code.first_use.assign(instructions.size(), no_use);
  std::vector<std::uint8_t> marked(instructions.size(), 0);
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    const TraceInstruction& instruction = instructions[i];
    const std::string_view text = without_guard(instruction.text);
    code.barrier.push_back(text.starts_with("bar.") || text.starts_with("barrier.") ? 1 : 0);
    code.reduces.push_back(text.starts_with("red.") ? 1 : 0);
    marked[i] = std::max(marked[i], code.barrier[i]);
    if (instruction.kind != emulate::AccessKind::load &&
        instruction.kind != emulate::AccessKind::atomic) {
      continue;
    }
    // The next use in the text; else the first one, which a loop leads back to.
    for (const std::string_view name : written_by(instruction.text)) {
      const auto& places = uses[name];
      const auto next = std::upper_bound(places.begin(), places.end(), i);
      const std::uint32_t use = next != places.end() ? *next : places.front();
      if (use == i) continue;
      const bool nearer = code.first_use[i] == no_use ||
                          (use > i && (code.first_use[i] < i || use < code.first_use[i]));
      if (nearer) code.first_use[i] = use;
    }
    if (code.first_use[i] != no_use) marked[code.first_use[i]] = 1;
  }
  code.special.assign(instructions.size() + 1, 0);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    code.special[i + 1] = code.special[i] + marked[i];
  }
  return code;
}

}  // namespace

using step_detail::WarpBuilder;

struct StepSink::State {
  OnKernel on_kernel;
  OnBlock on_block;
  emulate::TraceHeader header;
  step_detail::Code code;
  std::vector<step_detail::WarpBuilder> warps;
  std::uint32_t warp = 0;  // carried from chunk to chunk
  Step step;

  void emit(WarpBuilder& builder, StepKind kind) {
    step.kind = kind;
    step.wait = builder.wait;
    step.instructions = builder.instructions;
    builder.wait = false;
    builder.instructions = 0;
    builder.steps.add(step);
  }
  void emit_work(WarpBuilder& builder, StepKind kind) {
    step.count = 0;
    emit(builder, kind);
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
      builder.at = upto;
      return;
    }
    for (; builder.at < upto; ++builder.at) {
      if (code.special[builder.at + 1] != code.special[builder.at]) {
        wait_for_use(builder, builder.at);
      }
      ++builder.instructions;
      if (code.barrier[builder.at] != 0) emit_work(builder, StepKind::barrier);
    }
  }

  void run(const emulate::RunEvent& event) {
    WarpBuilder& builder = warps[event.warp];
    count_until(builder, builder.end);
    builder.at = event.first;
    builder.end = event.first + event.count;
  }

  void access(const emulate::AccessEvent& event) {
    WarpBuilder& builder = warps[event.warp];
    const std::uint32_t i = event.instruction;
    count_until(builder, i);
    wait_for_use(builder, i);
    ++builder.instructions;
    builder.at = i + 1;
    if (event.space != emulate::MemorySpace::global) return;
    const TraceInstruction& instruction = header.instructions[i];
    step.count = coalesce(event.addresses, event.mask, instruction.bytes, step.lines);
    StepKind kind = StepKind::load;
    if (instruction.kind == emulate::AccessKind::store) kind = StepKind::store;
    if (instruction.kind == emulate::AccessKind::atomic) {
      kind = code.reduces[i] != 0 ? StepKind::reduce : StepKind::atomic;
    }
    emit(builder, kind);
    if ((kind == StepKind::load || kind == StepKind::atomic) && code.first_use[i] != no_use) {
      builder.uses.push_back(code.first_use[i]);
    }
  }

  Result<void> end_block() {
    auto block = std::make_shared<PackedBlock>();
    for (WarpBuilder& builder : warps) {
      count_until(builder, builder.end);
      if (builder.instructions > 0 || builder.wait) emit_work(builder, StepKind::work);
      block->warps.push_back(std::move(builder.steps));
      builder = WarpBuilder{};
    }
    warp = 0;
    return on_block(std::move(block));
  }
};

StepSink::StepSink(OnKernel on_kernel, OnBlock on_block) : state_(std::make_unique<State>()) {
  state_->on_kernel = std::move(on_kernel);
  state_->on_block = std::move(on_block);
}
StepSink::~StepSink() = default;

Result<void> StepSink::begin_kernel(const emulate::TraceHeader& header) {
  state_->header = header;
  state_->code = study_code(state_->header.instructions);
  KernelShape shape;
  shape.blocks = header.grid[0] * header.grid[1] * header.grid[2];
  shape.threads = header.block[0] * header.block[1] * header.block[2];
  shape.shared_bytes = header.shared_bytes;
  state_->warps.clear();
  state_->warps.resize(shape.warps());
  state_->warp = 0;
  return state_->on_kernel(shape);
}

Result<void> StepSink::consume(const emulate::TraceChunk& chunk) {
  emulate::visit_events(chunk, state_->warp, *state_);
  if (chunk.last) return state_->end_block();
  return {};
}

}  // namespace demarc::sim::memory
