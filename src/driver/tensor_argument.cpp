// Asks the driver for tensor maps.
#include "tensor_argument.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace demarc::cuda {
namespace {

// CUtensorMapDataType
constexpr std::array<std::pair<gpu::TensorType, int>, 10> tensor_codes{
    {{gpu::TensorType::u8, 0},
     {gpu::TensorType::u16, 1},
     {gpu::TensorType::u32, 2},
     {gpu::TensorType::i32, 3},
     {gpu::TensorType::u64, 4},
     {gpu::TensorType::i64, 5},
     {gpu::TensorType::f16, 6},
     {gpu::TensorType::f32, 7},
     {gpu::TensorType::f64, 8},
     {gpu::TensorType::bf16, 9}}};

int code_of(gpu::TensorType type) {
  return std::find_if(tensor_codes.begin(), tensor_codes.end(),
                      [&](const auto& row) { return row.first == type; })
      ->second;
}

// CUtensorMapSwizzle
int code_of_swizzle(std::uint32_t bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

struct alignas(64) DriverTensorMap {
  std::byte bytes[gpu::tensor_map_bytes];
};

}  // namespace

Result<std::vector<std::byte>> tensor_argument(const GpuPointer& gpu, const gpu::TensorMap& map,
                                               const std::vector<std::uint64_t>& addresses) {
  const DriverApi& api = gpu->api();
  if (api.cuTensorMapEncodeTiled == nullptr)
    return missing_capability("{}: the driver has no tensor maps", gpu->name());
  const std::uint64_t address = addresses[map.buffer] + map.offset;
  DriverTensorMap made{};
  constexpr int plain_layout = 0;
  constexpr int plain_fetches = 0;
  DEMARC_CHECK(gpu->check(
      api.cuTensorMapEncodeTiled(
          made.bytes, code_of(map.type), static_cast<unsigned>(map.dims.size()), address,
          map.dims.data(), map.strides.data(), map.box.data(), map.element_strides.data(),
          plain_layout, code_of_swizzle(map.swizzled_bytes), plain_fetches, map.fill_nan ? 1 : 0),
      "the driver refuses a tensor map"));
  return std::vector<std::byte>(std::begin(made.bytes), std::end(made.bytes));
}

}  // namespace demarc::cuda
