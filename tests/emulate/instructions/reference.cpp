// Rounds exact values to narrow formats by searching the values of the format.
#include "reference.hpp"

namespace demarc::emulate::test {

Narrow::Narrow(int exponent_bits, int mantissa_bits, bool has_infinity, std::uint64_t nan)
    : exponent_bits_(exponent_bits),
      mantissa_bits_(mantissa_bits),
      has_infinity_(has_infinity),
      nan_(nan) {
  const std::uint64_t top = (std::uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
  largest_ = has_infinity ? top - (std::uint64_t{1} << mantissa_bits) : top - 1;
}

double Narrow::value(std::uint64_t word) const {
  const std::uint64_t magnitude = word & ((std::uint64_t{1} << (width() - 1)) - 1);
  const bool negative = ((word >> (width() - 1)) & 1U) != 0;
  const int exponent = static_cast<int>(magnitude >> mantissa_bits_);
  const auto fraction =
      static_cast<double>(magnitude & ((std::uint64_t{1} << mantissa_bits_) - 1)) *
      std::pow(2.0, -mantissa_bits_);
  const int bias = (1 << (exponent_bits_ - 1)) - 1;
  double result = 0;
  if (magnitude > largest_) {
    const bool infinite = has_infinity_ && magnitude == largest_ + 1;
    result = infinite ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    result = fraction * std::pow(2.0, 1 - bias);
  } else {
    result = (1 + fraction) * std::pow(2.0, exponent - bias);
  }
  return negative ? -result : result;
}

std::uint64_t Narrow::round(double exact, int sticky, char mode, bool finite) const {
  if (std::isnan(exact)) return nan_;
  const bool negative = std::signbit(exact);
  const std::uint64_t sign = negative ? std::uint64_t{1} << (width() - 1) : 0;
  const double magnitude = std::fabs(exact);
  const std::uint64_t beyond = has_infinity_ ? largest_ + 1 : largest_;
  if (std::isinf(exact)) return sign | (finite ? largest_ : beyond);
  // The last code whose value is at most the magnitude.
  std::uint64_t low = 0;
  std::uint64_t high = largest_;
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    if (value(middle) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  // A magnitude that was cut off lies above `magnitude`.
  const bool more = sticky != 0;
  const double below = value(low);
  if (below == magnitude && !more) return sign | low;
  const double step = low == largest_ ? below - value(low - 1) : value(low + 1) - below;
  const double middle = below + step / 2;
  bool up = false;
  switch (mode) {
    case 'z':
      break;
    case 'm':
      up = negative;
      break;
    case 'p':
      up = !negative;
      break;
    case 'a':
      up = magnitude >= middle;
      break;
    default:
      up = magnitude > middle || (magnitude == middle && (more || (low & 1U) != 0));
      break;
  }
  if (!up) return sign | low;
  if (low == largest_) return sign | (finite ? largest_ : beyond);
  return sign | (low + 1);
}

const Narrow& narrow_f16() {
  static const Narrow format(5, 10, true, 0x7fff);
  return format;
}
const Narrow& narrow_bf16() {
  static const Narrow format(8, 7, true, 0x7fff);
  return format;
}
const Narrow& narrow_tf32() {
  static const Narrow format(8, 10, true, 0x3ffff);
  return format;
}
const Narrow& narrow_e4m3() {
  static const Narrow format(4, 3, false, 0x7f);
  return format;
}
const Narrow& narrow_e5m2() {
  static const Narrow format(5, 2, true, 0x7f);
  return format;
}

}  // namespace demarc::emulate::test
