// Turns the trace of one kernel after the other into runs.
#include "follow/run_collector.hpp"

#include <algorithm>
#include <bit>

#include "demarc/ptx/ir.hpp"

namespace demarc::locality {
namespace {

constexpr std::uint16_t no_access = 0xffff;

}  // namespace

TexelAccesses texel_accesses(const ptx::Module& module, const gpu::Launch& launch) {
  TexelAccesses found;
  const bool any =
      std::any_of(launch.images.begin(), launch.images.end(),
                  [](const gpu::Image& image) { return image.shape != gpu::ImageShape::linear; });
  if (!any) return found;
  for (const ptx::Function& function : module.functions)
    for (const ptx::Instruction& instruction : function.body.instructions)
      if (ptx::info(instruction.opcode).group == ptx::OpcodeGroup::texture)
        found.emplace(instruction.line, module.text_of(instruction));
  return found;
}

Result<void> RunCollector::begin_kernel(const emulate::TraceHeader& header) {
  collecting_ = !gave_up_ && std::binary_search(wanted_.begin(), wanted_.end(), next_kernel_);
  if (!collecting_) return {};
  current_ = {};
  current_.kernel_launch = next_kernel_;
  current_.runs.grid = header.grid;
  current_.runs.block = header.block;
  current_.runs.accesses = known_;
  loads_ = 0;
  access_of_.assign(header.instructions.size(), no_access);
  // The instructions of a kernel stand first in its trace, in the order of the body.
  for (std::size_t a = 0; a < known_.size(); ++a) {
    const std::size_t i = known_[a].index;
    if (i >= header.instructions.size() || header.instructions[i].function != header.kernel ||
        header.instructions[i].line != known_[a].line)
      return check_failed("kernel '{}': line {} does not match its trace", header.kernel,
                          known_[a].line);
    access_of_[i] = static_cast<std::uint16_t>(a);
  }
  warps_ = (header.block[0] * header.block[1] * header.block[2] + 31) / 32;
  header_instructions_ = header.instructions;
  return {};
}

Result<void> RunCollector::consume(const emulate::TraceChunk& chunk) {
  if (chunk.words.size() > words_left_) return missing_capability("it is too long to be emulated");
  words_left_ -= chunk.words.size();
  if (!collecting_) return {};
  if (!open_block_) {
    open_block_ = true;
    warp_ = 0;
    first_run_ = current_.runs.runs.size();
    steps_.assign(warps_, 0);
    requests_.assign(std::size_t{warps_} * current_.runs.accesses.size(), 0);
  }
  block_ = chunk.block;
  emulate::visit_events(chunk, warp_, *this);
  if (current_.runs.runs.size() - first_run_ > max_runs_of_block_) {
    gave_up_ = true;
    collecting_ = false;
    current_ = {};
    return {};
  }
  if (chunk.last) {
    join();
    open_block_ = false;
  }
  if (too_many_)
    return invalid_input("the kernel has more than {} memory instructions", no_access - 1);
  return {};
}

Result<void> RunCollector::end_kernel() {
  if (collecting_ && (!any_ || loads_ > best_loads_)) {
    any_ = true;
    best_loads_ = loads_;
    best_ = std::move(current_);
  }
  ++next_kernel_;
  return {};
}

void RunCollector::access(const emulate::AccessEvent& event) {
  if (event.space != emulate::MemorySpace::global || event.mask == 0) return;
  const std::uint16_t access = number_of(event.instruction);
  if (access == no_access) return;
  Run run;
  run.block = block_;
  run.access = access;
  run.request = requests_[std::size_t{event.warp} * current_.runs.accesses.size() + access]++;
  run.step = steps_[event.warp]++;
  if (current_.runs.accesses[access].kind == AccessKind::load)
    loads_ += static_cast<std::uint64_t>(std::popcount(event.mask));
  std::uint32_t lane = 0;
  while (lane < 32) {
    if ((event.mask >> lane & 1U) == 0) {
      ++lane;
      continue;
    }
    std::uint32_t end = lane + 1;
    run.stride = 0;
    if (end < 32 && (event.mask >> end & 1U) != 0) {
      run.stride = static_cast<std::int64_t>(event.addresses[end] - event.addresses[lane]);
      while (end < 32 && (event.mask >> end & 1U) != 0 &&
             static_cast<std::int64_t>(event.addresses[end] - event.addresses[end - 1]) ==
                 run.stride)
        ++end;
    }
    run.thread = static_cast<std::uint16_t>(event.warp * 32 + lane);
    run.address = event.addresses[lane];
    run.count = end - lane;
    current_.runs.runs.push_back(run);
    lane = end;
  }
}

std::uint16_t RunCollector::number_of(std::uint32_t instruction) {
  std::uint16_t& number = access_of_[instruction];
  if (number != no_access) return number;
  const emulate::TraceInstruction& traced = header_instructions_[instruction];
  if (traced.kind == AccessKind::none) return no_access;
  if (current_.runs.accesses.size() >= no_access - 1) {
    too_many_ = true;
    return no_access;
  }
  Access access;
  access.instruction = traced.text;
  access.line = traced.line;
  access.space = traced.space == emulate::MemorySpace::global ? "global" : "generic";
  access.kind = traced.kind;
  access.bytes = traced.bytes;
  access.texels = texels_.contains({traced.line, traced.text});
  access.access_class = AccessClass::data_dependent;
  access.source = Source::emulated;
  const std::size_t before = current_.runs.accesses.size();
  current_.runs.accesses.push_back(access);
  number = static_cast<std::uint16_t>(before);
  std::vector<std::uint32_t> requests(std::size_t{warps_} * (before + 1), 0);
  for (std::uint32_t w = 0; w < warps_; ++w)
    for (std::size_t a = 0; a < before; ++a)
      requests[w * (before + 1) + a] = requests_[w * before + a];
  requests_ = std::move(requests);
  return number;
}

void RunCollector::join() {
  std::vector<Run>& runs = current_.runs.runs;
  const auto begin = runs.begin() + static_cast<std::ptrdiff_t>(first_run_);
  std::sort(begin, runs.end(), [](const Run& a, const Run& b) {
    if (a.access != b.access) return a.access < b.access;
    return a.request != b.request ? a.request < b.request : a.thread < b.thread;
  });
  std::size_t out = first_run_;
  for (std::size_t i = first_run_; i < runs.size(); ++i) {
    const Run run = runs[i];
    if (out > first_run_) {
      Run& before = runs[out - 1];
      const bool joins =
          before.access == run.access && before.request == run.request && before.step == run.step &&
          before.thread + before.count == run.thread && before.stride == run.stride &&
          before.count > 1 && run.count > 1 &&
          before.address + static_cast<std::uint64_t>(before.stride) * before.count == run.address;
      if (joins) {
        before.count += run.count;
        continue;
      }
    }
    runs[out++] = run;
  }
  runs.resize(out);
}

}  // namespace demarc::locality
