// What measurements of coloured memory share: how slices are told apart by latencies, as in the
// probe, and what streams go over.
#pragma once

#include <vector>

#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {

inline constexpr std::uint32_t sms_measuring_together = 8;  // they do not disturb each other
inline constexpr std::uint32_t hit_repeats = 4;

// 24 SMs spread over the card, or all it has.
[[nodiscard]] std::vector<gpu::SmIndex> measuring_sms(const Gpu& gpu);

// A buffer of at most `bytes` and half of what the share has free, in whole chunks, so that the
// next one begins with a chunk too.
[[nodiscard]] Result<ColoredBuffer> whole_chunks(ColoredPool& pool, std::size_t share,
                                                 std::uint64_t bytes);
// The chunks of its first `bytes`, as numbers from the start of the arena.
[[nodiscard]] std::vector<std::uint32_t> chunks_of(const ColoredBuffer& buffer,
                                                   std::uint64_t bytes);

}  // namespace demarc::cuda
