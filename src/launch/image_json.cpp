// Reads and writes what launch files say about textures and surfaces.
#include "image_json.hpp"

#include "launch_number.hpp"

namespace demarc::gpu {
namespace {

constexpr std::int64_t max_written_size = std::int64_t{1} << 28;
constexpr std::int64_t max_written_pitch = std::int64_t{1} << 40;

// Along each dimension, and the layers behind them.
Result<void> read_size(JsonObject& object, const Variables& variables, Image& image) {
  DEMARC_TRY(const Json* list, object.array("size"));
  const unsigned dimensions = dimensions_of(image.shape);
  const std::size_t wanted = dimensions + (has_layers(image.shape) ? 1 : 0);
  if (list->size() != wanted) {
    return invalid_input("{}.size: {} numbers, {} were expected for {}", object.where(),
                         list->size(), wanted, name_of(image.shape));
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    DEMARC_TRY(const std::int64_t number,
               number_within((*list)[i], variables, 0, max_written_size,
                             fmt::format("{}.size[{}]", object.where(), i)));
    (i < dimensions ? image.size[i] : image.layers) = static_cast<std::uint32_t>(number);
  }
  return {};
}

Result<Image> read_image(JsonObject& object, const Variables& variables) {
  Image image;
  DEMARC_TRY(const std::string shape, object.string("shape"));
  DEMARC_TRY(image.shape, parse_image_shape(shape, object.where() + ".shape"));
  DEMARC_TRY(const std::string type, object.string("type"));
  DEMARC_TRY(image.type, parse_scalar_type(type, object.where() + ".type"));
  DEMARC_TRY(const std::int64_t channels, object.integer_or("channels", 1, max_channels, 1));
  image.channels = static_cast<std::uint32_t>(channels);
  DEMARC_CHECK(read_size(object, variables, image));
  image.pitch = image.row_bytes();
  if (object.has("pitch")) {
    DEMARC_TRY(const Json* pitch, object.any("pitch"));
    DEMARC_TRY(const std::int64_t bytes,
               number_within(*pitch, variables, 0, max_written_pitch, object.where() + ".pitch"));
    image.pitch = static_cast<std::uint64_t>(bytes);
  }
  return image;
}

// One of two words; whether it is the second.
Result<bool> read_choice(JsonObject& object, std::string_view key, std::string_view first,
                         std::string_view second) {
  DEMARC_TRY(const std::string word, object.string_or(key, first));
  if (word == first) return false;
  if (word == second) return true;
  return invalid_input("{}.{}: '{}' is neither {} nor {}", object.where(), key, word, first,
                       second);
}

// One word for all dimensions, or a list with one for each.
Result<void> read_outside(JsonObject& object, const Image& image, Sampling& sampling) {
  if (!object.has("address")) return {};
  const std::string where = object.where() + ".address";
  DEMARC_TRY(const Json* value, object.any("address"));
  const unsigned dimensions = dimensions_of(image.shape);
  if (value->is_array() && value->size() != dimensions)
    return invalid_input("{}: {} words, {} were expected", where, value->size(), dimensions);
  for (unsigned i = 0; i < dimensions; ++i) {
    const Json& word = value->is_array() ? (*value)[i] : *value;
    if (!word.is_string())
      return invalid_input("{}: wrap, clamp, mirror or border was expected", where);
    DEMARC_TRY(sampling.outside[i], parse_outside_mode(word.get<std::string>(), where));
  }
  return {};
}

Result<void> read_border(JsonObject& object, Sampling& sampling) {
  if (!object.has("border")) return {};
  DEMARC_TRY(const Json* list, object.array("border"));
  if (list->size() != max_channels) {
    return invalid_input("{}.border: {} numbers, {} were expected", object.where(), list->size(),
                         max_channels);
  }
  for (std::size_t i = 0; i < max_channels; ++i) {
    if (!(*list)[i].is_number())
      return invalid_input("{}.border[{}]: a number was expected", object.where(), i);
    sampling.border[i] = (*list)[i].get<float>();
  }
  return {};
}

}  // namespace

Result<Image> read_texture(JsonObject& object, const Variables& variables) {
  DEMARC_TRY(Image image, read_image(object, variables));
  Sampling sampling;
  DEMARC_CHECK(read_outside(object, image, sampling));
  DEMARC_TRY(sampling.filters, read_choice(object, "filter", "point", "linear"));
  DEMARC_TRY(sampling.normalized_coordinates,
             read_choice(object, "coordinates", "texels", "normalized"));
  DEMARC_TRY(sampling.normalized_values, read_choice(object, "read", "element", "normalized"));
  DEMARC_CHECK(read_border(object, sampling));
  DEMARC_CHECK(object.finish());
  image.sampling = sampling;
  return image;
}

Result<Image> read_surface(JsonObject& object, const Variables& variables) {
  DEMARC_TRY(Image image, read_image(object, variables));
  DEMARC_CHECK(object.finish());
  return image;
}

Json image_json(const Image& image, const std::string& buffer) {
  Json out{{"buffer", buffer}, {"shape", name_of(image.shape)}, {"type", name_of(image.type)}};
  out["channels"] = image.channels;
  Json size = Json::array();
  const unsigned dimensions = dimensions_of(image.shape);
  for (unsigned i = 0; i < dimensions; ++i) size.push_back(image.size[i]);
  if (has_layers(image.shape)) size.push_back(image.layers);
  out["size"] = std::move(size);
  out["pitch"] = image.pitch;
  if (!image.sampling) return {{"surface", std::move(out)}};
  const Sampling& sampling = *image.sampling;
  Json outside = Json::array();
  for (unsigned i = 0; i < dimensions; ++i) outside.push_back(name_of(sampling.outside[i]));
  out["address"] = std::move(outside);
  if (sampling.filters) out["filter"] = "linear";
  if (sampling.normalized_coordinates) out["coordinates"] = "normalized";
  if (sampling.normalized_values) out["read"] = "normalized";
  if (sampling.border != Sampling{}.border) out["border"] = sampling.border;
  return {{"texture", std::move(out)}};
}

}  // namespace demarc::gpu
