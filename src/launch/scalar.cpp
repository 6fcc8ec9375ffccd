// Converts numbers to and from the bits of the element types of buffers.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "demarc/launch/launch.hpp"

namespace demarc::gpu {
namespace {

struct ScalarRow {
  ScalarType type;
  std::string_view name;
  std::string_view numpy_name;
  std::uint32_t bytes;
};
constexpr std::array scalar_rows{
    ScalarRow{ScalarType::i8, "i8", "i1", 1},   ScalarRow{ScalarType::u8, "u8", "u1", 1},
    ScalarRow{ScalarType::i16, "i16", "i2", 2}, ScalarRow{ScalarType::u16, "u16", "u2", 2},
    ScalarRow{ScalarType::i32, "i32", "i4", 4}, ScalarRow{ScalarType::u32, "u32", "u4", 4},
    ScalarRow{ScalarType::i64, "i64", "i8", 8}, ScalarRow{ScalarType::u64, "u64", "u8", 8},
    ScalarRow{ScalarType::f16, "f16", "f2", 2}, ScalarRow{ScalarType::f32, "f32", "f4", 4},
    ScalarRow{ScalarType::f64, "f64", "f8", 8},
};

const ScalarRow& row_of(ScalarType type) {
  return scalar_rows.at(static_cast<std::size_t>(type));
}

// IEEE binary16, round to nearest even; the detour over no narrower type keeps it single-rounded.
std::uint64_t to_half(double value) {
  const std::uint64_t sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return sign | 0x7e00U;
  if (magnitude == 0) return sign;
  if (magnitude >= 65520.0) return sign | 0x7c00U;
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);         // magnitude in [2^(exponent-1), 2^exponent)
  const int step = std::max(exponent - 11, -24);  // power of two of one unit in the last place
  const double units = std::nearbyint(std::ldexp(magnitude, -step));
  const auto whole = static_cast<std::uint64_t>(units);
  if (step == -24) return sign | whole;  // subnormal, or the first normal after rounding up
  return sign | ((static_cast<std::uint64_t>(step + 24) << 10) + whole);
}

double from_half(std::uint64_t bits) {
  const auto exponent = static_cast<int>((bits >> 10) & 31U);
  const auto fraction = static_cast<double>(bits & 1023U);
  double magnitude = std::ldexp(fraction, -24);
  if (exponent == 31) magnitude = fraction == 0 ? HUGE_VAL : NAN;
  if (exponent > 0 && exponent < 31) magnitude = std::ldexp(1024.0 + fraction, exponent - 25);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

std::uint64_t low_bytes(std::uint64_t bits, std::uint32_t bytes) {
  return bytes == 8 ? bits : bits & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::int64_t sign_extended(std::uint64_t bits, std::uint32_t bytes) {
  const unsigned unused = 64 - 8 * bytes;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace

std::uint32_t size_of(ScalarType type) {
  return row_of(type).bytes;
}

std::string_view name_of(ScalarType type) {
  return row_of(type).name;
}

std::string_view numpy_name_of(ScalarType type) {
  return row_of(type).numpy_name;
}

bool is_floating(ScalarType type) {
  return type == ScalarType::f16 || type == ScalarType::f32 || type == ScalarType::f64;
}

Result<ScalarType> parse_scalar_type(std::string_view text, std::string_view where) {
  std::string known;
  for (const ScalarRow& row : scalar_rows) {
    if (row.name == text) return row.type;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return invalid_input("{}: '{}' is not a type; the types are {}", where, text, known);
}

Scalar make_scalar(ScalarType type, double value) {
  switch (type) {
    case ScalarType::f16:
      return {type, to_half(value)};
    case ScalarType::f32:
      return {type, std::bit_cast<std::uint32_t>(static_cast<float>(value))};
    case ScalarType::f64:
      return {type, std::bit_cast<std::uint64_t>(value)};
    default:
      break;
  }
  // Beyond 2^63 only u64 has values; the double is whole there.
  if (value >= 0x1p63) return {type, low_bytes(static_cast<std::uint64_t>(value), size_of(type))};
  return make_scalar(type, static_cast<std::int64_t>(value));
}

Scalar make_scalar(ScalarType type, std::int64_t value) {
  if (is_floating(type)) return make_scalar(type, static_cast<double>(value));
  return {type, low_bytes(static_cast<std::uint64_t>(value), size_of(type))};
}

double to_double(const Scalar& scalar) {
  switch (scalar.type) {
    case ScalarType::f16:
      return from_half(scalar.bits);
    case ScalarType::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(scalar.bits));
    case ScalarType::f64:
      return std::bit_cast<double>(scalar.bits);
    case ScalarType::i8:
    case ScalarType::i16:
    case ScalarType::i32:
    case ScalarType::i64:
      return static_cast<double>(sign_extended(scalar.bits, size_of(scalar.type)));
    default:
      return static_cast<double>(scalar.bits);
  }
}

}  // namespace demarc::gpu
