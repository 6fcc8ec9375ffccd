// Computes texels from coordinates and values from texels, by the appendix on texture fetching of
// the CUDA programming guide.
#include "ops/texels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "demarc/launch/launch.hpp"

namespace demarc::emulate {
namespace {

using gpu::Image;
using gpu::OutsideMode;

constexpr double coordinate_steps = 0x1p21;  // steps of a normalized coordinate, from 0 to 1
constexpr double whole_from = 0x1p24;        // floats from here on are even numbers
constexpr double far = 0x1p40;               // beyond all texels

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

// In texels. A normalized coordinate has 21 bits behind the point. What is not a number counts as
// 0.
double place_of(const Image& image, unsigned axis, float coordinate, OutsideMode mode) {
  double at = std::isnan(coordinate) ? 0 : double{coordinate};
  const bool repeats = mode == OutsideMode::wrap || mode == OutsideMode::mirror;
  if (repeats && std::abs(at) >= whole_from) at = 0;
  if (image.sampling->normalized_coordinates)
    at = std::floor(at * coordinate_steps) / coordinate_steps * image.size[axis];
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

// For a channel before the division; of the border as if divided already.
double number_of(const Image& image, const Texel& texel, unsigned channel, double largest) {
  if (!texel.inside) return texel.zero ? 0 : double{image.sampling->border[channel]} * largest;
  return std::max(gpu::to_double(channel_of(image, texel, channel)),
                  image.sampling->normalized_values ? -largest : -HUGE_VAL);
}

// A filter gives numbers of 16 bits where channels have 16 bits or fewer. Halves of f16 are rounded
// away from zero, those of fractions up.
double filtered(const Image& image, double value) {
  if (image.type == gpu::ScalarType::f32 || value == 0) return value;
  if (image.type == gpu::ScalarType::f16) {
    constexpr int least_exponent = -13;  // of std::frexp, below which numbers are subnormal
    constexpr int digits = 11;
    int exponent = 0;
    std::frexp(value, &exponent);
    const double step = std::ldexp(1.0, std::max(exponent, least_exponent) - digits);
    return std::round(value / step) * step;
  }
  const bool with_sign = image.type == gpu::ScalarType::i8 || image.type == gpu::ScalarType::i16;
  const double steps = with_sign ? 32767 : 65535;
  return std::floor(value * steps + 0.5) / steps;
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
  made.second = static_cast<std::uint32_t>(steps - first * weight_steps);
  made.count = 2;
  for (unsigned i = 0; i < 2; ++i)
    made.texels[i] = resolve(static_cast<std::int64_t>(first) + i, size, mode);
  return made;
}

// A plane's weight is divided along x, and what is right and left along y. Each part is rounded,
// and the rest is the other part, so that all together are one.
std::array<std::uint32_t, max_texels> weights_of(const std::array<AxisTexels, 3>& axes) {
  const auto part = [](std::uint32_t weight, std::uint32_t steps) {
    return (weight * steps + weight_steps / 2) / weight_steps;
  };
  const std::uint32_t x = axes[0].second;
  const std::uint32_t y = axes[1].second;
  const std::uint32_t z = axes[2].second;
  std::array<std::uint32_t, max_texels> weights{};
  for (unsigned plane = 0; plane < 2; ++plane) {
    const std::uint32_t whole = plane == 0 ? weight_steps - z : z;
    const std::uint32_t right = part(whole, x);
    const std::uint32_t left = whole - right;
    const std::uint32_t right_second = part(right, y);
    const std::uint32_t left_first = part(left, weight_steps - y);
    const unsigned at = 4 * plane;
    weights[at] = left_first;
    weights[at + 1] = right - right_second;
    weights[at + 2] = left - left_first;
    weights[at + 3] = right_second;
  }
  return weights;
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
  if (channel >= image.channels) return 0;
  const Texel& only = texels[0];
  if (!gives_floats(image)) {
    if (!only.inside) return 0;
    return static_cast<std::uint32_t>(
        static_cast<std::int64_t>(gpu::to_double(channel_of(image, only, channel))));
  }
  // As it is: a NaN keeps its bits.
  if (texels.size() == 1 && only.inside && image.type == gpu::ScalarType::f32)
    return static_cast<std::uint32_t>(channel_of(image, only, channel).bits);
  const double largest = is_floating(image.type) ? 1 : largest_of(image.type);
  double value = number_of(image, only, channel, largest) / largest;
  if (texels.size() > 1) {
    double sum = 0;
    for (const Texel& texel : texels)
      sum += texel.weight * number_of(image, texel, channel, largest);
    value = filtered(image, sum / weight_steps / largest);
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

}  // namespace demarc::emulate
