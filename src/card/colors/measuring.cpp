// Chooses the SMs that measure, and the memory that streams go over.
#include "colors/measuring.hpp"

#include <algorithm>

namespace demarc::cuda {
namespace {

constexpr std::uint32_t measured_sms = 24;

}  // namespace

std::vector<gpu::SmIndex> measuring_sms(const Gpu& gpu) {
  const std::uint32_t available = gpu.sm_count();
  const std::uint32_t wanted = std::min(measured_sms, available);
  std::vector<gpu::SmIndex> sms;
  for (std::uint32_t i = 0; i < wanted; ++i) sms.emplace_back(i * available / wanted);
  return sms;
}

Result<ColoredBuffer> whole_chunks(ColoredPool& pool, std::size_t share, std::uint64_t bytes) {
  const std::uint64_t chunk = pool.colors().run_bytes();
  const std::uint64_t free = pool.usage(share).largest_free_bytes / 2 / chunk * chunk;
  return pool.allocate(share, std::min(bytes, std::max(free, chunk)));
}

std::vector<std::uint32_t> chunks_of(const ColoredBuffer& buffer, std::uint64_t bytes) {
  std::vector<std::uint32_t> chunks;
  const std::uint64_t run = buffer.run_bytes();
  for (std::uint64_t at = 0; at < std::min(bytes, buffer.bytes()); at += run) {
    chunks.push_back(static_cast<std::uint32_t>(buffer.position(at).raw() / run));
  }
  return chunks;
}

}  // namespace demarc::cuda
