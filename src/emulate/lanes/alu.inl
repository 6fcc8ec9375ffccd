// Handlers of the lane-wise micro-ops, compiled once for each instruction set: the including file
// defines DEMARC_ISA, the namespace. Nothing here may be shared between instruction sets, so
// everything lives in that namespace and no function of the standard library is called out of line.
#include <bit>
#include <cstdint>

#include "lanes/alu.hpp"

#if defined(__clang__)
#define DEMARC_LANES \
  _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < warp_size; ++l)
#else
#define DEMARC_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < warp_size; ++l)
#endif
#define DEMARC_INLINE [[gnu::always_inline]] inline

namespace demarc::emulate::DEMARC_ISA {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;
__extension__ using s128 = __int128;
__extension__ using u128 = unsigned __int128;

// f32 results that are NaN are this one pattern on the GPU; f64 results keep what the operation
// gives.
DEMARC_INLINE f32 canonical(f32 x) {
  return x == x ? x : __builtin_bit_cast(f32, 0x7fffffffU);
}
DEMARC_INLINE f64 canonical(f64 x) {
  return x;
}
DEMARC_INLINE f32 flush(f32 x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  return __builtin_bit_cast(f32, (bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits);
}
// a / b as a card approximates it: by the reciprocal of b, which is flushed, after both were scaled
// where b is too small or too large for that. Found on an H200; its reciprocal itself is one last
// place off in 13.5 % of cases.
DEMARC_INLINE f32 quotient(f32 a, f32 b, f32 scale) {
  return canonical(a * scale * flush(1.0F / (b * scale)));
}
DEMARC_INLINE f32 upscale(f32 b) {
  return b < 0x1p-126F && b > -0x1p-126F ? 0x1p24F : 1.0F;
}
DEMARC_INLINE f32 downscale(f32 b) {
  return b > 0x1p126F || b < -0x1p126F ? 0.25F : 1.0F;
}
DEMARC_INLINE f32 square_root(f32 x) {
  return __builtin_sqrtf(x);
}
DEMARC_INLINE f64 square_root(f64 x) {
  return __builtin_sqrt(x);
}
DEMARC_INLINE f32 fused(f32 a, f32 b, f32 c) {
  return __builtin_fmaf(a, b, c);
}
DEMARC_INLINE f64 fused(f64 a, f64 b, f64 c) {
  return __builtin_fma(a, b, c);
}
// The other operand for one NaN; -0 below +0.
DEMARC_INLINE f32 minimum(f32 a, f32 b) {
  const f32 equal =
      __builtin_bit_cast(f32, __builtin_bit_cast(u32, a) | __builtin_bit_cast(u32, b));
  const f32 less = a == b ? equal : (a < b ? a : b);
  return canonical(a != a ? b : (b != b ? a : less));
}
DEMARC_INLINE f32 maximum(f32 a, f32 b) {
  const f32 equal =
      __builtin_bit_cast(f32, __builtin_bit_cast(u32, a) & __builtin_bit_cast(u32, b));
  const f32 more = a == b ? equal : (a > b ? a : b);
  return canonical(a != a ? b : (b != b ? a : more));
}
DEMARC_INLINE f64 minimum(f64 a, f64 b) {
  const f64 equal =
      __builtin_bit_cast(f64, __builtin_bit_cast(u64, a) | __builtin_bit_cast(u64, b));
  const f64 less = a == b ? equal : (a < b ? a : b);
  return a != a ? b : (b != b ? a : less);
}
DEMARC_INLINE f64 maximum(f64 a, f64 b) {
  const f64 equal =
      __builtin_bit_cast(f64, __builtin_bit_cast(u64, a) & __builtin_bit_cast(u64, b));
  const f64 more = a == b ? equal : (a > b ? a : b);
  return a != a ? b : (b != b ? a : more);
}
DEMARC_INLINE s32 truncate_s32(f32 a) {
  // Out of range saturates, NaN gives 0.
  const f32 low = a < -2147483648.0F ? -2147483648.0F : a;
  const f32 in = low >= 2147483648.0F ? 0.0F : low;
  const s32 value = static_cast<s32>(in == in ? in : 0.0F);
  return low >= 2147483648.0F ? 0x7fffffff : value;
}
DEMARC_INLINE u16 multiply_low(u16 a, u16 b) {
  return static_cast<u16>(u32{a} * u32{b});
}
DEMARC_INLINE u32 multiply_low(u32 a, u32 b) {
  return a * b;
}
DEMARC_INLINE u64 multiply_low(u64 a, u64 b) {
  return a * b;
}
DEMARC_INLINE s16 multiply_high(s16 a, s16 b) {
  return static_cast<s16>((s32{a} * s32{b}) >> 16);
}
DEMARC_INLINE u16 multiply_high(u16 a, u16 b) {
  return static_cast<u16>((u32{a} * u32{b}) >> 16);
}
DEMARC_INLINE s32 multiply_high(s32 a, s32 b) {
  return static_cast<s32>((s64{a} * s64{b}) >> 32);
}
DEMARC_INLINE u32 multiply_high(u32 a, u32 b) {
  return static_cast<u32>((u64{a} * u64{b}) >> 32);
}
DEMARC_INLINE s64 multiply_high(s64 a, s64 b) {
  return static_cast<s64>((s128{a} * s128{b}) >> 64);
}
DEMARC_INLINE u64 multiply_high(u64 a, u64 b) {
  return static_cast<u64>((u128{a} * u128{b}) >> 64);
}
// Division by zero is unspecified in PTX: all ones here, as the hardware's sequence gives for
// unsigned.
template <class S>
DEMARC_INLINE S divide_signed(S a, S b) {
  if (b == 0) return static_cast<S>(-1);
  if (b == -1) return static_cast<S>(u64{0} - static_cast<u64>(a));
  return static_cast<S>(a / b);
}
template <class S>
DEMARC_INLINE S remainder_signed(S a, S b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  return static_cast<S>(a % b);
}

template <class T>
DEMARC_INLINE T* lane_slot(Warp& w, u32 offset) {
  return reinterpret_cast<T*>(__builtin_assume_aligned(w.frame + offset, 64));
}
template <class T>
DEMARC_INLINE const T* uniform_slot(Warp& w, u32 offset) {
  return reinterpret_cast<const T*>(w.frame + offset);
}

template <class F, unsigned uniform>
const MicroOp* run_unary(Warp& w, const MicroOp* op) {
  auto* d = lane_slot<typename F::D>(w, op->d);
  const auto* a = uniform_slot<typename F::A>(w, op->a);
  const auto a0 = a[0];
  const Mask m = w.mask;
  if (m == full_mask) {
    DEMARC_LANES d[l] = F::value((uniform & 1U) != 0 ? a0 : a[l]);
  } else {
    DEMARC_LANES {
      const auto v = F::value((uniform & 1U) != 0 ? a0 : a[l]);
      d[l] = ((m >> l) & 1U) != 0 ? v : d[l];
    }
  }
  return op + 1;
}
template <class F>
const MicroOp* run_unary_uniform(Warp& w, const MicroOp* op) {
  *w.at<typename F::D>(op->d) = F::value(*w.at<typename F::A>(op->a));
  return op + 1;
}

template <class F, unsigned uniform>
const MicroOp* run_binary(Warp& w, const MicroOp* op) {
  auto* d = lane_slot<typename F::D>(w, op->d);
  const auto* a = uniform_slot<typename F::A>(w, op->a);
  const auto* b = uniform_slot<typename F::B>(w, op->b);
  const auto a0 = a[0];
  const auto b0 = b[0];
  const Mask m = w.mask;
  if (m == full_mask) {
    DEMARC_LANES d[l] = F::value((uniform & 1U) != 0 ? a0 : a[l], (uniform & 2U) != 0 ? b0 : b[l]);
  } else {
    DEMARC_LANES {
      const auto v = F::value((uniform & 1U) != 0 ? a0 : a[l], (uniform & 2U) != 0 ? b0 : b[l]);
      d[l] = ((m >> l) & 1U) != 0 ? v : d[l];
    }
  }
  return op + 1;
}
template <class F>
const MicroOp* run_binary_uniform(Warp& w, const MicroOp* op) {
  *w.at<typename F::D>(op->d) = F::value(*w.at<typename F::A>(op->a), *w.at<typename F::B>(op->b));
  return op + 1;
}

template <class F, unsigned uniform>
const MicroOp* run_ternary(Warp& w, const MicroOp* op) {
  auto* d = lane_slot<typename F::D>(w, op->d);
  const auto* a = uniform_slot<typename F::A>(w, op->a);
  const auto* b = uniform_slot<typename F::B>(w, op->b);
  const auto* c = uniform_slot<typename F::C>(w, op->c);
  const auto a0 = a[0];
  const auto b0 = b[0];
  const auto c0 = c[0];
  const Mask m = w.mask;
  if (m == full_mask) {
    DEMARC_LANES d[l] = F::value((uniform & 1U) != 0 ? a0 : a[l], (uniform & 2U) != 0 ? b0 : b[l],
                                 (uniform & 4U) != 0 ? c0 : c[l]);
  } else {
    DEMARC_LANES {
      const auto v = F::value((uniform & 1U) != 0 ? a0 : a[l], (uniform & 2U) != 0 ? b0 : b[l],
                              (uniform & 4U) != 0 ? c0 : c[l]);
      d[l] = ((m >> l) & 1U) != 0 ? v : d[l];
    }
  }
  return op + 1;
}
template <class F>
const MicroOp* run_ternary_uniform(Warp& w, const MicroOp* op) {
  *w.at<typename F::D>(op->d) = F::value(*w.at<typename F::A>(op->a), *w.at<typename F::B>(op->b),
                                         *w.at<typename F::C>(op->c));
  return op + 1;
}

template <class F, unsigned uniform>
const MicroOp* run_compare(Warp& w, const MicroOp* op) {
  const auto* a = uniform_slot<typename F::A>(w, op->a);
  const auto* b = uniform_slot<typename F::A>(w, op->b);
  const auto a0 = a[0];
  const auto b0 = b[0];
  Mask r = 0;
  if constexpr (uniform == 3) {
    r = F::value(a0, b0) ? full_mask : 0;
  } else {
    DEMARC_LANES r |=
        static_cast<Mask>(
            F::value((uniform & 1U) != 0 ? a0 : a[l], (uniform & 2U) != 0 ? b0 : b[l]) ? 1 : 0)
        << l;
  }
  Mask* d = w.at<Mask>(op->d);
  *d = (*d & ~w.mask) | (r & w.mask);
  return op + 1;
}

template <class T, unsigned uniform>
const MicroOp* run_select(Warp& w, const MicroOp* op) {
  T* d = lane_slot<T>(w, op->d);
  const T* a = uniform_slot<T>(w, op->a);
  const T* b = uniform_slot<T>(w, op->b);
  const T a0 = a[0];
  const T b0 = b[0];
  const Mask p = *w.at<Mask>(op->c);
  const Mask m = w.mask;
  if (m == full_mask) {
    DEMARC_LANES {
      const T x = (uniform & 1U) != 0 ? a0 : a[l];
      const T y = (uniform & 2U) != 0 ? b0 : b[l];
      d[l] = ((p >> l) & 1U) != 0 ? x : y;
    }
  } else {
    DEMARC_LANES {
      const T x = (uniform & 1U) != 0 ? a0 : a[l];
      const T y = (uniform & 2U) != 0 ? b0 : b[l];
      const T v = ((p >> l) & 1U) != 0 ? x : y;
      d[l] = ((m >> l) & 1U) != 0 ? v : d[l];
    }
  }
  return op + 1;
}

#define DEMARC_UNARY(name, D_, A_, expression)                 \
  struct name##_op {                                           \
    using D = D_;                                              \
    using A = A_;                                              \
    DEMARC_INLINE static D value(A a) { return (expression); } \
  };
#define DEMARC_BINARY(name, D_, A_, B_, expression)                 \
  struct name##_op {                                                \
    using D = D_;                                                   \
    using A = A_;                                                   \
    using B = B_;                                                   \
    DEMARC_INLINE static D value(A a, B b) { return (expression); } \
  };
#define DEMARC_TERNARY(name, D_, A_, B_, C_, expression)                 \
  struct name##_op {                                                     \
    using D = D_;                                                        \
    using A = A_;                                                        \
    using B = B_;                                                        \
    using C = C_;                                                        \
    DEMARC_INLINE static D value(A a, B b, C c) { return (expression); } \
  };
#define DEMARC_COMPARE(name, A_, expression)                           \
  struct name##_op {                                                   \
    using A = A_;                                                      \
    DEMARC_INLINE static bool value(A a, A b) { return (expression); } \
  };
#define DEMARC_SELECT(name, D_)
#include "lanes/alu_ops.def"
#undef DEMARC_UNARY
#undef DEMARC_BINARY
#undef DEMARC_TERNARY
#undef DEMARC_COMPARE
#undef DEMARC_SELECT

constexpr AluHandlers alu_handlers[] = {
#define DEMARC_UNARY(name, D, A, expression)                                   \
  {{run_unary<name##_op, 0>, run_unary<name##_op, 1>, run_unary<name##_op, 0>, \
    run_unary<name##_op, 1>, run_unary<name##_op, 0>, run_unary<name##_op, 1>, \
    run_unary<name##_op, 0>, run_unary<name##_op, 1>},                         \
   run_unary_uniform<name##_op>},
#define DEMARC_BINARY(name, D, A, B, expression)                                  \
  {{run_binary<name##_op, 0>, run_binary<name##_op, 1>, run_binary<name##_op, 2>, \
    run_binary<name##_op, 3>, run_binary<name##_op, 0>, run_binary<name##_op, 1>, \
    run_binary<name##_op, 2>, run_binary<name##_op, 3>},                          \
   run_binary_uniform<name##_op>},
#define DEMARC_TERNARY(name, D, A, B, C, expression)                                 \
  {{run_ternary<name##_op, 0>, run_ternary<name##_op, 1>, run_ternary<name##_op, 2>, \
    run_ternary<name##_op, 3>, run_ternary<name##_op, 4>, run_ternary<name##_op, 5>, \
    run_ternary<name##_op, 6>, run_ternary<name##_op, 7>},                           \
   run_ternary_uniform<name##_op>},
#define DEMARC_COMPARE(name, A, expression)                                          \
  {{run_compare<name##_op, 0>, run_compare<name##_op, 1>, run_compare<name##_op, 2>, \
    run_compare<name##_op, 3>, run_compare<name##_op, 0>, run_compare<name##_op, 1>, \
    run_compare<name##_op, 2>, run_compare<name##_op, 3>},                           \
   nullptr},
#define DEMARC_SELECT(name, D)                                                                \
  {{run_select<D, 0>, run_select<D, 1>, run_select<D, 2>, run_select<D, 3>, run_select<D, 0>, \
    run_select<D, 1>, run_select<D, 2>, run_select<D, 3>},                                    \
   nullptr},
#include "lanes/alu_ops.def"
#undef DEMARC_UNARY
#undef DEMARC_BINARY
#undef DEMARC_TERNARY
#undef DEMARC_COMPARE
#undef DEMARC_SELECT
};

}  // namespace

const AluHandlers* alu_table() {
  return alu_handlers;
}

}  // namespace demarc::emulate::DEMARC_ISA
