// Pools of coloured memory on the stand-in.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "demarc/card/colored_memory.hpp"
#include "fake_card.hpp"

namespace demarc::test {

inline constexpr std::uint64_t half_mask[] = {0xc4000};
inline constexpr cuda::ShareRequest both_halves[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};

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
