#include "demarc/cuda/colored_memory.hpp"

#include <algorithm>
#include <numeric>

namespace demarc::cuda {
namespace {

// Buffers begin at multiples of this, so that 16-byte vectors and whole sectors stay together.
constexpr std::uint64_t buffer_alignment = 256;
constexpr std::uint64_t most_pitch = std::uint64_t{1} << 24;  // of a two-dimensional copy, bytes

std::uint64_t rounded(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + buffer_alignment - 1) / buffer_alignment *
         buffer_alignment;
}

}  // namespace

ColoredBuffer::ColoredBuffer(std::shared_ptr<ColoredPool> pool, std::size_t share_index,
                             ColorShare share, DevicePointer base, std::uint64_t first,
                             std::uint64_t bytes, std::uint32_t region)
    : pool_(std::move(pool)),
      share_index_(share_index),
      share_(std::move(share)),
      base_(base),
      first_(first),
      bytes_(bytes),
      region_(region) {}

ColoredBuffer::~ColoredBuffer() {
  if (pool_) pool_->release(share_index_, region_, first_, bytes_);
}

ColoredBuffer::ColoredBuffer(ColoredBuffer&& other) noexcept = default;

DevicePointer ColoredBuffer::address(std::uint64_t byte) const {
  return base_ + share_.coloring.position(first_ + byte, share_.color);
}

Result<std::vector<ColoredBuffer::Rows>> ColoredBuffer::rows(std::uint64_t bytes,
                                                             std::uint64_t offset) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    return invalid_input("{} bytes at {} do not lie in a coloured buffer of {}", bytes, offset,
                         bytes_);
  }
  std::vector<Rows> all;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = first_ + offset + done;
    const std::uint64_t run = std::min(bytes - done, run_bytes() - at % run_bytes());
    const DevicePointer where = address(offset + done);
    Rows* last = all.empty() ? nullptr : &all.back();
    if (last != nullptr && last->width == run && last->count == 1 && where > last->address &&
        where - last->address < most_pitch) {
      last->pitch = where - last->address;
      ++last->count;
    } else if (last != nullptr && last->width == run && last->count > 1 &&
               where == last->address + last->count * last->pitch) {
      ++last->count;
    } else {
      all.push_back({where, run, run, 1, done});
    }
    done += run;
  }
  return all;
}

Result<void> ColoredBuffer::upload(const void* source, std::uint64_t bytes,
                                   std::uint64_t offset) const {
  const GpuPointer& gpu = pool_->arena().gpu();
  DEMARC_TRY(const auto pieces, rows(bytes, offset));
  for (const Rows& piece : pieces) {
    CuCopy2d copy{};
    copy.source_type = cu_memory_host;
    copy.source_host = static_cast<const char*>(source) + piece.done;
    copy.source_pitch = piece.width;
    copy.target_type = cu_memory_device;
    copy.target_device = piece.address;
    copy.target_pitch = piece.pitch;
    copy.width_bytes = piece.width;
    copy.height = piece.count;
    DEMARC_CHECK(gpu->check(gpu->api().cuMemcpy2DAsync_v2(&copy, nullptr),
                            "cannot copy to coloured memory"));
  }
  return gpu->check(gpu->api().cuStreamSynchronize(nullptr), "cannot copy to coloured memory");
}

Result<void> ColoredBuffer::download(void* target, std::uint64_t bytes,
                                     std::uint64_t offset) const {
  const GpuPointer& gpu = pool_->arena().gpu();
  DEMARC_TRY(const auto pieces, rows(bytes, offset));
  for (const Rows& piece : pieces) {
    CuCopy2d copy{};
    copy.source_type = cu_memory_device;
    copy.source_device = piece.address;
    copy.source_pitch = piece.pitch;
    copy.target_type = cu_memory_host;
    copy.target_host = static_cast<char*>(target) + piece.done;
    copy.target_pitch = piece.width;
    copy.width_bytes = piece.width;
    copy.height = piece.count;
    DEMARC_CHECK(gpu->check(gpu->api().cuMemcpy2DAsync_v2(&copy, nullptr),
                            "cannot copy from coloured memory"));
  }
  return gpu->check(gpu->api().cuStreamSynchronize(nullptr), "cannot copy from coloured memory");
}

Result<ShareRequest> share_request(const partition::Partition& partition) {
  if (partition.colors == 0) {
    return invalid_input("partition '{}' has no colours: its memory is not divided",
                         partition.name);
  }
  return ShareRequest{partition.colors, partition.byte_cap};
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::create(GpuPointer gpu,
                                                         std::span<const std::uint64_t> masks,
                                                         std::uint64_t bytes,
                                                         std::span<const ShareRequest> shares) {
  DEMARC_TRY(const std::size_t page_bytes, PhysicalMemory::granularity(*gpu));
  DEMARC_TRY(gpu::Coloring coloring, gpu::Coloring::make(masks, page_bytes));
  DEMARC_TRY(MemoryTimer timer, MemoryTimer::create(gpu));
  DEMARC_TRY(PageArena arena,
             PageArena::create(gpu, std::max<std::uint64_t>(bytes / page_bytes, 1)));
  DEMARC_TRY(gpu::SliceModel model, measure_slices(timer, arena));
  DEMARC_TRY(const auto row_constants, measure_page_constants(timer, arena, model));
  std::vector<std::uint32_t> constants;
  constants.reserve(row_constants.size());
  for (const auto constant : row_constants) {
    DEMARC_TRY(const std::uint32_t own, coloring.constant_from_rows(model.masks, constant));
    constants.push_back(own);
  }
  DEMARC_TRY(auto pool, adopt(std::move(arena), std::move(coloring), constants, shares));
  pool->timer_.emplace(std::move(timer));
  pool->model_.emplace(std::move(model));
  return pool;
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::adopt(PageArena arena, gpu::Coloring coloring,
                                                        std::span<const std::uint32_t> constants,
                                                        std::span<const ShareRequest> shares) {
  if (constants.size() != arena.pages()) {
    return invalid_input("{} page constants for an arena of {} pages", constants.size(),
                         arena.pages());
  }
  std::uint64_t taken = 0;
  for (const auto& share : shares) {
    if ((taken & share.colors) != 0) {
      return invalid_input("colours {:#x} are in two shares", taken & share.colors);
    }
    taken |= share.colors;
  }
  std::vector<std::uint32_t> order(constants.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return constants[a] < constants[b]; });
  std::vector<std::uint32_t> sorted;
  sorted.reserve(order.size());
  for (const auto page : order) sorted.push_back(constants[page]);
  DEMARC_CHECK(arena.arrange(order));

  std::shared_ptr<ColoredPool> pool(
      new ColoredPool(std::move(arena), std::move(coloring), std::move(sorted)));
  const std::uint64_t page_bytes = pool->arena_.page_bytes();
  for (std::size_t i = 0; i < pool->constants_.size(); ++i) {
    if (pool->regions_.empty() || pool->regions_.back().constant != pool->constants_[i]) {
      pool->regions_.push_back({pool->constants_[i], i * page_bytes, 0});
    }
    pool->regions_.back().bytes += page_bytes;
  }
  for (const auto& request : shares) {
    Share share;
    share.byte_cap = request.byte_cap;
    share.color_set = request.colors;
    DEMARC_TRY(share.colors, share_of_colors(pool->coloring_, request.colors));
    for (const auto& region : pool->regions_) {
      const std::uint64_t linear = region.bytes / share.colors.coloring.colors();
      share.free.push_back({Range{0, linear}});
      share.usage.capacity_bytes += linear;
    }
    if (share.byte_cap != 0) {
      share.usage.capacity_bytes = std::min(share.usage.capacity_bytes, share.byte_cap);
    }
    pool->shares_.push_back(std::move(share));
  }
  return pool;
}

Result<ColoredBuffer> ColoredPool::allocate(std::size_t share_index, std::uint64_t bytes) {
  if (share_index >= shares_.size()) {
    return invalid_input("share {}: the pool has {}", share_index, shares_.size());
  }
  Share& share = shares_[share_index];
  const std::uint64_t wanted = rounded(bytes);
  const std::uint64_t in_use = share.usage.used_bytes + share.usage.wasted_bytes;
  if (share.byte_cap != 0 && wanted > share.byte_cap - std::min(in_use, share.byte_cap)) {
    return missing_capability(
        "{} bytes of coloured memory: the partition may use {} bytes and uses {}", bytes,
        share.byte_cap, in_use);
  }
  for (std::uint32_t r = 0; r < regions_.size(); ++r) {
    for (auto range = share.free[r].begin(); range != share.free[r].end(); ++range) {
      if (range->end - range->begin < wanted) continue;
      const std::uint64_t first = range->begin;
      range->begin += wanted;
      if (range->begin == range->end) share.free[r].erase(range);
      share.usage.used_bytes += bytes;
      share.usage.wasted_bytes += wanted - bytes;
      // The colour as seen from the start of the region: its pages add their constant.
      ColorShare colors = share.colors;
      DEMARC_TRY(const std::uint32_t constant,
                 colors.coloring.constant_from_rows(coloring_.masks(), regions_[r].constant));
      colors.color ^= constant;
      return ColoredBuffer(shared_from_this(), share_index, std::move(colors),
                           arena_.address() + regions_[r].offset, first, bytes, r);
    }
  }
  return missing_capability("{} bytes of coloured memory: the largest free run of this share is {}",
                            bytes, share.largest_free());
}

std::uint64_t ColoredPool::Share::largest_free() const {
  std::uint64_t largest = 0;
  for (const auto& ranges : free) {
    for (const Range& range : ranges) largest = std::max(largest, range.end - range.begin);
  }
  if (byte_cap == 0) return largest;
  return std::min(largest, byte_cap - std::min(byte_cap, usage.used_bytes + usage.wasted_bytes));
}

ColoredUsage ColoredPool::usage(std::size_t share) const {
  ColoredUsage usage = shares_.at(share).usage;
  usage.largest_free_bytes = shares_[share].largest_free();
  return usage;
}

void ColoredPool::release(std::size_t share_index, std::uint32_t region, std::uint64_t first,
                          std::uint64_t bytes) {
  Share& share = shares_[share_index];
  const std::uint64_t size = rounded(bytes);
  share.usage.used_bytes -= bytes;
  share.usage.wasted_bytes -= size - bytes;
  auto& free = share.free[region];
  auto next = std::find_if(free.begin(), free.end(),
                           [&](const Range& range) { return range.begin > first; });
  next = free.insert(next, Range{first, first + size});
  if (next + 1 != free.end() && next->end == (next + 1)->begin) {
    next->end = (next + 1)->end;
    free.erase(next + 1);
  }
  if (next != free.begin() && (next - 1)->end == next->begin) {
    (next - 1)->end = next->end;
    free.erase(next);
  }
}

}  // namespace demarc::cuda
