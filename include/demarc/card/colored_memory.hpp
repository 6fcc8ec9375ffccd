// Coloured memory: buffers that lie entirely in some colours of a card's memory, so that traffic to
// them stays away from what lies in other colours (docs/probe.md). Colours are parities of address
// bits (an H100) or runs of remainders (an H200). With parities, pages are sorted by their
// constant, so device code needs no table. With remainders, pages are put in the order of their
// numbers, and device code reads small tables (colored.cuh).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "demarc/base/free_ranges.hpp"
#include "demarc/card/card.hpp"
#include "demarc/card/colored.cuh"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/pool_colors.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/color/law.hpp"

namespace demarc::cuda {

// What a part of a pool asks for.
struct ShareRequest {
  color::ColorSet colors = {};  // counted in the colours of the pool
  std::uint64_t byte_cap =
      0;  // the most bytes that may be in use at a time, rounding included; 0: no cap
};

struct ColoredUsage {
  std::uint64_t capacity_bytes = 0;      // bytes of the share: what its colours hold, or its cap
  std::uint64_t used_bytes = 0;          // asked for
  std::uint64_t wasted_bytes = 0;        // lost to rounding
  std::uint64_t largest_free_bytes = 0;  // the most that one buffer may have now
};

class ColoredPool;
struct LentShare;  // lent_share.hpp

// It is freed when the last reference is destroyed, and keeps its pool alive.
class ColoredBuffer {
 public:
  ~ColoredBuffer();
  ColoredBuffer(ColoredBuffer&& other) noexcept;
  ColoredBuffer& operator=(ColoredBuffer&&) = delete;

  [[nodiscard]] std::uint64_t bytes() const { return extent_.bytes; }
  // Bytes that follow each other at consecutive addresses: 16 KiB for the mask 0xc4000, 256 where
  // colours are remainders.
  [[nodiscard]] std::uint64_t run_bytes() const;
  // The argument that layout() and span() need: the number of masks, or `remainders`.
  [[nodiscard]] std::uint32_t mask_count() const {
    const color::DeviceNumbers numbers = share_.law->device_numbers();
    return numbers.steps != nullptr ? remainders : static_cast<std::uint32_t>(numbers.masks.size());
  }
  // Byte 0 of the buffer. A `byte` below counts from there.
  [[nodiscard]] color::LinearByte first() const { return extent_.first; }
  [[nodiscard]] color::ArenaByte position(std::uint64_t byte) const;
  [[nodiscard]] color::DeviceAddress address(std::uint64_t byte) const {
    return share_.place.address(position(byte));
  }
  // Bytes of the buffer from `byte` on that follow each other at consecutive addresses.
  [[nodiscard]] std::uint64_t run_left(std::uint64_t byte) const {
    return std::min(run_bytes() - (first() + byte).raw() % run_bytes(), bytes() - byte);
  }
  // For device code. Masks must be mask_count(); a layout with more only carries the numbers, its
  // address() is wrong, and one of the other kind is empty.
  template <unsigned Masks>
  [[nodiscard]] colored_layout<Masks> layout() const;
  template <class T, unsigned Masks>
  [[nodiscard]] colored_span<T, Masks> span() const {
    return {layout<Masks>(), bytes() / sizeof(T)};
  }

  // Copies that wait until they are done; [offset, offset + bytes) must lie in the buffer.
  [[nodiscard]] Result<void> upload(const void* source, std::uint64_t bytes,
                                    std::uint64_t offset = 0) const;
  [[nodiscard]] Result<void> download(void* target, std::uint64_t bytes,
                                      std::uint64_t offset = 0) const;
  // Finds the colour of each chunk by timing, from outside and whatever the buffer holds. Nothing
  // else may run on the card at that time. missing_capability if the pool was not measured.
  [[nodiscard]] Result<ColorAudit> audit() const;

 private:
  friend class ColoredPool;
  [[nodiscard]] Result<SharePiece> piece(std::uint64_t bytes, std::uint64_t offset) const;
  [[nodiscard]] colored_layout<remainders> remainder_layout() const;
  ColoredBuffer(std::shared_ptr<ColoredPool> pool, std::size_t share_index,
                const ShareColors& share, const color::Extent& extent);
  std::shared_ptr<ColoredPool> pool_;
  std::size_t share_index_;
  ShareColors share_;
  color::Extent extent_;
};

// All colours of a piece of device memory, dealt out to shares. A position in the arena alone
// decides the colour, which kernels rewritten once rely on. Not thread-safe.
class ColoredPool : public std::enable_shared_from_this<ColoredPool> {
 public:
  // Takes `bytes` of device memory, finds by timing what its pages add to the hash, arranges those
  // that one law serves and gives the others back to the driver. The colours are those of `scheme`
  // (color::color_scheme() of the card's description, or masks of the caller's choice that
  // verify_colors() judges), which the measurement must bear out; no two shares overlap.
  static Result<std::shared_ptr<ColoredPool>> create(const CardPointer& card,
                                                     const color::ColorScheme& scheme,
                                                     std::uint64_t bytes,
                                                     std::span<const ShareRequest> shares,
                                                     Lending lending = Lending::none);
  // The same on an arena whose colours are found.
  static Result<std::shared_ptr<ColoredPool>> adopt(PageArena arena,
                                                    std::unique_ptr<PoolColors> colors,
                                                    std::span<const ShareRequest> shares);

  // missing_capability, with what is left, if the share has no run of that size or its cap would be
  // passed.
  [[nodiscard]] Result<ColoredBuffer> allocate(std::size_t share, std::uint64_t bytes);
  template <class T>
  [[nodiscard]] Result<ColoredBuffer> allocate(std::size_t share, std::uint64_t count) {
    return allocate(share, count * sizeof(T));
  }

  // The usage of a share, which must exist.
  [[nodiscard]] ColoredUsage usage(std::size_t share) const;
  [[nodiscard]] std::uint32_t shares() const { return static_cast<std::uint32_t>(shares_.size()); }
  // How its colours were found, and what follows from that.
  [[nodiscard]] const PoolColors& colors() const { return *colors_; }
  [[nodiscard]] const ShareColors& colors(std::size_t share) const {
    return shares_.at(share).colors;
  }
  // What another process needs to use all of a share, besides table() and the arena's pages
  // (lent_share.hpp). The pool must be made to be lent and have no buffer in the share: it does
  // not count what borrowers use, so a lender allocates nothing in that share.
  [[nodiscard]] Result<LentShare> lend(std::size_t share) const;
  [[nodiscard]] const PageArena& arena() const { return arena_; }

 private:
  friend class ColoredBuffer;
  struct Share {
    ShareColors colors;
    color::ColorSet color_set;  // as asked for
    std::uint64_t byte_cap = 0;
    FreeRanges<color::LinearByte> free;
    ColoredUsage usage;
    [[nodiscard]] std::uint64_t largest_free() const;
  };
  ColoredPool(PageArena arena, std::unique_ptr<PoolColors> colors)
      : arena_(std::move(arena)), colors_(std::move(colors)) {}
  void release(std::size_t share, const color::Extent& extent);

  PageArena arena_;
  std::unique_ptr<PoolColors> colors_;
  std::vector<Share> shares_;
};

template <unsigned Masks>
colored_layout<Masks> ColoredBuffer::layout() const {
  colored_layout<Masks> layout;
  if constexpr (Masks == remainders) {
    layout = remainder_layout();
  } else if (const color::DeviceNumbers numbers = share_.law->device_numbers();
             numbers.steps == nullptr) {
    layout.base = share_.place.arena.raw();
    layout.first = first().raw();
    for (unsigned i = 0; i < Masks && i < numbers.masks.size(); ++i) {
      const auto mask = static_cast<unsigned>(numbers.masks[i]);
      layout.mask[i] = mask;
      layout.pivot[i] = numbers.pivots[i];
      layout.wanted[i] = (numbers.color >> i) & 1U;
    }
  }
  return layout;
}

}  // namespace demarc::cuda
