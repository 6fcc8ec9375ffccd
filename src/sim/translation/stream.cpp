// Turns access streams from outside into applications: warps in pairs, with their lines in one
// array.
#include "demarc/sim/translation/stream.hpp"

#include <algorithm>
#include <unordered_map>

#include "demarc/base/rounding.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/ir.hpp"
#include "demarc/sim/memory/emulated.hpp"

namespace demarc::sim::translation {
namespace stream_detail {

constexpr std::uint32_t warps_per_wave = 2;

// For the addresses as the stream has them.
using StreamPage = Index<struct StreamPageTag, std::uint64_t>;

// An instruction of a wave; its lines follow each other in one array of all of them.
struct StoredInstruction {
  std::uint64_t first_line = 0;
  std::array<std::uint64_t, 2> untouched{};
  std::uint32_t alu = 0;
  std::uint32_t shared_rows = 0;
  std::uint8_t lines = 0;
  bool store = false;
  bool partial = false;
  bool wait = false;
  bool barrier = false;
};

struct StoredKernel {
  KernelShape shape;
  std::uint64_t first_wave = 0;  // into waves: instructions of wave w are [waves[w], waves[w + 1])
  std::uint32_t groups_added = 0;
};

class StreamApplication final : public Application {
 public:
  StreamOptions options;
  std::vector<StoredKernel> stored;
  std::vector<KernelShape> shapes;
  std::vector<std::uint64_t> waves{0};
  std::vector<StoredInstruction> instructions;
  std::vector<LineNumber> lines;
  std::vector<Address> pages;

  [[nodiscard]] std::string_view name() const override { return options.name; }
  [[nodiscard]] std::uint64_t bytes() const override { return pages.size() * options.page_bytes; }
  [[nodiscard]] Split native_split() const override { return options.split; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return shapes; }
  [[nodiscard]] std::span<const Address> page_addresses() const override { return pages; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    const StoredKernel& kernel = stored[at.kernel];
    const std::uint64_t wave =
        kernel.first_wave + std::uint64_t{at.group} * kernel.shape.waves_per_group + at.wave;
    if (waves[wave] + at.index >= waves[wave + 1]) return false;
    const StoredInstruction& stored_instruction = instructions[waves[wave] + at.index];
    out.clear();
    out.store = stored_instruction.store;
    out.partial = stored_instruction.partial;
    out.wait = stored_instruction.wait;
    out.barrier = stored_instruction.barrier;
    out.alu = stored_instruction.alu;
    out.shared_rows = stored_instruction.shared_rows;
    out.untouched = stored_instruction.untouched;
    out.lines = stored_instruction.lines;
    std::copy_n(lines.begin() + static_cast<std::ptrdiff_t>(stored_instruction.first_line),
                out.lines, out.line.begin());
    return true;
  }
};

}  // namespace stream_detail

using stream_detail::StoredInstruction;
using stream_detail::StoredKernel;
using stream_detail::StreamApplication;
using stream_detail::StreamPage;
using stream_detail::warps_per_wave;

struct StreamBuilder::State {
  std::unique_ptr<StreamApplication> made = std::make_unique<StreamApplication>();
  PageSize page_size;
  // Pages of the stream's addresses, numbered in order of appearance until finish().
  std::unordered_map<StreamPage, PageNumber> numbers;
  PerIndex<PageNumber, StreamPage> appeared;
  StreamPage last_page{~std::uint64_t{0}};
  PageNumber last_number;

  explicit State(const StreamOptions& options) : page_size(options.page_bytes) {}

  LineNumber line_of(Address address) {
    const StreamPage page(address.raw() / made->options.page_bytes);
    if (page != last_page) {
      const auto [found, inserted] = numbers.emplace(page, appeared.next_key());
      if (inserted) appeared.push_back(page);
      last_page = page;
      last_number = found->second;
    }
    return page_size.line_in(
        last_number,
        static_cast<std::uint32_t>(address.raw() % made->options.page_bytes / line_bytes));
  }

  [[nodiscard]] bool left_out(Address address) const {
    return std::any_of(
        made->options.left_out.begin(), made->options.left_out.end(),
        [&](const auto& range) { return address >= range.first && address < range.second; });
  }

  // The 64-byte lines of a step, each once, in its order; lines that another warp has touched are
  // looked for where lanes of both are coalesced.
  void touch(const memory::Step& step, MemoryInstruction& out) {
    const std::uint32_t first_own = made->options.coalesced_lanes < wave_lanes ? out.lines : 0;
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const memory::LineEntry entry = step.lines[i];
      for (std::uint32_t half = 0; half < 2; ++half) {
        const std::uint32_t sectors = (entry.sectors() >> (2 * half)) & 3U;
        if (sectors == 0) continue;
        const Address first =
            entry.line() + std::uint64_t{2 * half + (sectors == 2 ? 1U : 0U)} * sector_bytes;
        if (left_out(first)) continue;
        const LineNumber number = line_of(first);
        const auto end = out.line.begin() + out.lines;
        const auto found = std::find(out.line.begin() + first_own, end, number);
        const auto bit = std::uint64_t{1} << (found - out.line.begin());
        if (found == end) {
          *found = number;
          ++out.lines;
          for (auto& half_untouched : out.untouched) half_untouched |= bit;
        }
        for (std::uint32_t sector = 0; sector < 2; ++sector) {
          if ((sectors >> sector & 1U) != 0) out.untouched[sector] &= ~bit;
        }
      }
    }
  }

  void store(const MemoryInstruction& instruction) {
    StoredInstruction stored;
    stored.first_line = made->lines.size();
    stored.alu = instruction.alu;
    stored.shared_rows = instruction.shared_rows;
    stored.untouched = instruction.untouched;
    stored.lines = static_cast<std::uint8_t>(instruction.lines);
    stored.store = instruction.store;
    stored.partial = instruction.partial;
    stored.wait = instruction.wait;
    stored.barrier = instruction.barrier;
    made->lines.insert(made->lines.end(), instruction.line.begin(),
                       instruction.line.begin() + instruction.lines);
    made->instructions.push_back(stored);
  }

  void add_wave(const memory::PackedBlock& block, std::size_t first, std::uint32_t barriers);
};

namespace {

bool is_access(const memory::Step& step) {
  return step.kind != memory::StepKind::barrier && step.kind != memory::StepKind::work &&
         step.kind != memory::StepKind::end;
}

// Atomics go to the owner's L2 like stores, and their answer comes back with the acknowledgement.
bool goes_as_store(const memory::Step& step) {
  return step.kind != memory::StepKind::load;
}

std::uint32_t barriers_of(const memory::PackedSteps& steps) {
  std::uint32_t count = 0;
  memory::Step step;
  for (std::size_t at = 0; steps.read(at, step), step.kind != memory::StepKind::end;)
    count += step.kind == memory::StepKind::barrier ? 1 : 0;
  return count;
}

// A warp's steps one by one; work alone is added to what follows.
class WarpReader {
 public:
  explicit WarpReader(const memory::PackedSteps* steps) : steps_(steps) { advance(); }
  void advance() {
    alu = shared_rows = 0;
    wait = false;
    if (steps_ == nullptr) return;
    do {
      steps_->read(at_, step);
      alu += step.instructions;
      shared_rows += step.shared_rows;
      wait = wait || step.wait;
    } while (step.kind == memory::StepKind::work);
  }
  [[nodiscard]] bool ended() const {
    return steps_ == nullptr || step.kind == memory::StepKind::end;
  }

  memory::Step step;
  std::uint32_t alu = 0;
  std::uint32_t shared_rows = 0;
  bool wait = false;

 private:
  const memory::PackedSteps* steps_;
  std::size_t at_ = 0;
};

}  // namespace

// Two warps in step: what both do at the same place of their streams is one instruction of 64
// lanes. A warp that has left the block counts as having arrived at its further barriers.
void StreamBuilder::State::add_wave(const memory::PackedBlock& block, std::size_t first,
                                    std::uint32_t barriers) {
  WarpReader one(&block.warps[first]);
  WarpReader two(first + 1 < block.warps.size() ? &block.warps[first + 1] : nullptr);
  MemoryInstruction out;
  std::uint32_t met = 0;
  while (!one.ended() || !two.ended()) {
    out.clear();
    const auto same = [](const WarpReader& a, const WarpReader& b) {
      return is_access(a.step) == is_access(b.step) &&
             (!is_access(a.step) || goes_as_store(a.step) == goes_as_store(b.step));
    };
    // Warps that differ: accesses before barriers, so that both come to the same barrier.
    const bool fit = one.step.count + two.step.count <= wave_lanes / 2;
    const bool both = !one.ended() && !two.ended() && same(one, two) && fit;
    const bool use_one =
        !one.ended() && (both || two.ended() || is_access(one.step) || !is_access(two.step));
    const bool use_two = !two.ended() && (both || !use_one);
    for (WarpReader* warp : {use_one ? &one : nullptr, use_two ? &two : nullptr}) {
      if (warp == nullptr) continue;
      out.alu = std::max(out.alu, warp->alu);
      out.shared_rows += warp->shared_rows;
      out.wait = out.wait || warp->wait;
      if (is_access(warp->step)) {
        out.store = goes_as_store(warp->step);
        out.partial = out.partial || warp->step.partial;
        touch(warp->step, out);
      } else {
        out.barrier = true;
      }
      warp->advance();
    }
    if (out.barrier) ++met;
    if (out.barrier || out.lines > 0) store(out);
  }
  out.clear();
  out.barrier = true;
  for (; met < barriers; ++met) store(out);
  made->waves.push_back(made->instructions.size());
}

StreamBuilder::StreamBuilder(StreamOptions options) : state_(std::make_unique<State>(options)) {
  state_->made->options = std::move(options);
}
StreamBuilder::~StreamBuilder() = default;

void StreamBuilder::begin_kernel(const memory::KernelShape& shape, std::uint32_t blocks_x) {
  StreamApplication& made = *state_->made;
  StoredKernel kernel;
  kernel.shape.groups_x = blocks_x;
  kernel.shape.groups_y = shape.blocks / std::max(blocks_x, 1U);
  kernel.shape.waves_per_group = ceil_div(shape.warps(), warps_per_wave);
  kernel.shape.vgprs = made.options.vgprs;
  kernel.shape.sgprs = made.options.sgprs;
  kernel.shape.lds_bytes = shape.shared_bytes;
  kernel.first_wave = made.waves.size() - 1;
  made.stored.push_back(kernel);
}

Result<void> StreamBuilder::add_block(const memory::PackedBlock& block) {
  StreamApplication& made = *state_->made;
  StoredKernel& kernel = made.stored.back();
  if (kernel.groups_added == kernel.shape.groups())
    return invalid_input("{}: kernel {} has more blocks than its grid of {}", made.options.name,
                         made.stored.size() - 1, kernel.shape.groups());
  ++kernel.groups_added;
  std::uint32_t barriers = 0;
  for (const auto& warp : block.warps) barriers = std::max(barriers, barriers_of(warp));
  for (std::uint32_t wave = 0; wave < kernel.shape.waves_per_group; ++wave) {
    if (wave * warps_per_wave < block.warps.size()) {
      state_->add_wave(block, std::size_t{wave} * warps_per_wave, barriers);
    } else {
      made.waves.push_back(made.instructions.size());
    }
  }
  if (made.lines.size() > made.options.max_lines) {
    return invalid_input("{}: more than {} line accesses; take a smaller launch", made.options.name,
                         made.options.max_lines);
  }
  return {};
}

Result<std::unique_ptr<Application>> StreamBuilder::finish() {
  StreamApplication& made = *state_->made;
  for (std::size_t k = 0; k < made.stored.size(); ++k) {
    const StoredKernel& kernel = made.stored[k];
    if (kernel.groups_added != kernel.shape.groups())
      return invalid_input("{}: kernel {} has {} blocks of the {} of its grid", made.options.name,
                           k, kernel.groups_added, kernel.shape.groups());
    made.shapes.push_back(kernel.shape);
  }
  if (made.lines.empty())
    return invalid_input("{}: no kernel touches global memory", made.options.name);
  const std::uint64_t pages = state_->appeared.size();
  if (pages * state_->page_size.lines() > 0xffffffffULL)
    return invalid_input("{}: {} pages of {} bytes are more than this simulation holds",
                         made.options.name, pages, made.options.page_bytes);
  const auto& appeared = state_->appeared;
  std::vector<StreamPage> sorted(appeared.begin(), appeared.end());
  std::sort(sorted.begin(), sorted.end());
  PerIndex<PageNumber, PageNumber> place;
  for (const StreamPage page : appeared)
    place.push_back(
        PageNumber(std::lower_bound(sorted.begin(), sorted.end(), page) - sorted.begin()));
  const PageSize& size = state_->page_size;
  for (LineNumber& line : made.lines)
    line = size.line_in(place[size.page_of(line)], size.within(line));
  for (const StreamPage page : sorted) {
    made.pages.emplace_back(page.raw() * made.options.page_bytes);
  }
  return std::unique_ptr<Application>(std::move(state_->made));
}

Result<std::unique_ptr<Application>> application_of_stream(const memory::PackedLaunch& launch,
                                                           const StreamOptions& options) {
  StreamBuilder builder(options);
  for (const memory::PackedKernel& kernel : launch.kernels) {
    memory::KernelShape shape = kernel.shape;
    shape.blocks = static_cast<std::uint32_t>(kernel.blocks.size());
    builder.begin_kernel(shape, shape.blocks);
    for (const auto& block : kernel.blocks) DEMARC_CHECK(builder.add_block(*block));
  }
  return builder.finish();
}

Result<std::unique_ptr<Application>> application_of_launch(const ptx::Module& module,
                                                           const gpu::Launch& launch,
                                                           const StreamOptions& options,
                                                           unsigned threads) {
  for (const gpu::KernelLaunch& one : launch.kernels) {
    const ptx::Function* const function = module.find_function(one.kernel);
    if (function == nullptr || function->directive("blocksareclusters") == nullptr) continue;
    return invalid_input(
        "{}:{}: kernel '{}' is launched in a grid of clusters (.blocksareclusters), which the "
        "simulation does not support",
        module.source_name, function->line, one.kernel);
  }
  StreamBuilder builder(options);
  std::size_t kernel = 0;
  memory::StepSink sink(
      [&](const memory::KernelShape& shape) -> Result<void> {
        builder.begin_kernel(shape, launch.kernels[kernel++].grid.x);
        return {};
      },
      [&](const std::shared_ptr<const memory::PackedBlock>& block) {
        return builder.add_block(*block);
      });
  emulate::Options run;
  run.check_uninitialised = false;
  run.check_races = false;
  run.threads = threads;
  DEMARC_TRY(const auto outcome, emulate::run(module, launch, run, &sink));
  if (!outcome.findings.empty())
    return check_failed("{}", emulate::describe(outcome.findings.front(), launch.ptx));
  return builder.finish();
}

}  // namespace demarc::sim::translation
