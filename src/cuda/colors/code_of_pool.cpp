// Makes the code that keeps to a share of a pool of this process.
#include "demarc/cuda/colored_code.hpp"

namespace demarc::cuda {
namespace {

// The layout is of byte 0. The arena is its own window.
color::RemainderAddressing addressing_of(const colored_layout<remainders>& layout,
                                         DevicePointer arena) {
  const std::uint64_t begin = layout.first >> layout.chunk_shift;
  return {{.chunk_shift = layout.chunk_shift,
           .page_shift = layout.page_shift,
           .pattern_bits = layout.pattern_bits},
          {.arena = layout.base,
           .table = layout.table,
           .pages = layout.pages,
           .before = static_cast<std::uint32_t>((arena >> layout.chunk_shift) - begin),
           .end = layout.end,
           .reciprocal = layout.reciprocal,
           .reciprocal_shift = layout.reciprocal_shift,
           .skipped = layout.skipped}};
}

}  // namespace

Result<ColoredCode> ColoredCode::of(const ColoredPool& pool, std::size_t share) {
  if (share >= pool.shares()) {
    return invalid_input("share {}: the pool has {}", share, pool.shares());
  }
  DEMARC_TRY(const ShareColors colors, pool.only_region(share));
  const DevicePointer arena = pool.arena().address();
  const gpu::ComputeCapability card = pool.arena().gpu()->compute_capability();
  if (const auto* remainders = std::get_if<RemainderShare>(&colors)) {
    return ColoredCode(arena, addressing_of(remainders->layout, arena), card);
  }
  const auto& parities = std::get<ColorShare>(colors);
  const auto masks = parities.coloring.masks();
  color::Parities addressing{{masks.begin(), masks.end()}, parities.color};
  const DevicePointer window = color::colored_pointer(arena, 0, addressing);
  return ColoredCode(window, std::move(addressing), card);
}

}  // namespace demarc::cuda
