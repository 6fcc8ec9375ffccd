// Which texels a texture reads for a coordinate, with which weights, and what a texel's bytes mean.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "demarc/launch/image.hpp"

namespace demarc::emulate {

inline constexpr unsigned max_texels = 8;  // texels per fetch
inline constexpr std::size_t max_texel_bytes = 16;
inline constexpr std::uint32_t weight_steps = 256;  // all of a weight

// One texel along one dimension.
struct AxisTexel {
  std::int64_t index = 0;
  bool inside = true;
};

// One, or two neighbours that are weighted.
struct AxisTexels {
  std::array<AxisTexel, 2> texels;
  unsigned count = 1;
  std::uint32_t second = 0;  // weight of the second, in steps
};

// Along dimension `axis`. `pairs`: both neighbours, with weights of 8 bits behind the point.
[[nodiscard]] AxisTexels texels_at(const gpu::Image& image, unsigned axis, float coordinate,
                                   bool pairs);
// Weights of the texels around a place, in steps, by their places along z, y and x.
[[nodiscard]] std::array<std::uint32_t, max_texels> weights_of(
    const std::array<AxisTexels, 3>& axes);
// By its index, whatever the texture says of coordinates and of what is outside: zero there.
[[nodiscard]] AxisTexels texel_at(const gpu::Image& image, unsigned axis, std::int32_t index);

// A texel that a fetch reads, or that the border stands for.
struct Texel {
  bool inside = false;
  std::uint64_t offset = 0;  // bytes from the image's first
  std::uint32_t weight = weight_steps;
  bool zero = false;  // outside it is zero, and not the border
  std::array<std::byte, max_texel_bytes> bytes{};
};

// The 32 bits that a register gets for a channel: of the sum of floating-point values, weighted, or
// of the only texel's integer. Channels that texels do not have are zero.
[[nodiscard]] std::uint32_t value_of_texels(const gpu::Image& image, std::span<const Texel> texels,
                                            unsigned channel);
// Whether they are floating-point values.
[[nodiscard]] bool gives_floats(const gpu::Image& image);

}  // namespace demarc::emulate
