// Textures and surfaces: texels of a buffer that a kernel reaches by a handle of 64 bits, such as
// cudaTextureObject_t and cudaSurfaceObject_t. A card keeps arrays in an order of its own. Here the
// texels of a row follow each other, and so do the rows of a plane, the planes and the layers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/launch/scalar_type.hpp"

namespace demarc::gpu {

enum class ImageShape { linear, one, two, three, one_layered, two_layered };

[[nodiscard]] std::string_view name_of(ImageShape shape);  // "2d-layered", as in launch files
[[nodiscard]] Result<ImageShape> parse_image_shape(std::string_view text, std::string_view where);
[[nodiscard]] unsigned dimensions_of(ImageShape shape);  // without layers
[[nodiscard]] bool has_layers(ImageShape shape);

// Which texel a coordinate outside of the image reads.
enum class OutsideMode { wrap, clamp, mirror, border };

[[nodiscard]] std::string_view name_of(OutsideMode mode);
[[nodiscard]] Result<OutsideMode> parse_outside_mode(std::string_view text, std::string_view where);

inline constexpr std::size_t max_channels = 4;

// How a texture is read.
struct Sampling {
  std::array<OutsideMode, 3> outside{OutsideMode::clamp, OutsideMode::clamp, OutsideMode::clamp};
  bool filters = false;                 // a read is the weighted mean of the texels around a place
  bool normalized_coordinates = false;  // 0 .. 1 along a dimension
  bool normalized_values = false;       // integers are read as fractions of their largest one
  std::array<float, max_channels> border{};
  friend bool operator==(const Sampling&, const Sampling&) = default;
};

struct Image {
  std::size_t buffer = 0;    // index into Launch::buffers
  std::uint64_t offset = 0;  // bytes into it
  ImageShape shape = ImageShape::two;
  ScalarType type = ScalarType::f32;  // per channel, at most 32 bits
  std::uint32_t channels = 1;
  std::array<std::uint32_t, 3> size{1, 1, 1};  // texels; 1 along a dimension that it does not have
  std::uint32_t layers = 1;
  std::uint64_t pitch = 0;           // bytes from one row to the next
  std::optional<Sampling> sampling;  // of a texture; a surface has none

  [[nodiscard]] std::uint32_t texel_bytes() const { return channels * size_of(type); }
  [[nodiscard]] std::uint64_t row_bytes() const { return std::uint64_t{size[0]} * texel_bytes(); }
  // From the first byte to the end of the last row.
  [[nodiscard]] std::uint64_t extent() const {
    const std::uint64_t rows = std::uint64_t{size[1]} * size[2] * layers;
    return (rows - 1) * pitch + row_bytes();
  }
  friend bool operator==(const Image&, const Image&) = default;
};

// "texture" or "surface".
[[nodiscard]] std::string_view kind_of(const Image& image);

// Refuses what a driver refuses, and what the emulator does not cover. Errors name the key.
[[nodiscard]] Result<void> validate(const Image& image, const std::string& where);

// The handle of an image of a launch, by its index. It is not an address, and no kernel comes upon
// it by chance. The index may be beyond the images of the launch.
[[nodiscard]] std::uint64_t image_handle(std::size_t image);
[[nodiscard]] std::optional<std::size_t> image_of_handle(std::uint64_t handle);

}  // namespace demarc::gpu
