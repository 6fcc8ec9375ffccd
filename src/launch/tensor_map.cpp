// Checks tensor maps, and packs them into 128 bytes of our own layout.
#include "demarc/launch/tensor_map.hpp"

#include <algorithm>
#include <cstring>

namespace demarc::gpu {
namespace {

struct TensorTypeRow {
  TensorType type;
  std::string_view name;
  std::uint32_t bytes;
  bool floating;
};

constexpr std::array<TensorTypeRow, 10> tensor_types{{
    // clang-format off
    {TensorType::u8,   "u8",   1, false},
    {TensorType::u16,  "u16",  2, false},
    {TensorType::u32,  "u32",  4, false},
    {TensorType::i32,  "i32",  4, false},
    {TensorType::u64,  "u64",  8, false},
    {TensorType::i64,  "i64",  8, false},
    {TensorType::f16,  "f16",  2, true},
    {TensorType::bf16, "bf16", 2, true},
    {TensorType::f32,  "f32",  4, true},
    {TensorType::f64,  "f64",  8, true},
    // clang-format on
}};

const TensorTypeRow& tensor_row(TensorType type) {
  return *std::find_if(tensor_types.begin(), tensor_types.end(),
                       [&](const TensorTypeRow& row) { return row.type == type; });
}

constexpr std::uint64_t max_extent = std::uint64_t{1} << 32;
constexpr std::uint64_t max_stride = std::uint64_t{1} << 40;  // bytes; it stays below
constexpr std::uint32_t max_box = 256;
constexpr std::uint32_t max_step = 8;
constexpr std::uint64_t granule = 16;  // bytes

Result<void> check_count(std::size_t found, std::size_t wanted, const std::string& where) {
  if (found == wanted) return {};
  return invalid_input("{}: {} numbers, {} were expected", where, found, wanted);
}

template <class Numbers>
Result<void> check_range(const Numbers& numbers, std::uint64_t low, std::uint64_t high,
                         const std::string& where) {
  for (const std::uint64_t number : numbers) {
    if (number < low || number > high)
      return invalid_input("{}: {} is not within {} .. {}", where, number, low, high);
  }
  return {};
}

// The layout of the bytes. A writer of another map there, or of none, has another mark.
struct TensorMapWords {
  static constexpr std::uint32_t made = 0x706d7464;  // "dtmp"
  std::uint32_t mark;
  std::uint8_t type;
  std::uint8_t dimensions;
  std::uint8_t swizzled_bytes;
  std::uint8_t fill_nan;
  std::uint64_t address;
  std::uint64_t dims[max_tensor_dimensions];
  std::uint64_t strides[max_tensor_dimensions - 1];
  std::uint16_t box[max_tensor_dimensions];
  std::uint8_t element_strides[max_tensor_dimensions];
};
static_assert(sizeof(TensorMapWords) <= tensor_map_bytes);

}  // namespace

std::uint32_t size_of(TensorType type) {
  return tensor_row(type).bytes;
}

std::string_view name_of(TensorType type) {
  return tensor_row(type).name;
}

Result<TensorType> parse_tensor_type(std::string_view text, std::string_view where) {
  std::string known;
  for (const TensorTypeRow& row : tensor_types) {
    if (row.name == text) return row.type;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return invalid_input("{}: '{}' is not a type of a tensor's elements; the types are {}", where,
                       text, known);
}

Result<void> validate(const TensorMap& map, const std::string& where) {
  const std::size_t dimensions = map.dims.size();
  if (dimensions == 0 || dimensions > max_tensor_dimensions) {
    return invalid_input("{}.dims: a tensor has 1 to {} dimensions, found {}", where,
                         max_tensor_dimensions, dimensions);
  }
  DEMARC_CHECK(check_range(map.dims, 1, max_extent, where + ".dims"));
  DEMARC_CHECK(check_count(map.strides.size(), dimensions - 1, where + ".strides"));
  DEMARC_CHECK(check_range(map.strides, 0, max_stride - 1, where + ".strides"));
  for (const std::uint64_t stride : map.strides) {
    if (stride % granule != 0)
      return invalid_input("{}.strides: {} is not a multiple of {} bytes", where, stride, granule);
  }
  DEMARC_CHECK(check_count(map.box.size(), dimensions, where + ".box"));
  DEMARC_CHECK(check_range(map.box, 1, max_box, where + ".box"));
  DEMARC_CHECK(check_count(map.element_strides.size(), dimensions, where + ".element_strides"));
  DEMARC_CHECK(check_range(map.element_strides, 1, max_step, where + ".element_strides"));
  const std::uint32_t row = map.box[0] * size_of(map.type);
  if (row % granule != 0) {
    return invalid_input("{}.box: a row of {} elements has {} bytes, which is not a multiple of {}",
                         where, map.box[0], row, granule);
  }
  if (map.swizzled_bytes != 0 && map.swizzled_bytes != 32 && map.swizzled_bytes != 64 &&
      map.swizzled_bytes != 128) {
    return invalid_input("{}.swizzle: {} is none of none, 32, 64, 128", where, map.swizzled_bytes);
  }
  if (map.swizzled_bytes != 0 && row > map.swizzled_bytes) {
    return invalid_input("{}.box: a row of {} bytes is longer than the {} that are swizzled", where,
                         row, map.swizzled_bytes);
  }
  if (map.fill_nan && !tensor_row(map.type).floating)
    return invalid_input("{}.fill: elements of {} have no NaN", where, name_of(map.type));
  if (map.offset % granule != 0)
    return invalid_input("{}.buffer: the offset {} is not a multiple of {}", where, map.offset,
                         granule);
  return {};
}

PackedTensorMap pack_tensor_map(const TensorMap& map, std::uint64_t address) {
  TensorMapWords words{};
  words.mark = TensorMapWords::made;
  words.type = static_cast<std::uint8_t>(map.type);
  words.dimensions = static_cast<std::uint8_t>(map.dims.size());
  words.swizzled_bytes = static_cast<std::uint8_t>(map.swizzled_bytes);
  words.fill_nan = map.fill_nan ? 1 : 0;
  words.address = address;
  std::copy(map.dims.begin(), map.dims.end(), words.dims);
  std::copy(map.strides.begin(), map.strides.end(), words.strides);
  for (std::size_t i = 0; i < map.dims.size(); ++i) {
    words.box[i] = static_cast<std::uint16_t>(map.box[i]);
    words.element_strides[i] = static_cast<std::uint8_t>(map.element_strides[i]);
  }
  PackedTensorMap packed{};
  std::memcpy(packed.data(), &words, sizeof words);
  return packed;
}

std::optional<PlacedTensorMap> unpack_tensor_map(
    std::span<const std::byte, tensor_map_bytes> bytes) {
  TensorMapWords words;
  std::memcpy(&words, bytes.data(), sizeof words);
  if (words.mark != TensorMapWords::made || words.type >= tensor_types.size() ||
      words.dimensions == 0 || words.dimensions > max_tensor_dimensions)
    return std::nullopt;
  PlacedTensorMap placed;
  TensorMap& map = placed.map;
  placed.address = words.address;
  map.type = static_cast<TensorType>(words.type);
  map.swizzled_bytes = words.swizzled_bytes;
  map.fill_nan = words.fill_nan != 0;
  map.dims.assign(words.dims, words.dims + words.dimensions);
  map.strides.assign(words.strides, words.strides + (words.dimensions - 1));
  map.box.assign(words.box, words.box + words.dimensions);
  map.element_strides.assign(words.element_strides, words.element_strides + words.dimensions);
  if (!validate(map, "")) return std::nullopt;
  return placed;
}

}  // namespace demarc::gpu
