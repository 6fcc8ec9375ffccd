#include <algorithm>
#include <map>
#include <optional>

#include "demarc/sim/memory/emulated.hpp"

namespace demarc::sim::memory {

namespace step_detail {

// What an instruction says of the caches.
struct CacheUse {
  bool past_l1 = false;
  bool streams = false;
};

}  // namespace step_detail

namespace {

using step_detail::CacheUse;

using emulate::TraceInstruction;

// Of an imported trace: "LDG.E R2, R4".
bool is_machine_code(std::string_view text) {
  return !text.empty() && text.front() >= 'A' && text.front() <= 'Z';
}

// The words behind the opcode, in operands alone too.
std::vector<std::string_view> machine_registers(std::string_view operands) {
  constexpr std::string_view between = " ,{}_";
  std::vector<std::string_view> names;
  for (std::size_t at = operands.find_first_not_of(between); at != std::string_view::npos;) {
    const std::size_t end = std::min(operands.find_first_of(between, at), operands.size());
    names.push_back(operands.substr(at, end - at));
    at = operands.find_first_not_of(between, end);
  }
  return names;
}

// The register names in an instruction as written, with its guard.
std::vector<std::string_view> registers_in(std::string_view text) {
  if (is_machine_code(text))
    return machine_registers(text.substr(std::min(text.find(' '), text.size())));
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
  const std::string_view written = operands.substr(0, vector ? operands.find('}') : comma);
  return is_machine_code(text) ? machine_registers(written) : registers_in(written);
}

// The threads of the block wait for each other.
bool is_barrier(std::string_view text) {
  if (!is_machine_code(text)) return text.starts_with("bar.") || text.starts_with("barrier.");
  const std::string_view opcode = text.substr(0, text.find(' '));
  return opcode == "BAR" || (opcode.starts_with("BAR.") && !opcode.starts_with("BAR.ARV"));
}

bool has_modifier(std::string_view opcode, std::string_view name) {
  for (std::size_t at = opcode.find(name); at != std::string_view::npos;
       at = opcode.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == opcode.size() || opcode[end] == '.' || opcode[end] == ':') return true;
  }
  return false;
}

// PTX ISA 8.5, "Cache Operators" and "Cache Eviction Priority Hints"; of machine code the modifiers
// that ptxas makes of them.
CacheUse cache_use(std::string_view text) {
  const std::string_view opcode = text.substr(0, text.find(' '));
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return has_modifier(opcode, name); });
  };
  if (is_machine_code(text)) return {any({".GPU", ".SYS", ".BYPASS", ".NA"}), any({".EF"})};
  return {any({".cg", ".cv", ".volatile", ".relaxed", ".acquire", ".mmio", ".L1::no_allocate"}),
          any({".cs", ".L1::evict_first", ".L2::evict_first"})};
}

// An atomic whose result nobody gets.
bool is_reduction(std::string_view text) {
  return text.starts_with("red.") || text.starts_with("RED.") || text.starts_with("REDG.");
}

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

constexpr std::uint32_t no_use = ~std::uint32_t{0};

}  // namespace

namespace step_detail {

// What of an instruction matters here.
struct Code {
  std::vector<std::uint32_t> first_use;  // of a load: where a register it writes is used
  std::vector<std::uint8_t> barrier;
  std::vector<std::uint8_t> reduces;
  std::vector<CacheUse> cache_use;
  std::vector<std::uint32_t> special;  // barriers and first uses before index i
};

struct WarpBuilder {
  PackedSteps steps;
  std::uint32_t at = 0;  // instructions of the run in hand not yet counted: [at, end)
  std::uint32_t end = 0;
  std::uint32_t instructions = 0;
  std::uint32_t shared_rows = 0;
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
    code.barrier.push_back(is_barrier(text) ? 1 : 0);
    code.reduces.push_back(is_reduction(text) ? 1 : 0);
    code.cache_use.push_back(cache_use(text));
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

// A step's at which it ends; one access has 1024 at most.
constexpr std::uint32_t most_shared_rows = 60000;

struct StepSink::State {
  OnKernel on_kernel;
  OnBlock on_block;
  emulate::TraceHeader header;
  step_detail::Code code;
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
    step.instructions = builder.instructions;
    step.shared_rows = static_cast<std::uint16_t>(builder.shared_rows);
    builder.shared_rows = 0;
    builder.wait = false;
    builder.instructions = 0;
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
    const TraceInstruction& instruction = header.instructions[i];
    if (event.space == emulate::MemorySpace::shared) {
      builder.shared_rows += shared_rows(event, instruction.bytes);
      if (builder.shared_rows >= most_shared_rows) emit_work(builder, StepKind::work);
    }
    if (event.space != emulate::MemorySpace::global) return;
    step.count = coalesce(event.addresses, event.mask, instruction.bytes, step.lines);
    StepKind kind = StepKind::load;
    if (instruction.kind == emulate::AccessKind::store) kind = StepKind::store;
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
  constexpr std::uint64_t most_blocks = 0xffffffffU;
  constexpr std::uint64_t most_threads = 1024;
  const std::uint64_t blocks = product(header.grid, most_blocks);
  const std::uint64_t threads = product(header.block, most_threads);
  if (blocks == 0 || blocks > most_blocks || threads == 0 || threads > most_threads)
    return invalid_input("kernel '{}': no grid of blocks of 1 to 1024 threads", header.kernel);
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
    return invalid_input("kernel '{}': block {} comes where block {} of {} must",
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
