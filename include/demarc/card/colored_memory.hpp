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
#include "demarc/card/colored_copy.hpp"
#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/remainder_colors.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/color/law.hpp"
#include "demarc/device/slice_model.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::cuda {

// Latencies of the first page of an arena and the hash bits they show. They are measured once per
// process, because SM numbers and floorsweeping differ between cards.
[[nodiscard]] Result<gpu::SliceModel> measure_slices(const MemoryTimer& timer,
                                                     const PageArena& arena);

// The constants of all pages of an arena, bit i for masks[i] of the model; nothing for pages that
// are in doubt. check_failed if more than one page in ten is in doubt. The arena must hold zeros.
[[nodiscard]] Result<std::vector<std::optional<std::uint32_t>>> measure_page_constants(
    const MemoryTimer& timer, const PageArena& arena, const gpu::SliceModel& model,
    std::uint32_t samples = 24);

// What one part of the colours looks like: the masks that decide whether a byte belongs to it and
// the value they must have.
struct ColorShare {
  color::Coloring coloring;
  std::uint32_t color = 0;
};

// `colors` is counted in the colours of `coloring`. It must be a power of two of them that differ
// by a linear space, as halves, quarters and single colours do; other sets have no closed form and
// are refused with the sets that would be right.
[[nodiscard]] Result<ColorShare> share_of_colors(const color::Coloring& coloring,
                                                 const color::ColorSet& colors);

// The colours of a share in one region of a pool.
struct ShareColors {
  color::LawPtr law;
  color::Place place;  // in this process; the arena is its own window where the law lets it
  PlacedTables placed = {};
};

// What a part of a pool asks for.
struct ShareRequest {
  color::ColorSet colors = {};  // counted in the colours of the pool
  std::uint64_t byte_cap =
      0;  // the most bytes that may be in use at a time, rounding included; 0: no cap
};
// The colours and the cap of a partition, which must name colours.
[[nodiscard]] Result<ShareRequest> share_request(const partition::Partition& partition);

struct ColoredUsage {
  std::uint64_t capacity_bytes = 0;      // of the share: what its colours hold, or its cap
  std::uint64_t used_bytes = 0;          // asked for
  std::uint64_t wasted_bytes = 0;        // lost to rounding
  std::uint64_t largest_free_bytes = 0;  // the most that one buffer may have now
};

// What timing says about the chunks of a buffer.
struct ColorAudit {
  std::uint64_t chunk_bytes = 0;               // of what one colour was found for
  std::vector<std::uint64_t> chunks_of_color;  // by colour of the pool's colouring
  std::uint64_t outside = 0;                   // chunks whose colour is not of the buffer's share
  std::uint64_t unclear = 0;  // chunks whose samples contradict each other each time
  [[nodiscard]] std::uint64_t chunks() const;
  // No chunk outside, at most one in a hundred unclear.
  [[nodiscard]] bool holds() const { return outside == 0 && unclear * 100 <= chunks(); }
};

// Which of the pages that it takes a pool keeps.
enum class PoolPages {
  all,         // one region for each constant that pages add to the colours of their chunks
  one_region,  // those of the most frequent constant: a position in the arena alone decides the
               // colour, which kernels rewritten once rely on; the others go back to the driver
};

class ColoredPool;
struct LentShare;  // lent_share.hpp

// It is freed when the last reference is destroyed, and keeps its pool alive.
class ColoredBuffer {
 public:
  ~ColoredBuffer();
  ColoredBuffer(ColoredBuffer&& other) noexcept;
  ColoredBuffer& operator=(ColoredBuffer&&) = delete;

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Bytes that follow each other at consecutive addresses: 16 KiB for the mask 0xc4000, 256 where
  // colours are remainders.
  [[nodiscard]] std::uint64_t run_bytes() const;
  // The argument that layout() and span() need: the number of masks, or `remainders`.
  [[nodiscard]] std::uint32_t mask_count() const {
    const color::DeviceNumbers numbers = share_.law->device_numbers();
    return numbers.steps != nullptr ? remainders : static_cast<std::uint32_t>(numbers.masks.size());
  }
  // Place of byte 0 among the bytes of the share.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  // Address of a byte.
  [[nodiscard]] DevicePointer address(std::uint64_t byte) const;
  // Bytes of the buffer from `byte` on that follow each other at consecutive addresses.
  [[nodiscard]] std::uint64_t run_left(std::uint64_t byte) const {
    return std::min(run_bytes() - (first_ + byte) % run_bytes(), bytes_ - byte);
  }
  // For device code. Masks must be mask_count(); a layout with more only carries the numbers, its
  // address() is wrong, and one of the other kind is empty.
  template <unsigned Masks>
  [[nodiscard]] colored_layout<Masks> layout() const;
  template <class T, unsigned Masks>
  [[nodiscard]] colored_span<T, Masks> span() const {
    return {layout<Masks>(), bytes_ / sizeof(T)};
  }

  // Copies that wait until they are done; [offset, offset + bytes) must lie in the buffer. Runs
  // that lie at equal distances go in one two-dimensional copy; remainders go by a kernel.
  [[nodiscard]] Result<void> upload(const void* source, std::uint64_t bytes,
                                    std::uint64_t offset = 0) const;
  [[nodiscard]] Result<void> download(void* target, std::uint64_t bytes,
                                      std::uint64_t offset = 0) const;
  // Finds the colour of each chunk by timing, from outside and whatever the buffer holds. Nothing
  // else may run on the card at that time. missing_capability if the pool was not measured.
  [[nodiscard]] Result<ColorAudit> audit() const;

 private:
  friend class ColoredPool;
  // Runs of equal length at equal distances.
  struct Rows {
    DevicePointer address;
    std::uint64_t pitch, width, count, done;  // `done`: bytes copied before these
  };
  [[nodiscard]] std::vector<Rows> rows(std::uint64_t bytes, std::uint64_t offset) const;
  [[nodiscard]] Result<void> check_inside(std::uint64_t bytes, std::uint64_t offset) const;
  [[nodiscard]] colored_layout<remainders> remainder_layout(std::uint64_t offset) const;
  [[nodiscard]] Result<ColorAudit> audit_masks() const;
  [[nodiscard]] Result<ColorAudit> audit_remainders() const;
  ColoredBuffer(std::shared_ptr<ColoredPool> pool, std::size_t share_index, ShareColors share,
                std::uint64_t first, std::uint64_t bytes, std::uint32_t region);
  std::shared_ptr<ColoredPool> pool_;
  std::size_t share_index_;
  ShareColors share_;    // in the region
  std::uint64_t first_;  // linear position in the region
  std::uint64_t bytes_;
  std::uint32_t region_;
};

// All colours of a piece of device memory, dealt out to shares. Not thread-safe.
class ColoredPool : public std::enable_shared_from_this<ColoredPool> {
 public:
  // Takes `bytes` of device memory, finds by timing what its pages add to the hash and arranges
  // them. The colours are those of `scheme` (color::color_scheme() of the card's description),
  // which the measurement must bear out; no two shares overlap.
  static Result<std::shared_ptr<ColoredPool>> create(const CardPointer& card,
                                                     const color::ColorScheme& scheme,
                                                     std::uint64_t bytes,
                                                     std::span<const ShareRequest> shares,
                                                     PoolPages pages = PoolPages::all,
                                                     Lending lending = Lending::none);
  // The same with masks of the caller's choice (sums of the card's linear masks), whether they keep
  // traffic apart or not: verify_colors() tells.
  static Result<std::shared_ptr<ColoredPool>> create(GpuPointer gpu,
                                                     std::span<const std::uint64_t> masks,
                                                     std::uint64_t bytes,
                                                     std::span<const ShareRequest> shares,
                                                     PoolPages pages = PoolPages::all,
                                                     Lending lending = Lending::none);
  // The same on an arena whose constants (of the colouring) are known; it is rearranged.
  static Result<std::shared_ptr<ColoredPool>> adopt(PageArena arena, color::Coloring coloring,
                                                    std::span<const std::uint32_t> constants,
                                                    std::span<const ShareRequest> shares,
                                                    PoolPages pages = PoolPages::all);

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
  [[nodiscard]] std::uint32_t colors() const;
  // The colours of a share as seen from the start of the arena. It is an error if there are several
  // regions.
  [[nodiscard]] Result<ShareColors> only_region(std::size_t share) const;
  // What another process needs to use all of a share, besides table() and the arena's pages
  // (lent_share.hpp). The pool must have one region, made to be lent, and no buffer in the share:
  // it counts nothing that borrowers use, so whoever lends a share allocates nothing in it.
  [[nodiscard]] Result<LentShare> lend(std::size_t share) const;
  // For remainders: the table that RemainderSteps need (color::RemainderColoring::table()), the
  // same for all shares. Empty if colours are parities.
  [[nodiscard]] const std::vector<std::byte>& table() const { return table_; }
  // How the pages were found, in words.
  [[nodiscard]] std::string account() const;
  // Bytes of a colour that follow each other at consecutive addresses.
  [[nodiscard]] std::uint64_t run_bytes() const;
  [[nodiscard]] const PageArena& arena() const { return arena_; }
  // How colours that are remainders were found; nullptr if colours are parities.
  [[nodiscard]] const RemainderColors* remainders() const {
    return remainders_ ? &*remainders_ : nullptr;
  }
  // The rest is for colours that are parities. The page constant, as a colour, of each page of the
  // arena after sorting: ascending.
  [[nodiscard]] const color::Coloring& coloring() const { return coloring_; }
  [[nodiscard]] std::span<const std::uint32_t> constants() const { return constants_; }

 private:
  friend class ColoredBuffer;
  struct Region {  // pages of one constant; where colours are remainders, all of them
    std::uint32_t constant;
    std::uint64_t offset;  // in the arena
    std::uint64_t bytes;
  };
  struct Share {
    std::vector<ShareColors> colors;  // by region
    std::uint64_t byte_cap = 0;
    color::ColorSet color_set;     // as asked for
    std::vector<FreeRanges> free;  // [region], linear positions
    ColoredUsage usage;
    [[nodiscard]] std::uint64_t largest_free() const;
  };
  ColoredPool(PageArena arena, color::Coloring coloring, std::vector<std::uint32_t> constants)
      : arena_(std::move(arena)),
        coloring_(std::move(coloring)),
        constants_(std::move(constants)) {}
  // `colors` and `linear`, the bytes of the share, for each region.
  void add_share(const ShareRequest& request, std::vector<ShareColors> colors,
                 std::span<const std::uint64_t> linear);
  void release(std::size_t share, std::uint32_t region, std::uint64_t first, std::uint64_t bytes);

  PageArena arena_;
  color::Coloring coloring_;
  std::vector<std::uint32_t> constants_;
  std::uint64_t pages_measured_ = 0;
  std::optional<RemainderColors> remainders_;
  std::vector<std::byte> table_;         // for remainders
  std::optional<ColoredCopier> copier_;  // for remainders
  std::vector<Region> regions_;
  std::vector<Share> shares_;
  // What measured the pages, kept for audits.
  std::optional<MemoryTimer> timer_;
  std::optional<gpu::SliceModel> model_;
};

template <unsigned Masks>
colored_layout<Masks> ColoredBuffer::layout() const {
  colored_layout<Masks> layout;
  if constexpr (Masks == remainders) {
    layout = remainder_layout(0);
  } else if (const color::DeviceNumbers numbers = share_.law->device_numbers();
             numbers.steps == nullptr) {
    layout.base = share_.place.arena;
    layout.first = first_;
    for (unsigned i = 0; i < Masks && i < numbers.masks.size(); ++i) {
      const auto mask = static_cast<unsigned>(numbers.masks[i]);
      layout.mask[i] = mask;
      layout.pivot[i] = static_cast<unsigned>(__builtin_ctz(mask));
      layout.wanted[i] = (numbers.color >> i) & 1U;
    }
  }
  return layout;
}

}  // namespace demarc::cuda
