// Reads values of arguments and of buffers' elements from text.
#include "launch_scalar.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "demarc/base/numbers.hpp"

namespace demarc::gpu {
namespace {

// The bits behind 0f or 0d: all the digits that the type has.
std::optional<Scalar> parse_bits(ScalarType type, std::string_view text) {
  const char letter = type == ScalarType::f32 ? 'f' : 'd';
  if (type == ScalarType::f16 || text.size() != 2 + 2 * size_of(type) || text[0] != '0' ||
      (text[1] | 0x20) != letter) {
    return {};
  }
  Scalar scalar{type, 0};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, scalar.bits, 16);
  if (error != std::errc{} || stop != end) return {};
  return scalar;
}

Result<Scalar> parse_floating(ScalarType type, std::string_view text, std::string_view where) {
  if (const auto special = parse_special(type, text)) return *special;
  const auto value = parse_double(text, where);
  if (!value) {
    return invalid_input(
        "{}: '{}' is not a number of {}; decimals, nan, inf and -inf are{}", where, text,
        name_of(type),
        type == ScalarType::f16 ? "" : ", and all bits as PTX writes them (0f7fc00000)");
  }
  const Scalar scalar = make_scalar(type, *value);
  if (std::isinf(to_double(scalar))) {
    return invalid_input("{}: {} does not fit {}; infinity is written inf", where, text,
                         name_of(type));
  }
  return scalar;
}

}  // namespace

std::optional<Scalar> parse_special(ScalarType type, std::string_view text) {
  if (const auto bits = parse_bits(type, text)) return bits;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  double value = 0;
  if (text == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (text == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else {
    return {};
  }
  return make_scalar(type, std::copysign(value, negative ? -1.0 : 1.0));
}

Result<Scalar> parse_scalar(ScalarType type, std::string_view text, std::string_view where) {
  if (is_floating(type)) return parse_floating(type, text, where);
  const unsigned bits = 8 * size_of(type);
  const bool is_signed = name_of(type).front() == 'i';
  if (is_signed) {
    DEMARC_TRY(const std::int64_t value, parse_i64(text, where));
    const std::int64_t high = static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1);
    if (value < -high - 1 || value > high)
      return invalid_input("{}: {} does not fit {}", where, text, name_of(type));
    return make_scalar(type, value);
  }
  DEMARC_TRY(const std::uint64_t value, parse_u64(text, where));
  if (bits < 64 && (value >> bits) != 0)
    return invalid_input("{}: {} does not fit {}", where, text, name_of(type));
  return Scalar{type, value};
}

Result<std::vector<std::byte>> parse_hex(std::string_view digits, const std::string& where) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* begin = digits.data() + i;
    const char* end = begin + std::min<std::size_t>(2, digits.size() - i);
    const auto [stop, error] = std::from_chars(begin, end, value, 16);
    if (error != std::errc{} || stop != begin + 2) {
      return invalid_input("{}: 'hex:' takes pairs of hexadecimal digits, as in hex:00ff", where);
    }
    bytes.push_back(static_cast<std::byte>(value));
  }
  if (bytes.empty()) return invalid_input("{}: 'hex:' takes at least one pair of digits", where);
  return bytes;
}

}  // namespace demarc::gpu
