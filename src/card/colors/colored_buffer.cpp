// Gives the addresses of a buffer in one share of a pool, and copies to it and from it.
#include <algorithm>

#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {

ColoredBuffer::ColoredBuffer(std::shared_ptr<ColoredPool> pool, std::size_t share_index,
                             ShareColors share, std::uint64_t first, std::uint64_t bytes,
                             std::uint32_t region)
    : pool_(std::move(pool)),
      share_index_(share_index),
      share_(std::move(share)),
      first_(first),
      bytes_(bytes),
      region_(region) {}

ColoredBuffer::~ColoredBuffer() {
  if (pool_) pool_->release(share_index_, region_, first_, bytes_);
}

ColoredBuffer::ColoredBuffer(ColoredBuffer&& other) noexcept = default;

std::uint64_t ColoredBuffer::run_bytes() const {
  return pool_->run_bytes();
}

DevicePointer ColoredBuffer::address(std::uint64_t byte) const {
  return share_.place.arena + share_.law->position(first_ + byte, pool_->table());
}

colored_layout<remainders> ColoredBuffer::remainder_layout(std::uint64_t offset) const {
  const color::RemainderSteps* steps = share_.law->device_numbers().steps;
  if (steps == nullptr) return {};
  return layout_of_remainders(*steps, share_.place, first_ + offset);
}

Result<void> ColoredBuffer::check_inside(std::uint64_t bytes, std::uint64_t offset) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
  return invalid_input("{} bytes at {} do not lie in a coloured buffer of {}", bytes, offset,
                       bytes_);
}

std::vector<ColoredBuffer::Rows> ColoredBuffer::rows(std::uint64_t bytes,
                                                     std::uint64_t offset) const {
  std::vector<Rows> all;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = first_ + offset + done;
    const std::uint64_t run = std::min(bytes - done, run_bytes() - at % run_bytes());
    const DevicePointer where = address(offset + done);
    Rows* last = all.empty() ? nullptr : &all.back();
    if (last != nullptr && last->width == run &&
        (last->count == 1 || where - last->address == last->count * last->pitch)) {
      last->pitch = (where - last->address) / last->count;
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
  DEMARC_CHECK(check_inside(bytes, offset));
  if (pool_->copier_) return pool_->copier_->upload(remainder_layout(offset), source, bytes);
  const GpuPointer& gpu = pool_->arena().gpu();
  for (const Rows& piece : rows(bytes, offset)) {
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
  DEMARC_CHECK(check_inside(bytes, offset));
  if (pool_->copier_) return pool_->copier_->download(remainder_layout(offset), target, bytes);
  const GpuPointer& gpu = pool_->arena().gpu();
  for (const Rows& piece : rows(bytes, offset)) {
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

}  // namespace demarc::cuda
