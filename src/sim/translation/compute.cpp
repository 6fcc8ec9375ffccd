// Gives work-groups to compute units, and takes waves through their instructions.
#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "system.hpp"

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

void System::start_kernel(KernelNumber kernel) {
  kernel_ = kernel;
  const KernelShape& shape = application_.kernels()[kernel.raw()];
  groups_left_ = shape.groups();
  most_ = occupancy_of(settings_, shape);
  for (Cu& cu : cus_) cu.l1.clear();
  for (const GpuIndex gpu : gpus_.keys()) {
    gpus_[gpu].next_group = 0;
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

void System::dispatch(GpuIndex gpu) {
  const KernelShape& shape = application_.kernels()[kernel_.raw()];
  Gpu& g = gpus_[gpu];
  g.dispatch_stalled = false;
  g.next_group = next_group_of(settings_, split_, shape, gpu, g.next_group);
  if (g.next_group == shape.groups()) return;
  if (!place_group(gpu, g.next_group)) {
    g.dispatch_stalled = true;
    return;
  }
  ++g.next_group;
  if (++g.dispatched < settings_.dispatch_groups) {
    at<EventKind::dispatch>(now(), gpu);
    return;
  }
  g.dispatched = 0;
  const std::uint32_t further = shape.waves_per_group > 4 ? shape.waves_per_group - 4 : 0;
  at<EventKind::dispatch>(now() + Cycles(settings_.dispatch_cycles + further), gpu);
}

bool System::place_group(GpuIndex gpu, std::uint32_t group) {
  const KernelShape& shape = application_.kernels()[kernel_.raw()];
  Gpu& g = gpus_[gpu];
  for (std::uint32_t tried = 0; tried < settings_.cus; ++tried) {
    const CuIndex index = cu_of(gpu, g.next_cu);
    g.next_cu = (g.next_cu + 1) % settings_.cus;
    Cu& cu = cus_[index];
    if (cu.waves + shape.waves_per_group > most_.waves || cu.groups >= most_.groups) continue;
    cu.waves += shape.waves_per_group;
    ++cu.groups;
    const GroupSlot slot = groups_.take();
    groups_[slot].waves = groups_[slot].waves_left = shape.waves_per_group;
    for (std::uint32_t w = 0; w < shape.waves_per_group; ++w) {
      const WaveSlot wave = waves_.take();
      waves_[wave] = Wave{};
      waves_[wave].cu = index;
      const auto idlest = std::min_element(cu.simd_waves.begin(), cu.simd_waves.end());
      ++*idlest;
      waves_[wave].simd = static_cast<std::uint32_t>(idlest - cu.simd_waves.begin());
      waves_[wave].group = slot;
      waves_[wave].at = {.kernel = kernel_.raw(), .group = group, .wave = w, .index = 0};
      at<EventKind::wave_next>(then(), wave);
    }
    return true;
  }
  return false;
}

void System::wave_next(WaveSlot index) {
  Wave& wave = waves_[index];
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
    Group& group = groups_[wave.group];
    wave.past_barrier = true;
    group.at_barrier.push_back(index);
    if (group.at_barrier.size() < group.waves) return;
    for (const WaveSlot other : group.at_barrier) {
      if (other != index) at<EventKind::wave_next>(now(), other);
    }
    group.at_barrier.clear();
  }
  Cu& cu = cus_[wave.cu];
  Cycles& simd = cu.simd_free[wave.simd];
  simd = std::max(simd, now()) + Cycles(settings_.wave_cycles) * wave.next.alu;
  at<EventKind::wave_issue>(std::max(simd, shared_memory_done(cu, wave.next.shared_rows)), index);
}

// All SIMDs of a CU share one pipe to its shared memory. It serves the rows of a wave's
// instructions in order of the calls, while the SIMD issues them.
Cycles System::shared_memory_done(Cu& cu, std::uint32_t rows) {
  if (rows == 0 || settings_.shared_rows == 0) return now();
  cu.shared_turn = std::max(cu.shared_turn, shared_ports_.first_of(now())) + Turns(rows);
  return shared_ports_.cycle_of(cu.shared_turn + Turns(settings_.shared_rows - 1));
}

void System::wave_issue(WaveSlot index) {
  Wave& wave = waves_[index];
  if (wave.next.lines == 0) {  // a barrier or work alone
    wave.fetched = false;
    at<EventKind::wave_next>(then(), index);
    return;
  }
  Cu& cu = cus_[wave.cu];
  if (cu.lines_in_flight + wave.next.lines > settings_.outstanding_lines) {
    cu.waiting_waves.push_back(index);
    return;
  }
  const AccessSlot slot = accesses_.take();
  Access& access = accesses_[slot];
  access.wave = index;
  access.next = 0;
  access.sent.reset();
  access.instruction = wave.next;
  access.pending = wave.next.lines;
  access.done = Cycles();
  access.start = std::max(now() + Cycles(settings_.memory_pipeline), cu.port_free);
  const std::uint32_t slots = std::max(access.pending, settings_.least_lines);
  cu.port_free = access.start + line_ports_.after(slots + settings_.cu_lines - 1);
  cu.lines_in_flight += access.pending;
  lines_ += access.pending;
  ++wave.accesses;
  if (!access.instruction.store) ++wave.loads;
  wave.fetched = false;
  cu.queue.push_back(slot);
  if (!cu.tlb_blocked && !cu.tlb_scheduled) {
    cu.tlb_scheduled = true;
    at<EventKind::l1_run>(access.start, wave.cu);
  }
  at<EventKind::wave_next>(then(), index);
}

void System::access_done(AccessSlot slot) {
  Access& access = accesses_[slot];
  const WaveSlot index = access.wave;
  Wave& wave = waves_[index];
  Cu& cu = cus_[wave.cu];
  cu.lines_in_flight -= access.instruction.lines;
  --wave.accesses;
  if (!access.instruction.store) --wave.loads;
  accesses_.give_back(slot);
  if (watch_)
    watch_({.moment = Moment::access_ended, .cycle = now(), .gpu = cu.gpu, .wave = index});
  while (!cu.waiting_waves.empty() &&
         cu.lines_in_flight + waves_[cu.waiting_waves.front()].next.lines <=
             settings_.outstanding_lines) {
    const WaveSlot waiting = cu.waiting_waves.front();
    cu.waiting_waves.pop_front();
    wave_issue(waiting);
  }
  Wave& same = waves_[index];
  if (same.waits_for_loads && same.loads == 0) {
    same.waits_for_loads = false;
    at<EventKind::wave_next>(now(), index);
  } else if (same.ended && same.accesses == 0) {
    end_wave(index);
  }
}

void System::end_wave(WaveSlot index) {
  const Wave& wave = waves_[index];
  const CuIndex cu_index = wave.cu;
  const GroupSlot slot = wave.group;
  --cus_[cu_index].simd_waves[wave.simd];
  waves_.give_back(index);
  Group& group = groups_[slot];
  if (--group.waves_left > 0) return;
  Cu& cu = cus_[cu_index];
  cu.waves -= group.waves;
  --cu.groups;
  groups_.give_back(slot);
  if (gpus_[cu.gpu].dispatch_stalled) {
    gpus_[cu.gpu].dispatch_stalled = false;
    at<EventKind::dispatch>(now(), cu.gpu);
  }
  if (--groups_left_ > 0) return;
  KernelNumber next = kernel_;
  if ((++next).raw() < application_.kernels().size()) {
    at<EventKind::kernel_start>(now() + Cycles(settings_.kernel_overhead), next);
  } else {
    finished_ = true;
  }
}

}  // namespace demarc::sim::translation
