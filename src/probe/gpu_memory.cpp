// Times the memory of a real card for the probe.
#include "gpu_memory.hpp"

#include <algorithm>

namespace demarc::probe {
namespace {

cuda::TimedStream to_timed(const Stream& stream) {
  return {stream.chunks, stream.chunk_shift, stream.writes, stream.latency};
}

}  // namespace

Result<std::unique_ptr<GpuMemory>> GpuMemory::open(cuda::GpuPointer gpu, std::uint64_t bytes) {
  DEMARC_TRY(const std::size_t page_bytes, cuda::PhysicalMemory::granularity(*gpu));
  DEMARC_TRY(const std::uint64_t free, gpu->free_bytes());
  constexpr std::uint64_t reserve = std::uint64_t{1} << 30U;  // for lists and the driver itself
  const std::uint64_t usable = free > reserve ? free - reserve : 0;
  const std::uint64_t pages = std::min(bytes, usable) / page_bytes;
  constexpr std::uint64_t least_pages = 64;
  if (pages < least_pages) {
    return missing_capability("{}: {} MiB of device memory are free; the probe needs {} MiB",
                              gpu->name(), free >> 20U,
                              (least_pages * page_bytes + reserve) >> 20U);
  }
  DEMARC_TRY(cuda::MemoryTimer timer, cuda::MemoryTimer::create(gpu));
  DEMARC_TRY(cuda::PageArena arena, cuda::PageArena::create(gpu, pages));
  DEMARC_TRY(const int l2_bytes, gpu->attribute(cuda::attribute_l2_bytes));
  std::unique_ptr<GpuMemory> memory(new GpuMemory(std::move(timer), std::move(arena)));
  memory->facts_.name = gpu->name();
  memory->facts_.page_bytes = page_bytes;
  memory->facts_.pages = pages;
  memory->facts_.sms = gpu->sm_count();
  memory->facts_.l2_bytes = static_cast<std::uint64_t>(l2_bytes);
  memory->roles_ = cuda::alternating_roles(*gpu);
  return memory;
}

Result<std::vector<float>> GpuMemory::uncached_pairs(std::uint64_t,
                                                     std::span<const std::uint64_t>) {
  return missing_capability("{}: physical addresses are not known", facts_.name);
}

Result<std::vector<float>> GpuMemory::reread(std::uint64_t, std::span<const std::uint64_t>,
                                             std::span<const std::uint64_t>) {
  return missing_capability("{}: physical addresses are not known", facts_.name);
}

Result<float> GpuMemory::crowded_read(std::uint64_t, std::span<const std::uint64_t>) {
  return missing_capability("{}: physical addresses are not known", facts_.name);
}

Result<gpu::LatencyMatrix> GpuMemory::hit_latencies(std::span<const std::uint64_t> addresses,
                                                    std::span<const gpu::SmIndex> sms,
                                                    std::uint32_t together, std::uint32_t repeats) {
  return timer_.hit_latencies(arena_.address(), addresses, sms, together, repeats);
}

Result<double> GpuMemory::stream_seconds(const Stream& victim, const Stream& aggressor) {
  return timer_.stream_seconds(arena_.address(), to_timed(victim), to_timed(aggressor), roles_);
}

}  // namespace demarc::probe
