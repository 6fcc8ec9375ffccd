// Conversions between the number formats of PTX.
#include <bit>
#include <cfenv>
#include <cmath>

#include "lanes/functions.hpp"

namespace demarc::emulate {

namespace {

struct SmallFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
};

SmallFormat small_format(LaneType type) {
  switch (type) {
    case LaneType::bf16:
      return {8, 7, true};
    case LaneType::tf32:
      return {8, 10, true};
    case LaneType::e4m3x2:
      return {4, 3, false};
    case LaneType::e5m2x2:
      return {5, 2, true};
    default:
      return {5, 10, true};
  }
}

double small_to_double(std::uint64_t bits, const SmallFormat& format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(bits & ((1U << format.mantissa_bits) - 1));
  const auto exponent =
      static_cast<int>((bits >> format.mantissa_bits) & ((1U << format.exponent_bits) - 1));
  const bool negative = ((bits >> (format.exponent_bits + format.mantissa_bits)) & 1U) != 0;
  const int top = (1 << format.exponent_bits) - 1;
  double value = 0;
  if (exponent == top && format.has_infinity) {
    value = mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == top && mantissa == (1 << format.mantissa_bits) - 1) {
    value = std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  } else {
    value =
        std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

// Rounds a double to a narrow format. `finite`: out of range gives the largest finite value
// (cvt.satfinite).
std::uint64_t double_to_small(double value, const SmallFormat& format, Rounding rounding,
                              bool finite) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint64_t sign =
      std::signbit(value) ? std::uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  const std::uint64_t top = (std::uint64_t{1} << format.exponent_bits) - 1;
  const std::uint64_t ones = (std::uint64_t{1} << format.mantissa_bits) - 1;
  if (std::isnan(value)) return (top << format.mantissa_bits) | ones;
  const std::uint64_t infinity = top << format.mantissa_bits;
  const std::uint64_t largest = format.has_infinity ? infinity - 1 : infinity | (ones - 1);
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | (finite || !format.has_infinity ? largest : infinity);
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  int lsb = exponent - 1 - format.mantissa_bits;
  lsb = std::max(lsb, 1 - bias - format.mantissa_bits);
  const double scaled = std::ldexp(
      magnitude, -lsb);  // exact unless far below the format, where the sticky rest counts
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  bool up = false;
  switch (rounding) {
    case Rounding::rz:
      break;
    case Rounding::rm:
      up = sign != 0 && rest > 0;
      break;
    case Rounding::rp:
      up = sign == 0 && rest > 0;
      break;
    case Rounding::rna:
      up = rest >= 0.5;
      break;
    default:
      up = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0);
      break;
  }
  if (up) whole += 1;
  // whole * 2^lsb, as bits: denormals and the carry into the next exponent come out right by
  // addition.
  const auto mantissa = static_cast<std::uint64_t>(whole);
  const int biased_exponent = lsb + format.mantissa_bits + bias;
  const auto biased = static_cast<std::uint64_t>(biased_exponent);
  std::uint64_t bits = 0;
  if (mantissa <= ones) {
    bits = mantissa;
  } else {
    bits = (biased << format.mantissa_bits) + (mantissa - ones - 1);
  }
  const bool directed_in = rounding == Rounding::rz || (rounding == Rounding::rm && sign == 0) ||
                           (rounding == Rounding::rp && sign != 0);
  if (bits > largest) bits = finite || directed_in || !format.has_infinity ? largest : infinity;
  return sign | bits;
}

bool lane_is_float(LaneType type) {
  switch (type) {
    case LaneType::f16:
    case LaneType::bf16:
    case LaneType::tf32:
    case LaneType::f32:
    case LaneType::f64:
    case LaneType::e4m3x2:
    case LaneType::e5m2x2:
      return true;
    default:
      return false;
  }
}

bool lane_is_signed(LaneType type) {
  return type == LaneType::s8 || type == LaneType::s16 || type == LaneType::s32 ||
         type == LaneType::s64;
}

std::int64_t lane_sign_extend(std::uint64_t bits, unsigned bytes) {
  const unsigned shift = 64 - bytes * 8;
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

std::uint64_t lane_truncate(std::uint64_t bits, unsigned bytes) {
  return bytes >= 8 ? bits : bits & ((std::uint64_t{1} << (bytes * 8)) - 1);
}

int host_rounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::rz:
      return FE_TOWARDZERO;
    case Rounding::rm:
      return FE_DOWNWARD;
    case Rounding::rp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// The hardware narrows in its current rounding mode; volatile keeps the compiler from moving or
// folding it.
float narrow_to_float(double value, Rounding rounding) {
  const int before = std::fegetround();
  std::fesetround(host_rounding(rounding));
  const volatile double input = value;
  const volatile float result = static_cast<float>(input);
  std::fesetround(before);
  return result;
}

// Zero apart: compilers convert unsigned integers by subtractions that give -0 when rounding down.
template <class Integer>
float integer_to_float(Integer value, Rounding rounding) {
  if (value == 0) return 0.0F;
  const int before = std::fegetround();
  std::fesetround(host_rounding(rounding));
  const volatile Integer input = value;
  const volatile float result = static_cast<float>(input);
  std::fesetround(before);
  return result;
}
template <class Integer>
double integer_to_double(Integer value, Rounding rounding) {
  if (value == 0) return 0.0;
  const int before = std::fegetround();
  std::fesetround(host_rounding(rounding));
  const volatile Integer input = value;
  const volatile double result = static_cast<double>(input);
  std::fesetround(before);
  return result;
}

double round_to_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::rzi:
    case Rounding::rz:
      return std::trunc(value);
    case Rounding::rmi:
    case Rounding::rm:
      return std::floor(value);
    case Rounding::rpi:
    case Rounding::rp:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

std::uint64_t float_to_integer(double value, LaneType from, LaneType to, Rounding rounding) {
  const unsigned bytes = lane_bytes(to);
  if (std::isnan(value)) {
    const bool zero = from != LaneType::f64 && bytes < 8;
    return zero ? 0 : std::uint64_t{1} << (bytes * 8 - 1);
  }
  const double rounded =
      round_to_integer(value, rounding == Rounding::none ? Rounding::rzi : rounding);
  if (lane_is_signed(to)) {
    const double limit = std::ldexp(1.0, static_cast<int>(bytes * 8 - 1));
    if (rounded >= limit) return (std::uint64_t{1} << (bytes * 8 - 1)) - 1;
    if (rounded < -limit) return std::uint64_t{1} << (bytes * 8 - 1);
    return lane_truncate(static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded)), bytes);
  }
  const double limit = std::ldexp(1.0, static_cast<int>(bytes * 8));
  if (rounded >= limit) return lane_truncate(~std::uint64_t{0}, bytes);
  if (rounded <= 0) return 0;
  return static_cast<std::uint64_t>(rounded);
}

double lane_flush(double value, LaneType type) {
  return type == LaneType::f32 && std::fabs(value) < 0x1p-126 ? std::copysign(0.0, value) : value;
}

std::uint64_t integer_to_integer(std::uint64_t bits, LaneType from, LaneType to, bool saturate) {
  const unsigned from_bytes = lane_bytes(from);
  const unsigned to_bytes = lane_bytes(to);
  const std::uint64_t wide = lane_is_signed(from)
                                 ? static_cast<std::uint64_t>(lane_sign_extend(bits, from_bytes))
                                 : lane_truncate(bits, from_bytes);
  if (!saturate) return lane_truncate(wide, to_bytes);
  const bool negative = lane_is_signed(from) && static_cast<std::int64_t>(wide) < 0;
  if (lane_is_signed(to)) {
    const std::uint64_t most = (std::uint64_t{1} << (to_bytes * 8 - 1)) - 1;
    if (!negative && wide > most) return most;
    if (negative && static_cast<std::int64_t>(wide) < -static_cast<std::int64_t>(most) - 1)
      return most + 1;
    return lane_truncate(wide, to_bytes);
  }
  if (negative) return 0;
  const std::uint64_t most = lane_truncate(~std::uint64_t{0}, to_bytes);
  return wide > most ? most : wide;
}

}  // namespace

unsigned lane_bytes(LaneType type) {
  switch (type) {
    case LaneType::none:
    case LaneType::pred:
      return 0;
    case LaneType::b8:
    case LaneType::u8:
    case LaneType::s8:
      return 1;
    case LaneType::b16:
    case LaneType::u16:
    case LaneType::s16:
    case LaneType::f16:
    case LaneType::bf16:
    case LaneType::e4m3x2:
    case LaneType::e5m2x2:
      return 2;
    case LaneType::b64:
    case LaneType::u64:
    case LaneType::s64:
    case LaneType::f64:
    case LaneType::f32x2:
      return 8;
    default:
      return 4;
  }
}

double lane_to_double(std::uint64_t bits, LaneType type) {
  switch (type) {
    case LaneType::f64:
      return std::bit_cast<double>(bits);
    case LaneType::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case LaneType::tf32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) & ~0x1fffU));
    case LaneType::f16:
    case LaneType::bf16:
    case LaneType::e4m3x2:
    case LaneType::e5m2x2:
      return small_to_double(bits, small_format(type));
    default:
      return lane_is_signed(type) ? static_cast<double>(lane_sign_extend(bits, lane_bytes(type)))
                                  : static_cast<double>(lane_truncate(bits, lane_bytes(type)));
  }
}

std::uint64_t lane_from_double(double value, LaneType type, Rounding rounding) {
  switch (type) {
    case LaneType::f64:
      return std::bit_cast<std::uint64_t>(value);
    case LaneType::f32: {
      if (std::isnan(value)) return 0x7fffffffU;
      return std::bit_cast<std::uint32_t>(narrow_to_float(value, rounding));
    }
    case LaneType::tf32:
      if (std::isnan(value)) return 0x7fffe000U;
      return double_to_small(value, small_format(type), rounding, false) << 13;
    default:
      return double_to_small(value, small_format(type), rounding, false);
  }
}

std::uint64_t convert_lane(std::uint64_t bits, LaneType from, LaneType to, Rounding rounding,
                           bool saturate, bool ftz, bool relu) {
  if (!lane_is_float(from) && !lane_is_float(to))
    return integer_to_integer(bits, from, to, saturate);
  if (!lane_is_float(from)) {
    const std::int64_t as_signed = lane_sign_extend(bits, lane_bytes(from));
    const std::uint64_t as_unsigned = lane_truncate(bits, lane_bytes(from));
    std::uint64_t result = 0;
    if (to == LaneType::f32) {
      result = std::bit_cast<std::uint32_t>(lane_is_signed(from)
                                                ? integer_to_float(as_signed, rounding)
                                                : integer_to_float(as_unsigned, rounding));
    } else if (to == LaneType::f64) {
      result = std::bit_cast<std::uint64_t>(lane_is_signed(from)
                                                ? integer_to_double(as_signed, rounding)
                                                : integer_to_double(as_unsigned, rounding));
    } else {
      // To 53 bits with the rest as a sticky bit, so that rounding twice cannot go wrong.
      const bool negative = lane_is_signed(from) && as_signed < 0;
      std::uint64_t magnitude =
          negative ? std::uint64_t{0} - static_cast<std::uint64_t>(as_signed) : as_unsigned;
      if (magnitude >> 53U != 0)
        magnitude = (magnitude & ~std::uint64_t{0xfff}) | ((magnitude & 0xfff) != 0 ? 0x800U : 0U);
      const auto value = static_cast<double>(magnitude);
      result = lane_from_double(negative ? -value : value, to, rounding);
    }
    if (saturate) {
      const double value = lane_to_double(result, to);
      return lane_from_double(value < 0 ? 0.0 : std::min(value, 1.0), to, Rounding::rn);
    }
    return result;
  }
  double value = lane_to_double(bits, from);
  // A card keeps denormal inputs of conversions to f16, .ftz or not.
  if (ftz && to != LaneType::f16) value = lane_flush(value, from);
  if (from == LaneType::bf16 && to == LaneType::f32 && std::isnan(value) && !saturate)
    return (bits & 0xffff) << 16;
  if (!lane_is_float(to)) return float_to_integer(value, from, to, rounding);
  if (rounding == Rounding::rni || rounding == Rounding::rzi || rounding == Rounding::rmi ||
      rounding == Rounding::rpi) {
    value = std::copysign(round_to_integer(value, rounding), value);
  }
  if (from == to && std::isnan(value) && from == LaneType::f64) return bits | 0x0008000000000000U;
  if (relu && !(value > 0) && !std::isnan(value)) value = 0;
  if (saturate && (to == LaneType::e4m3x2 || to == LaneType::e5m2x2)) {
    return double_to_small(value, small_format(to), rounding, true);
  }
  if (saturate) value = std::isnan(value) || value <= 0 ? 0.0 : std::min(value, 1.0);
  if (to == LaneType::f64 && std::isnan(value)) return 0x7fffffffffffffffU;
  std::uint64_t result = lane_from_double(value, to, rounding);
  if (ftz && to == LaneType::f32) {
    if ((result & 0x7f800000U) == 0) result &= 0x80000000U;
  }
  return result;
}

}  // namespace demarc::emulate
