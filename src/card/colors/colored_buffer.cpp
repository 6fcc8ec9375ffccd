// Gives the addresses of a buffer in one share of a pool, and copies to it and from it.
#include "demarc/card/colored_memory.hpp"
#include "demarc/card/remainder_colors.hpp"

namespace demarc::cuda {

ColoredBuffer::ColoredBuffer(std::shared_ptr<ColoredPool> pool, std::size_t share_index,
                             const ShareColors& share, const color::Extent& extent)
    : pool_(std::move(pool)), share_index_(share_index), share_(share), extent_(extent) {}

ColoredBuffer::~ColoredBuffer() {
  if (pool_) pool_->release(share_index_, extent_);
}

ColoredBuffer::ColoredBuffer(ColoredBuffer&& other) noexcept = default;

std::uint64_t ColoredBuffer::run_bytes() const {
  return pool_->colors().run_bytes();
}

color::ArenaByte ColoredBuffer::position(std::uint64_t byte) const {
  return share_.law->position(first() + byte, pool_->colors().table());
}

colored_layout<remainders> ColoredBuffer::remainder_layout() const {
  const color::RemainderSteps* steps = share_.law->device_numbers().steps;
  if (steps == nullptr) return {};
  return layout_of_remainders(*steps, share_.place, first());
}

Result<SharePiece> ColoredBuffer::piece(std::uint64_t bytes, std::uint64_t offset) const {
  if (offset <= extent_.bytes && bytes <= extent_.bytes - offset) {
    return SharePiece{pool_->arena(), share_, {first() + offset, bytes}};
  }
  return invalid_input("{} bytes at {} do not lie in a coloured buffer of {}", bytes, offset,
                       extent_.bytes);
}

Result<void> ColoredBuffer::upload(const void* source, std::uint64_t bytes,
                                   std::uint64_t offset) const {
  DEMARC_TRY(const SharePiece to, piece(bytes, offset));
  return pool_->colors().upload(to, source);
}

Result<void> ColoredBuffer::download(void* target, std::uint64_t bytes,
                                     std::uint64_t offset) const {
  DEMARC_TRY(const SharePiece from, piece(bytes, offset));
  return pool_->colors().download(from, target);
}

Result<ColorAudit> ColoredBuffer::audit() const {
  DEMARC_TRY(const SharePiece all, piece(bytes(), 0));
  return pool_->colors().audit(all, pool_->shares_[share_index_].color_set);
}

}  // namespace demarc::cuda
