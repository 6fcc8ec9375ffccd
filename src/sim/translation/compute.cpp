// Gives work-groups to compute units, and takes waves through their instructions.
#include <algorithm>

#include "compute.hpp"
#include "demarc/base/rounding.hpp"

namespace demarc::sim::translation {

Occupancy occupancy_of(const Settings& settings, const KernelShape& shape) {
  const auto granules = [](std::uint32_t value, std::uint32_t granule) {
    return round_up(std::max(value, 1U), granule);
  };
  const std::uint32_t by_vgprs = settings.vgprs / granules(shape.vgprs, 4) * simds;
  const std::uint32_t by_sgprs = settings.sgprs / granules(shape.sgprs, 16);
  Occupancy most;
  most.waves = std::min({settings.waves_per_cu, by_vgprs, by_sgprs});
  most.groups = settings.dynamic_lds != 0 && shape.lds_bytes > 0
                    ? settings.lds_bytes / granules(shape.lds_bytes, 256)
                    : settings.waves_per_cu;
  return most;
}

Compute::Compute(Common& common, const Application& application, Split split, DataPath& data,
                 TranslationPath& translation)
    : Part(common),
      application_(application),
      split_(split),
      data_(data),
      translation_(translation),
      line_ports_(settings_.cu_lines),
      shared_ports_(settings_.shared_rows) {
  state.dispatchers.resize(settings_.gpus);
  for (const GpuIndex gpu : state.dispatchers.keys()) {
    for (std::uint32_t cu = 0; cu < settings_.cus; ++cu) state.cus.emplace_back().gpu = gpu;
  }
}

void Compute::start_kernel(KernelNumber kernel) {
  state.kernel = kernel;
  state.groups_left = shape().groups();
  most_ = occupancy_of(settings_, shape());
  data_.forget_l1s();
  for (const GpuIndex gpu : state.dispatchers.keys()) {
    state.dispatchers[gpu].next_group = 0;
    at<EventKind::dispatch>(now(), gpu);
  }
}

GpuIndex gpu_of_group(const Settings& settings, Split split, const KernelShape& shape,
                      std::uint32_t group) {
  switch (split) {
    case Split::native:
    case Split::roundrobin:
      return GpuIndex(group % settings.gpus);
    case Split::contiguous:
      return GpuIndex(std::uint64_t{group} * settings.gpus / shape.groups());
    case Split::dim0:
      return GpuIndex(std::uint64_t{group % shape.groups_x} * settings.gpus / shape.groups_x);
  }
  return {};
}

std::uint32_t next_group_of(const Settings& settings, Split split, const KernelShape& shape,
                            GpuIndex gpu, std::uint32_t from) {
  const std::uint64_t groups = shape.groups();
  const std::uint64_t number = gpu.raw();
  std::uint64_t next = from;
  switch (split) {
    case Split::native:
    case Split::roundrobin:
      next += (number + settings.gpus - from % settings.gpus) % settings.gpus;
      break;
    case Split::contiguous:
      next = std::max(next, first_of_share(number, groups, settings.gpus));
      if (next >= first_of_share(number + 1, groups, settings.gpus)) next = groups;
      break;
    case Split::dim0: {
      const std::uint64_t first = first_of_share(number, shape.groups_x, settings.gpus);
      const std::uint64_t end = first_of_share(number + 1, shape.groups_x, settings.gpus);
      const std::uint64_t x = from % shape.groups_x;
      if (first == end) {
        next = groups;
      } else if (x < first) {
        next += first - x;
      } else if (x >= end) {
        next += shape.groups_x - x + first;
      }
      break;
    }
  }
  return static_cast<std::uint32_t>(std::min(next, groups));
}

void Compute::dispatch(GpuIndex gpu) {
  Dispatcher& g = state.dispatchers[gpu];
  g.stalled = false;
  g.next_group = next_group_of(settings_, split_, shape(), gpu, g.next_group);
  if (g.next_group == shape().groups()) return;
  if (!place_group(gpu, g.next_group)) {
    g.stalled = true;
    return;
  }
  ++g.next_group;
  if (++g.dispatched < settings_.dispatch_groups) {
    at<EventKind::dispatch>(now(), gpu);
    return;
  }
  g.dispatched = 0;
  const std::uint32_t waves = shape().waves_per_group;
  const std::uint32_t further = waves > 4 ? waves - 4 : 0;
  at<EventKind::dispatch>(now() + Cycles(settings_.dispatch_cycles + further), gpu);
}

bool Compute::place_group(GpuIndex gpu, std::uint32_t group) {
  const std::uint32_t waves = shape().waves_per_group;
  Dispatcher& g = state.dispatchers[gpu];
  for (std::uint32_t tried = 0; tried < settings_.cus; ++tried) {
    const CuIndex index(gpu.raw() * settings_.cus + g.next_cu);
    g.next_cu = (g.next_cu + 1) % settings_.cus;
    Cu& cu = state.cus[index];
    if (cu.waves + waves > most_.waves || cu.groups >= most_.groups) continue;
    cu.waves += waves;
    ++cu.groups;
    const GroupSlot slot = state.groups.take();
    state.groups[slot].waves = state.groups[slot].waves_left = waves;
    for (std::uint32_t w = 0; w < waves; ++w) {
      const auto idlest = std::min_element(cu.simd_waves.begin(), cu.simd_waves.end());
      ++*idlest;
      const WaveSlot slot_of_wave = state.waves.take();
      Wave& wave = state.waves[slot_of_wave];
      wave = Wave{};
      wave.cu = index;
      wave.simd = static_cast<std::uint32_t>(idlest - cu.simd_waves.begin());
      wave.group = slot;
      wave.at = {.kernel = state.kernel.raw(), .group = group, .wave = w, .index = 0};
      at<EventKind::wave_next>(then(), slot_of_wave);
    }
    return true;
  }
  return false;
}

void Compute::wave_next(WaveSlot index) {
  Wave& wave = state.waves[index];
  if (!wave.fetched) {
    if (!application_.instruction(wave.at, wave.next)) {
      wave.ended = true;
      if (wave.accesses == 0) end_wave(index);
      return;
    }
    ++wave.at.index;
    wave.fetched = true;
    wave.past_barrier = false;
  }
  if (wave.next.wait && wave.loads > 0) {
    wave.waits_for_loads = true;
    return;
  }
  if (wave.next.barrier && !wave.past_barrier) {
    Group& group = state.groups[wave.group];
    wave.past_barrier = true;
    group.at_barrier.push_back(index);
    if (group.at_barrier.size() < group.waves) return;
    for (const WaveSlot other : group.at_barrier) {
      if (other != index) at<EventKind::wave_next>(now(), other);
    }
    group.at_barrier.clear();
  }
  Cu& cu = state.cus[wave.cu];
  Cycles& simd = cu.simd_free[wave.simd];
  simd = std::max(simd, now()) + Cycles(settings_.wave_cycles) * wave.next.alu;
  at<EventKind::wave_issue>(std::max(simd, shared_memory_done(cu, wave.next.shared_rows)), index);
}

// All SIMDs of a CU share one pipe to its shared memory. It serves the rows of a wave's
// instructions in order of the calls, while the SIMD issues them.
Cycles Compute::shared_memory_done(Cu& cu, std::uint32_t rows) {
  if (rows == 0 || settings_.shared_rows == 0) return now();
  cu.shared_turn = std::max(cu.shared_turn, shared_ports_.first_of(now())) + Turns(rows);
  return shared_ports_.cycle_of(cu.shared_turn + Turns(settings_.shared_rows - 1));
}

void Compute::wave_issue(WaveSlot index) {
  Wave& wave = state.waves[index];
  if (wave.next.lines == 0) {  // a barrier or work alone
    wave.fetched = false;
    at<EventKind::wave_next>(then(), index);
    return;
  }
  Cu& cu = state.cus[wave.cu];
  if (cu.lines_in_flight + wave.next.lines > settings_.outstanding_lines) {
    cu.waiting_waves.push_back(index);
    return;
  }
  const AccessSlot slot = data_.state.accesses.take();
  Access& access = data_.state.accesses[slot];
  access.wave = index;
  access.cu = wave.cu;
  access.next = 0;
  access.sent.reset();
  access.instruction = wave.next;
  access.pending = wave.next.lines;
  access.done = Cycles();
  access.start = std::max(now() + Cycles(settings_.memory_pipeline), cu.port_free);
  const std::uint32_t slots = std::max(access.pending, settings_.least_lines);
  cu.port_free = access.start + line_ports_.after(slots + settings_.cu_lines - 1);
  cu.lines_in_flight += access.pending;
  state.lines += access.pending;
  ++wave.accesses;
  if (!access.instruction.store) ++wave.loads;
  wave.fetched = false;
  translation_.look_up(slot);
  at<EventKind::wave_next>(then(), index);
}

void Compute::access_done(AccessSlot slot) {
  Access& access = data_.state.accesses[slot];
  const WaveSlot index = access.wave;
  Wave& wave = state.waves[index];
  Cu& cu = state.cus[wave.cu];
  cu.lines_in_flight -= access.instruction.lines;
  --wave.accesses;
  if (!access.instruction.store) --wave.loads;
  data_.state.accesses.give_back(slot);
  if (common_.watch)
    common_.watch({.moment = Moment::access_ended, .cycle = now(), .gpu = cu.gpu, .wave = index});
  while (!cu.waiting_waves.empty() &&
         cu.lines_in_flight + state.waves[cu.waiting_waves.front()].next.lines <=
             settings_.outstanding_lines) {
    const WaveSlot waiting = cu.waiting_waves.front();
    cu.waiting_waves.pop_front();
    wave_issue(waiting);
  }
  Wave& same = state.waves[index];
  if (same.waits_for_loads && same.loads == 0) {
    same.waits_for_loads = false;
    at<EventKind::wave_next>(now(), index);
  } else if (same.ended && same.accesses == 0) {
    end_wave(index);
  }
}

void Compute::end_wave(WaveSlot index) {
  const Wave& wave = state.waves[index];
  const CuIndex cu_index = wave.cu;
  const GroupSlot slot = wave.group;
  --state.cus[cu_index].simd_waves[wave.simd];
  state.waves.give_back(index);
  Group& group = state.groups[slot];
  if (--group.waves_left > 0) return;
  Cu& cu = state.cus[cu_index];
  cu.waves -= group.waves;
  --cu.groups;
  state.groups.give_back(slot);
  if (Dispatcher& dispatcher = state.dispatchers[cu.gpu]; dispatcher.stalled) {
    dispatcher.stalled = false;
    at<EventKind::dispatch>(now(), cu.gpu);
  }
  if (--state.groups_left > 0) return;
  KernelNumber next = state.kernel;
  if ((++next).raw() < application_.kernels().size()) {
    at<EventKind::kernel_start>(now() + Cycles(settings_.kernel_overhead), next);
  } else {
    state.finished = true;
  }
}

}  // namespace demarc::sim::translation
