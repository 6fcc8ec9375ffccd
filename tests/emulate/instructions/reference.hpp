// Plain arithmetic for the reference side of the instruction cases: 128-bit integers, the host's
// own rounding modes, and rounding to narrow formats by searching their values.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "instruction_case.hpp"

namespace demarc::emulate::test {

__extension__ using I128 = __int128;
__extension__ using U128 = unsigned __int128;

template <class T>
struct Named {
  using type = T;
  const char* name;
  Value value;
};
// Calls f for every integer type of 16, 32 and 64 bits.
template <class F>
void for_integers(F&& f) {
  f(Named<std::uint16_t>{"u16", Value::i16});
  f(Named<std::int16_t>{"s16", Value::i16});
  f(Named<std::uint32_t>{"u32", Value::i32});
  f(Named<std::int32_t>{"s32", Value::i32});
  f(Named<std::uint64_t>{"u64", Value::i64});
  f(Named<std::int64_t>{"s64", Value::i64});
}
template <class F>
void for_words(F&& f) {
  f(Named<std::uint16_t>{"b16", Value::i16});
  f(Named<std::uint32_t>{"b32", Value::i32});
  f(Named<std::uint64_t>{"b64", Value::i64});
}

template <class T>
std::uint64_t bits(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
  }
}
// The value of `word` as a T, exact.
template <class T>
I128 whole(std::uint64_t word) {
  return static_cast<I128>(static_cast<T>(word));
}
// The low bits of an exact value as a T.
template <class T>
Results wrapped(I128 value) {
  return {bits(static_cast<T>(static_cast<std::uint64_t>(value))), 0};
}
template <class T>
I128 least_of() {
  return std::is_signed_v<T> ? -(I128{1} << (sizeof(T) * 8 - 1)) : 0;
}
template <class T>
I128 most_of() {
  return (I128{1} << (sizeof(T) * 8 - (std::is_signed_v<T> ? 1 : 0))) - 1;
}
template <class T>
Results clamped(I128 value) {
  return wrapped<T>(value < least_of<T>() ? least_of<T>()
                                          : (value > most_of<T>() ? most_of<T>() : value));
}

inline float f32_of(std::uint64_t word) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(word));
}
inline double f64_of(std::uint64_t word) {
  return std::bit_cast<double>(word);
}
inline std::uint64_t flushed(std::uint64_t word) {
  return (word & 0x7f800000U) == 0 ? word & 0x80000000U : word;
}
// An f32 result as the hardware writes it: one pattern of NaN.
inline std::uint64_t f32_bits(float value) {
  return std::isnan(value) ? 0x7fffffffU : bits(value);
}
inline std::uint64_t f64_bits(double value) {
  return bits(value);
}

// A number format narrower than f32, as a list of its values.
class Narrow {
 public:
  Narrow(int exponent_bits, int mantissa_bits, bool has_infinity, std::uint64_t nan);
  [[nodiscard]] double value(std::uint64_t word) const;
  // Nearest, ties to even, of value (rn), or towards zero, down, up ('z', 'm', 'p'), away on ties
  // ('a'). `sticky`: the sign of what the exact value has beyond `value`. `finite`: no overflow to
  // infinity.
  [[nodiscard]] std::uint64_t round(double value, int sticky = 0, char mode = 'n',
                                    bool finite = false) const;
  [[nodiscard]] std::uint64_t nan() const { return nan_; }
  [[nodiscard]] unsigned width() const {
    return static_cast<unsigned>(exponent_bits_ + mantissa_bits_ + 1);
  }

 private:
  int exponent_bits_;
  int mantissa_bits_;
  bool has_infinity_;
  std::uint64_t nan_;
  std::uint64_t largest_;
};
const Narrow& narrow_f16();
const Narrow& narrow_bf16();
const Narrow& narrow_tf32();  // 19 bits, without the thirteen below them
const Narrow& narrow_e4m3();
const Narrow& narrow_e5m2();

// The host's operation under a rounding mode ('n', 'z', 'm', 'p').
class HostMode {
 public:
  explicit HostMode(char mode) : before_(std::fegetround()) {
    std::fesetround(mode == 'z'
                        ? FE_TOWARDZERO
                        : (mode == 'm' ? FE_DOWNWARD : (mode == 'p' ? FE_UPWARD : FE_TONEAREST)));
  }
  ~HostMode() { std::fesetround(before_); }
  HostMode(const HostMode&) = delete;
  HostMode& operator=(const HostMode&) = delete;

 private:
  int before_;
};
// f(a, b, c) under the mode; the arguments pass through volatile so that nothing moves.
template <class T, class F>
T under_mode(char mode, F&& f, T a, T b = 0, T c = 0) {
  const HostMode scope(mode);
  const volatile T x = a;
  const volatile T y = b;
  const volatile T z = c;
  const volatile T r = f(static_cast<T>(x), static_cast<T>(y), static_cast<T>(z));
  return r;
}
// The same in double towards zero, with the sign of what was cut off.
template <class F>
double with_sticky(int& sticky, F&& f, double a, double b, double c = 0) {
  const HostMode scope('z');
  std::feclearexcept(FE_ALL_EXCEPT);
  const volatile double x = a;
  const volatile double y = b;
  const volatile double z = c;
  const volatile double r =
      f(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
  sticky = std::fetestexcept(FE_INEXACT) != 0 ? (std::signbit(r) ? -1 : 1) : 0;
  return r;
}

}  // namespace demarc::emulate::test
