// Random boxes of tensors, copied element by element as the manual says.
#include <gtest/gtest.h>

#include <random>

#include "tensor_kernels.hpp"

namespace demarc::emulate {
namespace {

using gpu::TensorMap;
using gpu::TensorType;
using test::Box;
using test::load_of;
using test::own_word;
using test::run_tensor;
using test::store_of;
using test::tensor_bytes;
using test::tile_bytes;

// Takes each element of the box, as the manual and the driver describe a map: its row's and its own
// position, its byte in the tensor's buffer and its byte in the tile.
struct BoxElement {
  bool row_inside;
  std::int64_t column;  // of the tensor
  std::uint64_t in_tensor;
  std::uint32_t in_tile;
};

template <class Take>
void for_each_element(const TensorMap& map, const Box& box, Take take) {
  const std::uint32_t bytes = size_of(map.type);
  const std::size_t dimensions = map.dims.size();
  std::vector<std::uint32_t> at(dimensions, 0);
  const std::uint32_t pitch = map.swizzled_bytes != 0 ? map.swizzled_bytes : map.box[0] * bytes;
  for (std::uint32_t row = 0;; ++row) {
    bool row_inside = true;
    std::uint64_t start = map.offset;
    for (std::size_t i = 1; i < dimensions; ++i) {
      const std::int64_t position = box.corner[i] + std::int64_t{at[i]};
      row_inside = row_inside && position >= 0 && position < static_cast<std::int64_t>(map.dims[i]);
      start += static_cast<std::uint64_t>(position) * map.strides[i - 1];
    }
    for (std::uint32_t column = 0; column < map.box[0]; ++column) {
      const std::int64_t position = box.corner[0] + std::int64_t{column};
      const std::uint32_t linear = box.place + row * pitch + column * bytes;
      // 16-byte chunks of a line of 128 bytes change places with the line's number.
      const std::uint32_t turn =
          map.swizzled_bytes == 0 ? 0 : linear / 128 % (map.swizzled_bytes / 16);
      take(BoxElement{row_inside, position, start + static_cast<std::uint64_t>(position) * bytes,
                      linear / 128 * 128 + ((linear % 128 / 16) ^ turn) * 16 + linear % 16});
    }
    std::size_t i = 1;
    for (; i < dimensions; ++i) {
      at[i] += map.element_strides[i];
      if (at[i] < map.box[i]) break;
      at[i] = 0;
    }
    if (i >= dimensions) return;
  }
}

std::uint8_t byte_of(std::uint64_t first_word, std::uint64_t at) {
  return static_cast<std::uint8_t>((first_word + at / 4) >> (8 * (at % 4)));
}

std::vector<std::uint8_t> expected_tile(const TensorMap& map, const Box& box) {
  std::vector<std::uint8_t> tile(tile_bytes, 0xee);
  for_each_element(map, box, [&](const BoxElement& one) {
    const bool inside =
        one.row_inside && one.column >= 0 && one.column < static_cast<std::int64_t>(map.dims[0]);
    for (std::uint32_t byte = 0; byte < size_of(map.type); ++byte) {
      const std::uint8_t nan = byte % 2 == 0 ? 0xf7 : 0x7f;
      const std::uint8_t filler = map.fill_nan ? nan : std::uint8_t{0};
      tile[one.in_tile + byte] = inside ? byte_of(0, one.in_tensor + byte) : filler;
    }
  });
  return tile;
}

// Sixteen bytes whose first element lies in the tensor are written, whatever is behind it.
std::vector<std::uint8_t> expected_tensor(const TensorMap& map, const Box& box) {
  std::vector<std::uint8_t> tensor(tensor_bytes);
  for (std::size_t at = 0; at < tensor.size(); ++at) tensor[at] = byte_of(0, at);
  const auto chunk = static_cast<std::int64_t>(16 / size_of(map.type));
  for_each_element(map, box, [&](const BoxElement& one) {
    const std::int64_t first = one.column - one.column % chunk;
    if (!one.row_inside || first >= static_cast<std::int64_t>(map.dims[0])) return;
    for (std::uint32_t byte = 0; byte < size_of(map.type); ++byte)
      tensor[one.in_tensor + byte] = byte_of(own_word, one.in_tile + byte);
  });
  return tensor;
}

struct RandomBox {
  TensorMap map;
  Box box;
  std::uint32_t bytes = 0;
};

RandomBox random_box(std::mt19937& random) {
  const auto up_to = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % most);
  };
  constexpr TensorType types[] = {TensorType::u8,  TensorType::f16, TensorType::i32,
                                  TensorType::f32, TensorType::u64, TensorType::f64};
  RandomBox made;
  TensorMap& map = made.map;
  map.type = types[up_to(6)];
  map.offset = 16 * up_to(4);
  const std::uint32_t element = size_of(map.type);
  const std::uint32_t dimensions = 1 + up_to(5);
  constexpr std::uint32_t swizzles[] = {0, 32, 64, 128};
  map.swizzled_bytes = swizzles[up_to(4)];
  const std::uint32_t row =
      map.swizzled_bytes == 0 ? 16 * (1 + up_to(8)) : 16 * (1 + up_to(map.swizzled_bytes / 16));
  map.fill_nan = (map.type == TensorType::f16 || map.type == TensorType::f32) && up_to(2) == 0;
  map.dims = {1 + up_to(256 / element)};
  map.box = {row / element};
  map.element_strides = {1 + up_to(3)};
  made.box.corner = {(static_cast<std::int32_t>(up_to(12)) - 4) *
                     static_cast<std::int32_t>(16 / element)};
  made.box.place = 128 * up_to(8);
  std::uint64_t stride = 256;
  std::uint32_t rows = 1;
  for (std::uint32_t i = 1; i < dimensions; ++i) {
    map.dims.push_back(1 + up_to(i < 4 ? 4 : 3));
    map.strides.push_back(stride);
    stride *= 4;
    map.box.push_back(1 + up_to(i < 3 ? 5 : 2));
    map.element_strides.push_back(1 + up_to(3));
    made.box.corner.push_back(static_cast<std::int32_t>(up_to(8)) - 3);
    rows *= (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  }
  made.bytes = rows * row;
  return made;
}

TEST(TensorCopies, put_each_element_where_the_map_says) {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    const RandomBox made = random_box(random);
    const auto tile = run_tensor(load_of(made.box, made.bytes), made.map).tile;
    ASSERT_EQ(tile, expected_tile(made.map, made.box)) << i << load_of(made.box, made.bytes);
  }
}

TEST(TensorCopies, take_each_element_where_the_map_says) {
  std::mt19937 random(8);
  for (int i = 0; i < 150; ++i) {
    RandomBox made = random_box(random);
    for (std::int32_t& at : made.box.corner) at = std::max(at, 0);
    const auto tensor = run_tensor(store_of(made.box), made.map).tensor;
    ASSERT_EQ(tensor, expected_tensor(made.map, made.box)) << i << store_of(made.box);
  }
}

}  // namespace
}  // namespace demarc::emulate
