// Pools of coloured memory on the stand-in.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "demarc/card/colored_memory.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/pages.hpp"
#include "fake_card.hpp"
#include "sanitized.hpp"

namespace demarc::test {

inline constexpr std::uint64_t half_mask[] = {0xc4000};
inline constexpr cuda::ShareRequest both_halves[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};

// The masks of a described card's modules, as far as they lie within a page of 2 MiB.
inline std::vector<std::uint64_t> module_masks_in_page(const char* card) {
  auto masks = gpu::find_device(card).value().address_map->module.rows;
  for (std::uint64_t& mask : masks) mask &= (std::uint64_t{2} << 20U) - 1;
  return masks;
}
// Those of them, and of their sums, that are constant over pages of 4 KiB.
inline std::vector<std::uint64_t> page_masks(const char* card) {
  auto masks = gpu::masks_at_granularity(module_masks_in_page(card), gpu::smallest_page_bytes);
  // A window lies at its arena's address divided by the number of colours. For eight of them that
  // is where a sanitizer keeps its shadow.
  if (sanitized) masks.resize(std::min<std::size_t>(masks.size(), 2));
  return masks;
}
// The small GPU of tests with such a memory.
inline fake::FakeConfig with_memory_of(const char* card) {
  fake::FakeConfig config = fake::small_gpu();
  const auto masks = module_masks_in_page(card);
  std::fill(std::begin(config.masks), std::end(config.masks), 0);
  std::copy(masks.begin(), masks.end(), std::begin(config.masks));
  config.slices_of_module = 1;
  return config;
}

// Colours by masks, on a card whose TPCs were found before anything upset it.
inline Result<std::shared_ptr<cuda::ColoredPool>> parity_pool(
    std::uint64_t bytes, std::span<const cuda::ShareRequest> shares = both_halves,
    std::span<const std::uint64_t> masks = half_mask,
    const fake::FakeConfig& config = fake::small_gpu(),
    cuda::Lending lending = cuda::Lending::none) {
  fake::FakeConfig calm = config;
  calm.upset_from = calm.upset_until = 0;
  calm.latency_noise = fake::small_gpu().latency_noise;
  DEMARC_TRY(const auto card, fake_card(calm, false));
  configure(config);
  DEMARC_TRY(const auto scheme, color::scheme_of_masks(masks));
  return cuda::ColoredPool::create(card, scheme, bytes, shares, lending);
}

// With what is said of its pages in the place of what measuring finds.
inline Result<std::shared_ptr<cuda::ColoredPool>> pool_of_constants(
    const cuda::GpuPointer& gpu, const std::vector<std::uint32_t>& constants,
    std::span<const cuda::ShareRequest> shares = both_halves,
    cuda::Lending lending = cuda::Lending::none) {
  DEMARC_TRY(auto arena, cuda::PageArena::create(gpu, constants.size(), lending));
  DEMARC_TRY(auto coloring, color::Coloring::make(half_mask, arena.page_bytes()));
  DEMARC_TRY(auto colors, cuda::given_parities(arena, std::move(coloring), constants));
  return cuda::ColoredPool::adopt(std::move(arena), std::move(colors), shares);
}

}  // namespace demarc::test
