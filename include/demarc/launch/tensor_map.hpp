// What a copy of a tensor's box needs to know of the tensor: where it lies, what its elements are,
// and how the box lies in shared memory. CUDA keeps this in 128 bytes (CUtensorMap) that the driver
// makes and only the driver can read. A launch packs it in a layout of our own, for the emulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::gpu {

enum class TensorType { u8, u16, u32, i32, u64, i64, f16, bf16, f32, f64 };

[[nodiscard]] std::uint32_t size_of(TensorType type);  // bytes
[[nodiscard]] std::string_view name_of(TensorType type);
[[nodiscard]] Result<TensorType> parse_tensor_type(std::string_view text, std::string_view where);

inline constexpr std::size_t max_tensor_dimensions = 5;

// Elements follow each other along dimension 0.
struct TensorMap {
  std::size_t buffer = 0;    // index into Launch::buffers
  std::uint64_t offset = 0;  // bytes into it
  TensorType type = TensorType::f32;
  std::vector<std::uint64_t> dims;             // elements
  std::vector<std::uint64_t> strides;          // bytes; of dimension 1 and those behind it
  std::vector<std::uint32_t> box;              // elements
  std::vector<std::uint32_t> element_strides;  // the box takes every so many elements; not along
                                               // dimension 0
  std::uint32_t swizzled_bytes = 0;            // 32, 64, 128; 0: rows follow each other as they are
  bool fill_nan = false;  // what lies outside of the tensor is loaded as NaN; else as zero

  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

// Refuses what the driver refuses. Errors name the key.
[[nodiscard]] Result<void> validate(const TensorMap& map, const std::string& where);

inline constexpr std::size_t tensor_map_bytes = 128;
using PackedTensorMap = std::array<std::byte, tensor_map_bytes>;

[[nodiscard]] PackedTensorMap pack_tensor_map(const TensorMap& map, std::uint64_t address);

struct PlacedTensorMap {
  TensorMap map;  // without a buffer
  std::uint64_t address = 0;
};
// Nothing if pack_tensor_map() did not make these bytes.
[[nodiscard]] std::optional<PlacedTensorMap> unpack_tensor_map(
    std::span<const std::byte, tensor_map_bytes> bytes);

}  // namespace demarc::gpu
