// Floating point of one lane: every format, rounding mode, .ftz and .sat.
//
// Basic operations are exact roundings. The approximations (.approx, and the functions sin, cos,
// lg2, ex2, tanh, rsqrt) are computed in double precision and rounded once, so they err by at most
// 0.51 ulp of the result: closer to the exact value than the hardware, whose documented errors are
// larger.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>

#include "lanes/functions.hpp"

namespace demarc::emulate {

namespace {

class HostRounding {
 public:
  explicit HostRounding(Rounding rounding) : before_(std::fegetround()) {
    switch (rounding) {
      case Rounding::rz:
        std::fesetround(FE_TOWARDZERO);
        break;
      case Rounding::rm:
        std::fesetround(FE_DOWNWARD);
        break;
      case Rounding::rp:
        std::fesetround(FE_UPWARD);
        break;
      default:
        break;
    }
  }
  ~HostRounding() { std::fesetround(before_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  int before_;
};

enum class FloatOperation { add, sub, mul, div, fma, sqrt };

// Volatile keeps the operation between the changes of the rounding mode.
template <class F>
F host_operation(FloatOperation operation, F x, F y, F z, Rounding rounding) {
  const HostRounding scope(rounding);
  const volatile F a = x;
  const volatile F b = y;
  const volatile F c = z;
  volatile F r = 0;
  switch (operation) {
    case FloatOperation::add:
      r = a + b;
      break;
    case FloatOperation::sub:
      r = a - b;
      break;
    case FloatOperation::mul:
      r = a * b;
      break;
    case FloatOperation::div:
      r = a / b;
      break;
    case FloatOperation::fma:
      r = std::fma(static_cast<F>(a), static_cast<F>(b), static_cast<F>(c));
      break;
    case FloatOperation::sqrt:
      r = std::sqrt(static_cast<F>(a));
      break;
  }
  return r;
}

float float_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

std::uint64_t flush_bits(std::uint64_t bits) {
  return (bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits;
}

std::uint64_t flush_half(std::uint64_t bits) {
  return (bits & 0x7c00U) == 0 ? bits & 0x8000U : bits;
}

// Both halves of an f16x2, or the one of an f16.
std::uint64_t flush_halves(std::uint64_t bits, LaneType type) {
  if (type == LaneType::f16) return flush_half(bits & 0xffff);
  if (type != LaneType::f16x2) return bits;
  return flush_half(bits & 0xffff) | (flush_half((bits >> 16) & 0xffff) << 16);
}

std::uint64_t finish_f32(float value, const LaneDetails& details) {
  std::uint64_t bits = std::isnan(value) ? 0x7fffffffU : std::bit_cast<std::uint32_t>(value);
  if (details.ftz) bits = flush_bits(bits);
  if (details.saturate) {
    if (std::isnan(value) || value <= 0) return 0;
    if (value > 1) return std::bit_cast<std::uint32_t>(1.0F);
  }
  return bits;
}

// Exact sum of a double product and a double, rounded to odd, so that a second rounding to 16 bits
// is right.
double sum_to_odd(double product, double addend) {
  const double sum = product + addend;
  if (!std::isfinite(sum)) return sum;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  if (error != 0 && (std::bit_cast<std::uint64_t>(sum) & 1U) == 0) {
    return std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
  }
  return sum;
}

std::uint64_t small_float(FloatOperation operation, std::uint64_t a, std::uint64_t b,
                          std::uint64_t c, LaneType type, const LaneDetails& details) {
  const auto value_of = [&](std::uint64_t bits) {
    const double value = lane_to_double(bits & 0xffff, type);
    return details.ftz && type == LaneType::f16 && std::fabs(value) < 0x1p-14
               ? std::copysign(0.0, value)
               : value;
  };
  const double x = value_of(a);
  const double y = value_of(b);
  double result = 0;
  switch (operation) {
    case FloatOperation::add:
      result = sum_to_odd(x, y);
      break;
    case FloatOperation::sub:
      result = sum_to_odd(x, -y);
      break;
    case FloatOperation::mul:
      result = x * y;
      break;
    case FloatOperation::div:
      result = x / y;
      break;
    case FloatOperation::fma:
      result = sum_to_odd(x * y, value_of(c));
      break;
    case FloatOperation::sqrt:
      result = std::sqrt(x);
      break;
  }
  if (details.saturate) result = std::isnan(result) || result <= 0 ? 0.0 : std::min(result, 1.0);
  if (details.relu && result <= 0) result = 0;
  std::uint64_t bits = lane_from_double(result, type, Rounding::rn);
  if (details.ftz && type == LaneType::f16 && (bits & 0x7c00U) == 0) bits &= 0x8000U;
  return bits;
}

std::uint64_t float_operation(FloatOperation operation, const LaneInput& lane,
                              const LaneDetails& details) {
  const std::uint64_t a = lane.in[0];
  const std::uint64_t b = lane.in[1];
  const std::uint64_t c = lane.in[2];
  switch (details.type) {
    case LaneType::f64: {
      const double r = host_operation(operation, std::bit_cast<double>(a), std::bit_cast<double>(b),
                                      std::bit_cast<double>(c), details.rounding);
      return std::bit_cast<std::uint64_t>(r);
    }
    case LaneType::f16:
    case LaneType::bf16:
      return small_float(operation, a, b, c, details.type, details);
    case LaneType::f16x2:
    case LaneType::bf16x2: {
      const LaneType half = details.type == LaneType::f16x2 ? LaneType::f16 : LaneType::bf16;
      return small_float(operation, a & 0xffff, b & 0xffff, c & 0xffff, half, details) |
             (small_float(operation, (a >> 16) & 0xffff, (b >> 16) & 0xffff, (c >> 16) & 0xffff,
                          half, details)
              << 16);
    }
    case LaneType::f32x2: {
      LaneDetails half = details;
      half.type = LaneType::f32;
      LaneInput low;
      LaneInput high;
      for (unsigned i = 0; i < 3; ++i) {
        low.in[i] = lane.in[i] & 0xffffffffU;
        high.in[i] = lane.in[i] >> 32;
      }
      return float_operation(operation, low, half) | (float_operation(operation, high, half) << 32);
    }
    default: {
      const auto in = [&](std::uint64_t bits) {
        return float_of(details.ftz ? flush_bits(bits) : bits);
      };
      return finish_f32(host_operation(operation, in(a), in(b), in(c), details.rounding), details);
    }
  }
}

using DoubleFunction = double (*)(double);

std::uint64_t apply_function(DoubleFunction function, const LaneInput& lane,
                             const LaneDetails& details) {
  switch (details.type) {
    case LaneType::f64:
      return std::bit_cast<std::uint64_t>(function(std::bit_cast<double>(lane.in[0])));
    case LaneType::f32: {
      const std::uint64_t bits = details.ftz ? flush_bits(lane.in[0]) : lane.in[0];
      return finish_f32(static_cast<float>(function(static_cast<double>(float_of(bits)))), details);
    }
    case LaneType::f16:
    case LaneType::bf16:
      return lane_from_double(function(lane_to_double(lane.in[0], details.type)), details.type,
                              Rounding::rn);
    default: {
      const LaneType half = details.type == LaneType::f16x2 ? LaneType::f16 : LaneType::bf16;
      const std::uint64_t low =
          lane_from_double(function(lane_to_double(lane.in[0] & 0xffff, half)), half, Rounding::rn);
      const std::uint64_t high = lane_from_double(
          function(lane_to_double((lane.in[0] >> 16) & 0xffff, half)), half, Rounding::rn);
      return low | (high << 16);
    }
  }
}

// min and max on the bits of one value; `sign` is that of the format.
std::uint64_t pick_float(std::uint64_t a, std::uint64_t b, LaneType type, bool most,
                         const LaneDetails& details) {
  const unsigned bits = lane_bytes(type) * 8;
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t nan =
      type == LaneType::f64 ? 0x7fffffffffffffffU : (bits == 32 ? 0x7fffffffU : 0x7fffU);
  std::uint64_t flip = 0;
  if (details.abs) {
    flip = (a ^ b) & sign;
    a &= ~sign;
    b &= ~sign;
  }
  if (details.ftz && type == LaneType::f32) {
    a = flush_bits(a);
    b = flush_bits(b);
  }
  if (details.ftz && type == LaneType::f16) {
    a = flush_half(a);
    b = flush_half(b);
  }
  const double x = lane_to_double(a, type);
  const double y = lane_to_double(b, type);
  if (std::isnan(x) || std::isnan(y)) {
    if (details.nan || (std::isnan(x) && std::isnan(y))) return nan;
    return std::isnan(x) ? b | flip : a | flip;
  }
  if (x == y) return (most ? a & b : a | b) | flip;
  return ((x < y) != most ? a : b) | flip;
}

std::uint64_t pick(const LaneInput& lane, const LaneDetails& details, bool most) {
  switch (details.type) {
    case LaneType::f16x2:
    case LaneType::bf16x2: {
      const LaneType half = details.type == LaneType::f16x2 ? LaneType::f16 : LaneType::bf16;
      return pick_float(lane.in[0] & 0xffff, lane.in[1] & 0xffff, half, most, details) |
             (pick_float((lane.in[0] >> 16) & 0xffff, (lane.in[1] >> 16) & 0xffff, half, most,
                         details)
              << 16);
    }
    case LaneType::u16x2:
    case LaneType::s16x2: {
      std::uint64_t result = 0;
      for (unsigned shift = 0; shift < 32; shift += 16) {
        const auto a = static_cast<std::uint16_t>(lane.in[0] >> shift);
        const auto b = static_cast<std::uint16_t>(lane.in[1] >> shift);
        const bool less = details.type == LaneType::u16x2
                              ? a < b
                              : static_cast<std::int16_t>(a) < static_cast<std::int16_t>(b);
        std::uint16_t part = less != most ? a : b;
        if (details.relu && (part >> 15) != 0) part = 0;
        result |= std::uint64_t{part} << shift;
      }
      return result;
    }
    case LaneType::s32: {
      const auto a = static_cast<std::int32_t>(lane.in[0]);
      const auto b = static_cast<std::int32_t>(lane.in[1]);
      const std::int32_t r = most ? std::max(a, b) : std::min(a, b);
      return static_cast<std::uint32_t>(details.relu ? std::max(r, 0) : r);
    }
    default: {
      std::uint64_t result = pick_float(lane.in[0], lane.in[1], details.type, most, details);
      if (details.sources == 3)
        result = pick_float(result, lane.in[2], details.type, most, details);
      return result;
    }
  }
}

}  // namespace

namespace lane {

#define DEMARC_LANE_FUNCTION(name) \
  std::uint64_t name([[maybe_unused]] LaneInput& lane, [[maybe_unused]] const LaneDetails& details)

DEMARC_LANE_FUNCTION(add) {
  return float_operation(FloatOperation::add, lane, details);
}
DEMARC_LANE_FUNCTION(sub) {
  return float_operation(FloatOperation::sub, lane, details);
}
DEMARC_LANE_FUNCTION(mul) {
  return float_operation(FloatOperation::mul, lane, details);
}
DEMARC_LANE_FUNCTION(div) {
  return float_operation(FloatOperation::div, lane, details);
}
DEMARC_LANE_FUNCTION(fma) {
  return float_operation(FloatOperation::fma, lane, details);
}
DEMARC_LANE_FUNCTION(sqrt) {
  return float_operation(FloatOperation::sqrt, lane, details);
}

DEMARC_LANE_FUNCTION(rcp) {
  LaneInput input;
  input.in[0] = details.type == LaneType::f64 ? std::bit_cast<std::uint64_t>(1.0)
                                              : std::bit_cast<std::uint32_t>(1.0F);
  input.in[1] = lane.in[0];
  return float_operation(FloatOperation::div, input, details);
}

DEMARC_LANE_FUNCTION(rsqrt) {
  return apply_function([](double x) { return 1.0 / std::sqrt(x); }, lane, details);
}
DEMARC_LANE_FUNCTION(sin) {
  return apply_function([](double x) { return std::sin(x); }, lane, details);
}
DEMARC_LANE_FUNCTION(cos) {
  return apply_function([](double x) { return std::cos(x); }, lane, details);
}
DEMARC_LANE_FUNCTION(lg2) {
  return apply_function([](double x) { return std::log2(x); }, lane, details);
}
DEMARC_LANE_FUNCTION(ex2) {
  return apply_function([](double x) { return std::exp2(x); }, lane, details);
}
DEMARC_LANE_FUNCTION(tanh) {
  return apply_function([](double x) { return std::tanh(x); }, lane, details);
}

DEMARC_LANE_FUNCTION(neg) {
  const std::uint64_t bits = details.ftz ? flush_halves(lane.in[0], details.type) : lane.in[0];
  switch (details.type) {
    case LaneType::f16x2:
    case LaneType::bf16x2:
      return bits ^ 0x80008000U;
    case LaneType::f16:
    case LaneType::bf16:
      return bits ^ 0x8000U;
    case LaneType::f64:
      return bits ^ 0x8000000000000000U;
    default:
      return (details.ftz ? flush_bits(bits) : bits) ^ 0x80000000U;
  }
}

DEMARC_LANE_FUNCTION(abs) {
  const std::uint64_t bits = details.ftz ? flush_halves(lane.in[0], details.type) : lane.in[0];
  switch (details.type) {
    case LaneType::f16x2:
    case LaneType::bf16x2:
      return bits & 0x7fff7fffU;
    case LaneType::f16:
    case LaneType::bf16:
      return bits & 0x7fffU;
    case LaneType::f64:
      return bits & 0x7fffffffffffffffU;
    default:
      return (details.ftz ? flush_bits(bits) : bits) & 0x7fffffffU;
  }
}

DEMARC_LANE_FUNCTION(min) {
  return pick(lane, details, false);
}
DEMARC_LANE_FUNCTION(max) {
  return pick(lane, details, true);
}

DEMARC_LANE_FUNCTION(copysign) {
  const std::uint64_t sign = details.type == LaneType::f64 ? 0x8000000000000000U : 0x80000000U;
  return (lane.in[1] & ~sign) | (lane.in[0] & sign);
}

DEMARC_LANE_FUNCTION(testp) {
  const double x = lane_to_double(lane.in[0], details.type);
  const FloatProperty property = std::get<FloatProperty>(details.form);
  switch (property) {
    case FloatProperty::finite:
      return std::isfinite(x) ? 1 : 0;
    case FloatProperty::infinite:
      return std::isinf(x) ? 1 : 0;
    case FloatProperty::number:
      return std::isnan(x) ? 0 : 1;
    case FloatProperty::not_a_number:
      return std::isnan(x) ? 1 : 0;
    case FloatProperty::normal:
    case FloatProperty::subnormal:
      break;
  }
  const bool zero_exponent = details.type == LaneType::f64 ? (lane.in[0] & 0x7ff0000000000000U) == 0
                                                           : (lane.in[0] & 0x7f800000U) == 0;
  if (property == FloatProperty::subnormal) return zero_exponent && x != 0 ? 1 : 0;
  // The manual counts zeros as normal.
  return (!zero_exponent || x == 0) && std::isfinite(x) ? 1 : 0;
}

// A register wider than the result holds it with its sign.
DEMARC_LANE_FUNCTION(cvt) {
  const std::uint64_t bits = convert_lane(lane.in[0], details.from, details.type, details.rounding,
                                          details.saturate, details.ftz, details.relu);
  switch (details.type) {
    case LaneType::s8:
      return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(bits)});
    case LaneType::s16:
      return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(bits)});
    case LaneType::s32:
      return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(bits)});
    default:
      return bits;
  }
}

// d = {a in the high half, b in the low half}
DEMARC_LANE_FUNCTION(cvt_two) {
  const auto narrow = [&](std::uint64_t bits, LaneType to) {
    return convert_lane(bits, details.from, to, details.rounding, details.saturate, false,
                        details.relu);
  };
  switch (details.type) {
    case LaneType::f16x2:
      return narrow(lane.in[1], LaneType::f16) | (narrow(lane.in[0], LaneType::f16) << 16);
    case LaneType::bf16x2:
      return narrow(lane.in[1], LaneType::bf16) | (narrow(lane.in[0], LaneType::bf16) << 16);
    default:
      return narrow(lane.in[1], details.type) | (narrow(lane.in[0], details.type) << 8);
  }
}

// Two halves of an f16x2 to two narrow floats.
DEMARC_LANE_FUNCTION(cvt_halves) {
  const auto part = [&](unsigned shift) {
    return convert_lane((lane.in[0] >> shift) & 0xffff, LaneType::f16, details.type,
                        details.rounding, true, false, details.relu);
  };
  return part(0) | (part(16) << 8);
}

DEMARC_LANE_FUNCTION(cvt_unpack) {
  const auto part = [&](unsigned shift) {
    const double value = lane_to_double((lane.in[0] >> shift) & 0xff, details.from);
    return lane_from_double(details.relu && value <= 0 ? 0.0 : value, LaneType::f16, Rounding::rn);
  };
  return part(0) | (part(8) << 16);
}

#undef DEMARC_LANE_FUNCTION
}  // namespace lane
}  // namespace demarc::emulate
