// Reads and writes what launch files say about tensor maps.
#include "tensor_map_json.hpp"

#include "launch_number.hpp"

namespace demarc::gpu {
namespace {

template <class Number>
Result<std::vector<Number>> read_numbers(JsonObject& object, std::string_view key,
                                         const Variables& variables) {
  constexpr std::int64_t most =
      sizeof(Number) == sizeof(std::uint32_t) ? std::int64_t{UINT32_MAX} : std::int64_t{1} << 62;
  DEMARC_TRY(const Json* list, object.array(key));
  std::vector<Number> numbers;
  for (std::size_t i = 0; i < list->size(); ++i) {
    DEMARC_TRY(const std::int64_t number,
               number_within((*list)[i], variables, 0, most,
                             fmt::format("{}.{}[{}]", object.where(), key, i)));
    numbers.push_back(static_cast<Number>(number));
  }
  return numbers;
}

// For rows that follow each other.
std::vector<std::uint64_t> packed_strides(const TensorMap& map) {
  constexpr std::uint64_t beyond_all = std::uint64_t{1} << 62;
  std::vector<std::uint64_t> strides;
  std::uint64_t stride = size_of(map.type);
  for (std::size_t i = 0; i + 1 < map.dims.size(); ++i) {
    const bool large = map.dims[i] != 0 && stride > beyond_all / map.dims[i];
    stride = large ? beyond_all : stride * map.dims[i];
    strides.push_back(stride);
  }
  return strides;
}

Result<std::uint32_t> read_swizzle(JsonObject& object) {
  DEMARC_TRY(const std::string swizzle, object.string_or("swizzle", "none"));
  if (swizzle == "none") return 0;
  for (const std::uint32_t bytes : {32U, 64U, 128U}) {
    if (swizzle == std::to_string(bytes)) return bytes;
  }
  return invalid_input("{}.swizzle: '{}' is none of none, 32, 64, 128", object.where(), swizzle);
}

}  // namespace

Result<TensorMap> read_tensor_map(JsonObject& object, const Variables& variables) {
  TensorMap map;
  DEMARC_TRY(const std::string type, object.string("type"));
  DEMARC_TRY(map.type, parse_tensor_type(type, object.where() + ".type"));
  DEMARC_TRY(map.dims, read_numbers<std::uint64_t>(object, "dims", variables));
  if (object.has("strides")) {
    DEMARC_TRY(map.strides, read_numbers<std::uint64_t>(object, "strides", variables));
  } else {
    map.strides = packed_strides(map);
  }
  DEMARC_TRY(map.box, read_numbers<std::uint32_t>(object, "box", variables));
  if (object.has("element_strides")) {
    DEMARC_TRY(map.element_strides,
               read_numbers<std::uint32_t>(object, "element_strides", variables));
  } else {
    map.element_strides.assign(map.dims.size(), 1);
  }
  DEMARC_TRY(const std::string interleave, object.string_or("interleave", "none"));
  if (interleave != "none") {
    return invalid_input("{}.interleave: '{}' is not supported; only none is", object.where(),
                         interleave);
  }
  DEMARC_TRY(map.swizzled_bytes, read_swizzle(object));
  DEMARC_TRY(const std::string fill, object.string_or("fill", "zero"));
  if (fill != "zero" && fill != "nan")
    return invalid_input("{}.fill: '{}' is neither zero nor nan", object.where(), fill);
  map.fill_nan = fill == "nan";
  DEMARC_CHECK(object.finish());
  return map;
}

Json tensor_map_json(const TensorMap& map, const std::string& buffer) {
  Json out{{"buffer", buffer}, {"type", name_of(map.type)}};
  out["dims"] = map.dims;
  out["strides"] = map.strides;
  out["box"] = map.box;
  out["element_strides"] = map.element_strides;
  if (map.swizzled_bytes != 0) out["swizzle"] = std::to_string(map.swizzled_bytes);
  if (map.fill_nan) out["fill"] = "nan";
  return {{"tensor_map", std::move(out)}};
}

}  // namespace demarc::gpu
