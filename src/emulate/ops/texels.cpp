// Computes texels of coordinates and values of texels, by the appendix on texture fetching of the
// CUDA programming guide.
#include "ops/texels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "demarc/gpu/launch.hpp"

namespace demarc::emulate {
namespace {

using gpu::Image;
using gpu::OutsideMode;

constexpr double weight_steps = 256;   // 8 bits behind the point
constexpr double whole_from = 0x1p24;  // floats from here on are even numbers
constexpr double far = 0x1p40;         // beyond all texels

// Wrapping and mirroring need normalized coordinates, or they clamp.
OutsideMode mode_of(const Image& image, unsigned axis) {
  const gpu::Sampling& sampling = *image.sampling;
  const OutsideMode mode = sampling.outside[axis];
  const bool repeats = mode == OutsideMode::wrap || mode == OutsideMode::mirror;
  return repeats && !sampling.normalized_coordinates ? OutsideMode::clamp : mode;
}

AxisTexel resolve(std::int64_t index, std::int64_t size, OutsideMode mode) {
  const auto remainder = [](std::int64_t value, std::int64_t by) {
    return ((value % by) + by) % by;
  };
  switch (mode) {
    case OutsideMode::clamp:
      return {.index = std::clamp<std::int64_t>(index, 0, size - 1)};
    case OutsideMode::wrap:
      return {.index = remainder(index, size)};
    case OutsideMode::mirror: {
      const std::int64_t place = remainder(index, 2 * size);
      return {.index = place < size ? place : 2 * size - 1 - place};
    }
    default:
      return {.index = index, .inside = index >= 0 && index < size};
  }
}

// In texels. What is no number counts as 0.
double place_of(const Image& image, unsigned axis, float coordinate, OutsideMode mode) {
  double at = std::isnan(coordinate) ? 0 : double{coordinate};
  const bool repeats = mode == OutsideMode::wrap || mode == OutsideMode::mirror;
  if (repeats && std::abs(at) >= whole_from) at = 0;
  if (image.sampling->normalized_coordinates) at *= image.size[axis];
  return std::clamp(at, -far, far);
}

// What the bits of an integer channel are divided by.
double largest_of(gpu::ScalarType type) {
  switch (type) {
    case gpu::ScalarType::u8:
      return 255;
    case gpu::ScalarType::i8:
      return 127;
    case gpu::ScalarType::u16:
      return 65535;
    default:
      return 32767;
  }
}

gpu::Scalar channel_of(const Image& image, const Texel& texel, unsigned channel) {
  gpu::Scalar scalar{image.type, 0};
  const std::size_t bytes = size_of(image.type);
  std::memcpy(&scalar.bits, texel.bytes.data() + channel * bytes, bytes);
  return scalar;
}

// Of a channel before the division; of the border as if divided already.
double number_of(const Image& image, const Texel& texel, unsigned channel, double largest) {
  if (!texel.inside) return texel.zero ? 0 : double{image.sampling->border[channel]} * largest;
  return std::max(gpu::to_double(channel_of(image, texel, channel)),
                  image.sampling->normalized_values ? -largest : -HUGE_VAL);
}

}  // namespace

AxisTexels texels_at(const Image& image, unsigned axis, float coordinate, bool pairs) {
  const OutsideMode mode = mode_of(image, axis);
  const std::int64_t size = image.size[axis];
  const double at = place_of(image, axis, coordinate, mode);
  AxisTexels made;
  if (!pairs) {
    made.texels[0] = resolve(static_cast<std::int64_t>(std::floor(at)), size, mode);
    return made;
  }
  const double steps = std::floor((at - 0.5) * weight_steps + 0.5);
  const double first = std::floor(steps / weight_steps);
  const double second_weight = steps / weight_steps - first;
  made.count = 2;
  for (unsigned i = 0; i < 2; ++i) {
    made.texels[i] = resolve(static_cast<std::int64_t>(first) + i, size, mode);
    made.texels[i].weight = i == 0 ? 1 - second_weight : second_weight;
  }
  return made;
}

AxisTexels texel_at(const Image& image, unsigned axis, std::int32_t index) {
  AxisTexels made;
  made.texels[0] = resolve(index, image.size[axis], OutsideMode::border);
  return made;
}

bool gives_floats(const Image& image) {
  return is_floating(image.type) || image.sampling->normalized_values;
}

std::uint32_t value_of_texels(const Image& image, std::span<const Texel> texels, unsigned channel) {
  // The fourth of those that texels do not have is one.
  const bool floats = gives_floats(image);
  if (channel >= image.channels) {
    const std::uint32_t one = floats ? std::bit_cast<std::uint32_t>(1.0F) : 1;
    return channel == gpu::most_channels - 1 ? one : 0;
  }
  const Texel& only = texels[0];
  if (!floats) {
    if (!only.inside) return 0;
    return static_cast<std::uint32_t>(
        static_cast<std::int64_t>(gpu::to_double(channel_of(image, only, channel))));
  }
  // As it is: a NaN keeps its bits.
  if (texels.size() == 1 && only.inside && image.type == gpu::ScalarType::f32)
    return static_cast<std::uint32_t>(channel_of(image, only, channel).bits);
  const double largest = is_floating(image.type) ? 1 : largest_of(image.type);
  double sum = 0;
  for (const Texel& texel : texels) sum += texel.weight * number_of(image, texel, channel, largest);
  return std::bit_cast<std::uint32_t>(static_cast<float>(sum / largest));
}

}  // namespace demarc::emulate
