// Reads what a buffer or a variable of a launch file holds before the launch.
#include "launch_content_reader.hpp"

#include <cmath>

#include "demarc/base/numbers.hpp"
#include "launch_check_reader.hpp"
#include "launch_number.hpp"
#include "launch_scalar.hpp"

namespace demarc::gpu {
namespace {

class ContentReader {
 public:
  ContentReader(const Launch& launch, const std::filesystem::path& folder)
      : launch_(launch), folder_(folder) {}

  Result<void> read(JsonObject& object, Buffer& buffer) {
    DEMARC_TRY(const std::string element, object.string_or("element", "u32"));
    DEMARC_TRY(buffer.element, parse_scalar_type(element, object.where() + ".element"));
    DEMARC_TRY(buffer.fill.low, object.number_or("low", 0));
    DEMARC_TRY(buffer.fill.high, object.number_or("high", 0));
    if (buffer.fill.high < buffer.fill.low)
      return invalid_input("{}: 'high' is below 'low'", object.where());
    if (!is_floating(buffer.element)) {
      DEMARC_CHECK(check_whole(buffer.fill.low, object.where() + ".low"));
      DEMARC_CHECK(check_whole(buffer.fill.high, object.where() + ".high"));
    }
    if (object.has("fill")) {
      DEMARC_TRY(const Json* fill, object.any("fill"));
      DEMARC_CHECK(read_fill(*fill, buffer, object.where() + ".fill"));
    }
    return {};
  }

 private:
  Result<void> read_fill(const Json& value, Buffer& buffer, const std::string& where) {
    Fill& fill = buffer.fill;
    if (value.is_array()) return read_values(value, buffer, where);
    if (value.is_object()) return read_structured(value, buffer, where);
    const std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
    if (text == "zero") {
      fill.kind = FillKind::zero;
    } else if (text == "iota") {
      fill.kind = FillKind::iota;
    } else if (text == "random") {
      fill.kind = FillKind::random;
    } else if (text.starts_with('@') && text.size() > 1) {
      fill.kind = FillKind::file;
      fill.file = (folder_ / text.substr(1)).string();
    } else if (text.starts_with(hex_mark)) {
      fill.kind = FillKind::bytes;
      DEMARC_TRY(fill.bytes, parse_hex(std::string_view(text).substr(hex_mark.size()), where));
    } else {
      return invalid_input(
          "{}: '{}' is not a content; expected zero, iota, random, @file, hex:00ff, a list of "
          "values, "
          "{{\"pointers\": BUFFER, …}} or "
          "{{\"generator\": NAME, …}}",
          where, text);
    }
    return {};
  }

  Result<void> read_values(const Json& list, Buffer& buffer, const std::string& where) {
    Fill& fill = buffer.fill;
    fill.kind = FillKind::values;
    for (const Json& item : list) {
      DEMARC_TRY(const double value, read_value(item, buffer.element, where));
      fill.values.push_back(value);
    }
    if (fill.values.empty()) return invalid_input("{}: at least one value was expected", where);
    return {};
  }

  Result<double> read_value(const Json& item, ScalarType type, const std::string& where) {
    if (item.is_string() && is_floating(type)) {
      if (const auto special = parse_special(type, item.get<std::string>()))
        return to_double(*special);
    }
    if (!item.is_number_float()) {
      DEMARC_TRY(const std::int64_t number, number_of(item, launch_.parameters, where));
      return static_cast<double>(number);
    }
    const auto value = item.get<double>();
    if (!is_floating(type)) DEMARC_CHECK(check_whole(value, where));
    return value;
  }

  // For an element that is not a floating-point number.
  static Result<void> check_whole(double value, const std::string& where) {
    constexpr double most = 0x1p62;
    if (value == std::trunc(value) && std::abs(value) <= most) return {};
    return invalid_input("{}: {} is not a whole number of at most 2^62, which the elements need",
                         where, value);
  }

  Result<void> read_structured(const Json& value, Buffer& buffer, const std::string& where) {
    DEMARC_TRY(auto object, JsonObject::of(value, where));
    Fill& fill = buffer.fill;
    if (object.has("pointers")) {
      fill.kind = FillKind::pointers;
      buffer.element = ScalarType::u64;
      DEMARC_TRY(const std::string target, object.string("pointers"));
      DEMARC_TRY(fill.target, buffer_index(launch_.buffers, target, where));
      DEMARC_TRY(const Json* stride, object.any("stride"));
      DEMARC_TRY(const std::int64_t bytes, number_within(*stride, launch_.parameters, 0,
                                                         max_buffer_bytes, where + ".stride"));
      fill.stride = static_cast<std::uint64_t>(bytes);
      return object.finish();
    }
    fill.kind = FillKind::generated;
    DEMARC_TRY(fill.generator, object.string("generator"));
    for (const auto& [name, text] : value.items()) {
      if (name == "generator") continue;
      DEMARC_TRY(fill.parameters[name],
                 number_of(text, launch_.parameters, fmt::format("{}.{}", where, name)));
    }
    return {};
  }

  const Launch& launch_;
  const std::filesystem::path& folder_;
};

}  // namespace

Result<void> read_content(JsonObject& object, const Launch& launch,
                          const std::filesystem::path& folder, Buffer& buffer) {
  return ContentReader(launch, folder).read(object, buffer);
}

}  // namespace demarc::gpu
