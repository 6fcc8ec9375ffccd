// Checks textures and surfaces, and makes their handles.
#include "demarc/launch/image.hpp"

#include <algorithm>

namespace demarc::gpu {
namespace {

struct ShapeRow {
  ImageShape shape;
  std::string_view name;
  unsigned dimensions;
  bool layered;
  std::array<std::uint32_t, 3> most;  // texels of a texture, compute capability 9.0
  std::uint32_t max_layers;
};

constexpr std::array<ShapeRow, 6> shapes{{
    // clang-format off
    {ImageShape::linear,      "linear",     1, false, {1U << 28, 1, 1},          1},
    {ImageShape::one,         "1d",         1, false, {131072, 1, 1},            1},
    {ImageShape::two,         "2d",         2, false, {131072, 65536, 1},        1},
    {ImageShape::three,       "3d",         3, false, {16384, 16384, 16384},     1},
    {ImageShape::one_layered, "1d-layered", 1, true,  {32768, 1, 1},          2048},
    {ImageShape::two_layered, "2d-layered", 2, true,  {32768, 32768, 1},      2048},
    // clang-format on
}};

const ShapeRow& row_of(ImageShape shape) {
  return *std::find_if(shapes.begin(), shapes.end(),
                       [&](const ShapeRow& row) { return row.shape == shape; });
}

struct OutsideRow {
  OutsideMode mode;
  std::string_view name;
};

constexpr std::array<OutsideRow, 4> outside_modes{{{OutsideMode::wrap, "wrap"},
                                                   {OutsideMode::clamp, "clamp"},
                                                   {OutsideMode::mirror, "mirror"},
                                                   {OutsideMode::border, "border"}}};

constexpr std::uint64_t max_pitch = std::uint64_t{1} << 33;  // bytes
constexpr std::uint32_t max_channel_bytes = 4;

Result<void> check_sampling(const Image& image, const std::string& where) {
  const Sampling& sampling = *image.sampling;
  const bool floating = is_floating(image.type);
  if (sampling.normalized_values && (floating || size_of(image.type) > 2)) {
    return invalid_input(
        "{}.read: channels of {} have no normalized values; those of 8 and 16-bit "
        "integers do",
        where, name_of(image.type));
  }
  if (sampling.filters && !floating && !sampling.normalized_values) {
    return invalid_input("{}.filter: integers are filtered where they are read normalized", where);
  }
  if (sampling.border != Sampling{}.border && !floating && !sampling.normalized_values) {
    return invalid_input(
        "{}.border: it is of floating-point values, and the texture gives integers; leave it out "
        "for zeros",
        where);
  }
  Sampling plain;
  plain.normalized_values = sampling.normalized_values;
  if (image.shape == ImageShape::linear && sampling != plain) {
    return invalid_input(
        "{}: a texture of linear memory is read at whole texels, and gives zeros outside; leave "
        "out address, filter, coordinates and border",
        where);
  }
  return {};
}

}  // namespace

std::string_view name_of(ImageShape shape) {
  return row_of(shape).name;
}

Result<ImageShape> parse_image_shape(std::string_view text, std::string_view where) {
  std::string known;
  for (const ShapeRow& row : shapes) {
    if (row.name == text) return row.shape;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return invalid_input("{}: '{}' is not covered; there are {}", where, text, known);
}

unsigned dimensions_of(ImageShape shape) {
  return row_of(shape).dimensions;
}

bool has_layers(ImageShape shape) {
  return row_of(shape).layered;
}

std::string_view name_of(OutsideMode mode) {
  return std::find_if(outside_modes.begin(), outside_modes.end(),
                      [&](const OutsideRow& row) { return row.mode == mode; })
      ->name;
}

Result<OutsideMode> parse_outside_mode(std::string_view text, std::string_view where) {
  for (const OutsideRow& row : outside_modes) {
    if (row.name == text) return row.mode;
  }
  return invalid_input("{}: '{}' is none of wrap, clamp, mirror, border", where, text);
}

std::string_view kind_of(const Image& image) {
  return image.sampling ? "texture" : "surface";
}

Result<void> validate(const Image& image, const std::string& where) {
  const ShapeRow& row = row_of(image.shape);
  if (size_of(image.type) > max_channel_bytes) {
    return invalid_input(
        "{}.type: channels of {} are not covered; there are those of at most 32 "
        "bits",
        where, name_of(image.type));
  }
  if (image.channels != 1 && image.channels != 2 && image.channels != max_channels)
    return invalid_input("{}.channels: {} is none of 1, 2, 4", where, image.channels);
  for (std::size_t i = 0; i < image.size.size(); ++i) {
    if (image.size[i] < 1 || image.size[i] > row.most[i]) {
      return invalid_input("{}.size: {} is not within 1 .. {}", where, image.size[i], row.most[i]);
    }
  }
  if (image.layers < 1 || image.layers > row.max_layers) {
    return invalid_input("{}.size: {} layers are not within 1 .. {}", where, image.layers,
                         row.max_layers);
  }
  const std::uint32_t texel = image.texel_bytes();
  if (image.offset % texel != 0) {
    return invalid_input("{}.buffer: the offset {} is not a multiple of a texel's {} bytes", where,
                         image.offset, texel);
  }
  if (image.pitch % texel != 0 || image.pitch < image.row_bytes() || image.pitch > max_pitch) {
    return invalid_input("{}.pitch: {} is not a multiple of a texel's {} bytes within {} .. {}",
                         where, image.pitch, texel, image.row_bytes(), max_pitch);
  }
  if (image.sampling) return check_sampling(image, where);
  if (image.shape == ImageShape::linear)
    return invalid_input("{}.shape: a surface is of an array, and not of linear memory", where);
  return {};
}

namespace {

constexpr std::uint64_t first_handle = 0x0064'696d'6167'0001;

}  // namespace

std::uint64_t image_handle(std::size_t image) {
  return first_handle + image;
}

std::optional<std::size_t> image_of_handle(std::uint64_t handle) {
  if (handle < first_handle) return std::nullopt;
  return handle - first_handle;
}

}  // namespace demarc::gpu
