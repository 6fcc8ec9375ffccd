// Runs the warps of a block in turn.
#include <algorithm>
#include <cstring>
#include <utility>

#include "demarc/base/rounding.hpp"
#include "groups.hpp"
#include "unwritten.hpp"

namespace demarc::emulate {

const Region* Program::find_region(std::uint64_t low, std::uint64_t high) const {
  auto at = std::upper_bound(
      regions.begin(), regions.end(), low,
      [](std::uint64_t address, const Region& region) { return address < region.low; });
  if (heap != nullptr && DeviceHeap::contains(low)) return heap->find(low, high);
  if (at == regions.begin()) return nullptr;
  --at;
  return low < high && high <= at->high ? &*at : nullptr;
}

std::byte* FramePool::take(const CodeFunction& function) {
  auto& free = free_[&function];
  if (!free.empty()) {
    std::byte* frame = free.back();
    free.pop_back();
    return frame;
  }
  constexpr std::size_t alignment = 64;
  owned_.push_back(std::make_unique<std::byte[]>(function.frame_bytes + alignment));
  auto address = reinterpret_cast<std::uintptr_t>(owned_.back().get());
  address = round_up(address, alignment);
  auto* frame = reinterpret_cast<std::byte*>(address);
  for (const Constant& constant : function.constants) {
    std::memcpy(frame + constant.offset, &constant.value, sizeof constant.value);
  }
  return frame;
}

void FramePool::give_back(const CodeFunction& function, std::byte* frame) {
  free_[&function].push_back(frame);
}

Block::~Block() = default;

Block::Block(const Program& code, FramePool& frames) : program(&code), pool(&frames) {
  hints.assign(code.memory_sites, {});
  shared.resize(std::size_t{code.shared_bytes} + 64);
  shared_region.high = code.shared_bytes;
  shared_region.delta = reinterpret_cast<std::uint64_t>(shared.data());
  if (code.check_uninitialised) {
    shared_shadow.resize(shared.size());
    shared_region.shadow = shared_shadow.data();
  }
  if (code.check_races) {
    if (code.orders_warps) clocks.use(code.warps());
    const std::size_t granules = code.shared_bytes / code.shared_granule + 1;
    for (auto* records : {&races.writes, &races.reads, &races.strong_writes, &races.strong_reads})
      records->resize(granules * (clocks.used() ? code.warps() : 1));
  }
  warps.resize(code.warps());
  barriers.resize(16);
  for (std::uint32_t i = 0; i < warps.size(); ++i) {
    Warp& warp = warps[i];
    warp.block = this;
    warp.program = program;
    warp.index = i;
    warp.check_races = code.check_races;
    for (std::uint32_t d = 0; d < 3; ++d)
      warp.tid[d] = code.tids.data() + (std::size_t{i} * 3 + d) * warp_size;
  }
}

void Block::start(std::uint32_t linear_index, bool tracing, bool trace_runs) {
  linear = linear_index;
  index = {linear % program->grid[0], linear / program->grid[0] % program->grid[1],
           linear / program->grid[0] / program->grid[1]};
  trace_used = 0;
  trace_warp = ~0U;
  findings.clear();
  printed.clear();
  stopped = false;
  vain_rounds = 0;
  stalled = false;
  running = static_cast<std::uint32_t>(warps.size());
  executed = 0;
  next_epoch();
  clocks.clear();
  unwritten.reset();
  std::fill(shared_shadow.begin(), shared_shadow.end(), std::uint8_t{0});
  if (program->shared_bytes > 0) std::fill(shared.begin(), shared.end(), std::byte{0});
  local_end = 0;
  grow_local(program->functions[0].local_bytes);
  std::fill(local_shadow.begin(), local_shadow.end(), std::uint8_t{0});
  for (BarrierState& barrier : barriers) barrier = {};
  const std::uint32_t threads = program->block[0] * program->block[1] * program->block[2];
  for (Warp& warp : warps) {
    const std::uint32_t left = threads - warp.index * warp_size;
    warp.live = left >= warp_size ? full_mask : (Mask{1} << left) - 1;
    warp.state = WarpState::ready;
    if (warp.meeting != nullptr || !warp.groups.empty()) {  // the block before was stopped
      warp.meetings.clear();
      warp.spare_meeting = nullptr;
    }
    static_cast<Lanes&>(warp) = {};
    warp.mask = warp.live;
    if (warp.kernel_frame != nullptr) pool->give_back(program->functions[0], warp.kernel_frame);
    warp.kernel_frame = nullptr;
    warp.resume = program->functions[0].entry;
    warp.groups.clear();
    warp.torn = false;
    warp.polls = 0;
    warp.idle_turns = 0;
    warp.turned = 0;
    warp.carry = 0;
    warp.tracked = false;
    warp.begins = false;
    warp.cluster_arrived = 0;
    warp.cluster_pending = 0;
    warp.tracing = tracing;
    warp.trace_runs = trace_runs;
    warp.thread_instructions = 0;
    warp.warp_instructions = 0;
    warp.memory_accesses = 0;
    warp.divergent_branches = 0;
    warp.barriers = 0;
  }
}

void Block::grow_local(std::uint32_t bytes) {
  local_end = std::max(local_end, bytes);
  if (bytes <= local_bytes) return;
  const std::uint32_t old_bytes = local_bytes;
  local_bytes = round_up(bytes, 64U);
  const std::size_t threads = warps.size() * warp_size;
  std::vector<std::byte> grown(threads * local_bytes + 64);
  std::vector<std::uint8_t> shadow(program->check_uninitialised ? grown.size() : 0);
  for (std::size_t t = 0; t < threads; ++t) {
    std::copy_n(local.data() + t * old_bytes, old_bytes, grown.data() + t * local_bytes);
    if (!shadow.empty()) {
      std::copy_n(local_shadow.data() + t * old_bytes, old_bytes, shadow.data() + t * local_bytes);
    }
  }
  local.swap(grown);
  local_shadow.swap(shadow);
}

Region Block::local_region(const Warp& warp) {
  Region region;
  const std::size_t start = std::size_t{warp.index} * warp_size * local_bytes;
  region.high = local_end;
  region.delta = reinterpret_cast<std::uint64_t>(local.data() + start);
  if (program->check_uninitialised) region.shadow = local_shadow.data() + start;
  return region;
}

void Block::make_trace_room(std::size_t words) {
  if (flush) flush(*this);
  if (trace_used + words > trace.size())
    trace.resize(std::max<std::size_t>(trace.size() * 2, 16384 + words));
}

namespace {

constexpr std::uint32_t max_idle_turns = 64;  // before lanes go on without those they wait for

}  // namespace

void Block::run_warp(Warp& warp, bool apart) {
  const std::int64_t turn = program->turn;
  if (warp.kernel_frame == nullptr) {
    const CodeFunction& kernel = program->functions[0];
    warp.kernel_frame = pool->take(kernel);
    warp.frame = warp.kernel_frame;
    for (const FrameVariable& zeroed : kernel.zeroed)
      std::memset(warp.frame + zeroed.offset, 0, zeroed.bytes);
  }
  if (warp.tracing && trace_warp != warp.index) {
    *trace_room(1) = trace_detail::head(trace_detail::kind_warp, warp.index, warp.live);
    trace_warp = warp.index;
  }
  // Near the limit the turns become short, so that it is not overrun by far.
  const std::uint64_t limit = program->instruction_limit;
  const std::uint64_t left = (limit - std::min(limit, executed)) + 1;
  warp.budget = std::min(
      turn, static_cast<std::int64_t>(std::max<std::uint64_t>(left, program->longest_run)));
  const std::uint64_t before = warp.warp_instructions;
  run_ops(warp, warp.mask != 0 ? program->code.data() + warp.resume : next_group(warp));
  executed += warp.warp_instructions - before;
  if (executed > limit && warp.state != WarpState::done && !stopped) {
    report_hang(
        warp,
        fmt::format("the block executed more than {} warp instructions without ending", limit));
  }
  if (warp.state == WarpState::done || stopped) {
    pool->give_back(program->functions[0], warp.kernel_frame);
    warp.kernel_frame = nullptr;
    stalled = false;
  } else {
    end_turn(warp, apart);
  }
}

void Block::end_turn(Warp& warp, bool apart) {
  constexpr std::uint64_t patience = std::uint64_t{1} << 18;  // warp instructions
  const bool goes_on = warp.state == WarpState::ready;
  const bool polls = goes_on && warp.polls >= max_polls;
  stalled = stalled && polls;
  warp.polls = 0;
  warp.idle_turns = polls ? warp.idle_turns + 1 : 0;
  if (polls) {
    take_turns(warp, apart || warp.idle_turns > max_idle_turns);
  } else if (goes_on && warp.warp_instructions - warp.turned > patience) {
    take_turns(warp, true);
  }
}

bool Block::advance(bool apart) {
  bool ran = false;
  stalled = true;
  for (Warp& warp : warps) {
    if (warp.state == WarpState::ready && !stopped) {
      run_warp(warp, apart);
      ran = true;
    }
  }
  stalled = stalled && ran;
  vain_rounds = stalled ? vain_rounds + 1 : 0;
  const bool left = std::any_of(warps.begin(), warps.end(),
                                [](const Warp& warp) { return warp.state != WarpState::done; });
  idle = false;
  if (!left || stopped) return false;
  const bool in_vain = stalled && (apart || vain_rounds > max_idle_turns);
  if (ran && !in_vain) return true;
  // What the others look for may be up to lanes that wait at a meeting.
  for (Warp& warp : warps) {
    if (warp.state == WarpState::waiting && go_on_apart(warp)) return true;
  }
  if (ran) return true;
  idle = waits_for_cluster();
  if (!idle) report_stuck();
  return idle;
}

bool Block::waits_for_cluster() const {
  for (const Warp& warp : warps) {
    for (const Group& group : warp.groups) {
      if (group.wait == Wait::cluster) return true;
    }
  }
  return false;
}

void Block::run_ops(Warp& warp, const MicroOp* op) {
  for (;;) {
    if (warp.tracked) {
      op = unwritten->run(warp, op);
    } else {
      while (op != nullptr) op = op->run(warp, op);
      if (std::exchange(warp.begins, false)) {
        warp.tracked = true;
        op = program->code.data() + warp.resume;
      }
    }
    if (op == nullptr) return;
  }
}

}  // namespace demarc::emulate
