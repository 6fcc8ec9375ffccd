// Lists cases of conversions between integers and floats, in every rounding mode.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

struct Number {
  const char* name;
  Value value;  // value of its register
  unsigned width;
  bool is_signed;
};
constexpr Number integers[] = {{"u8", Value::i16, 8, false},   {"s8", Value::i16, 8, true},
                               {"u16", Value::i16, 16, false}, {"s16", Value::i16, 16, true},
                               {"u32", Value::i32, 32, false}, {"s32", Value::i32, 32, true},
                               {"u64", Value::i64, 64, false}, {"s64", Value::i64, 64, true}};
struct Floating {
  const char* name;
  Value value;
};
constexpr Floating floats[] = {
    {"f16", Value::f16}, {"bf16", Value::bf16}, {"f32", Value::f32}, {"f64", Value::f64}};

I128 read_integer(std::uint64_t word, const Number& type) {
  const U128 cut = U128{word} & ((U128{1} << type.width) - 1);
  const bool negative = type.is_signed && ((word >> (type.width - 1)) & 1U) != 0;
  return static_cast<I128>(cut) - (negative ? I128{1} << type.width : 0);
}
// Into a register of `type.value`: extended by its sign.
std::uint64_t write_integer(I128 value, const Number& type) {
  const I128 kept = read_integer(static_cast<std::uint64_t>(value), type);
  return static_cast<std::uint64_t>(kept) &
         static_cast<std::uint64_t>((U128{1} << bits_of(type.value)) - 1);
}
I128 clamp_integer(I128 value, const Number& type) {
  const I128 most = (I128{1} << (type.width - (type.is_signed ? 1 : 0))) - 1;
  const I128 least = type.is_signed ? -most - 1 : 0;
  return std::min(std::max(value, least), most);
}

double float_value(std::uint64_t word, Value value) {
  switch (value) {
    case Value::f16:
      return narrow_f16().value(word);
    case Value::bf16:
      return narrow_bf16().value(word);
    case Value::f32:
      return static_cast<double>(f32_of(word));
    default:
      return f64_of(word);
  }
}

// An exact value (what `sticky` says is beyond it) as a float of that kind.
std::uint64_t float_word(double exact, int sticky, Value value, char mode) {
  switch (value) {
    case Value::f16:
      return narrow_f16().round(exact, sticky, mode);
    case Value::bf16:
      return narrow_bf16().round(exact, sticky, mode);
    case Value::f32: {
      if (std::isnan(exact)) return 0x7fffffffU;
      // Rounded to odd: 53 bits are enough for one more rounding.
      const double odd =
          sticky != 0 ? std::bit_cast<double>(std::bit_cast<std::uint64_t>(exact) | 1U) : exact;
      const HostMode scope(mode);
      const volatile double in = odd;
      const volatile float r = static_cast<float>(in);
      return bits(static_cast<float>(r));
    }
    default: {
      if (std::isnan(exact)) return 0x7fffffffffffffffU;
      const bool away = sticky != 0 && ((mode == 'p' && sticky > 0) || (mode == 'm' && sticky < 0));
      return bits(away ? std::nextafter(exact, sticky > 0 ? HUGE_VAL : -HUGE_VAL) : exact);
    }
  }
}

void between_integers(Cases& out) {
  for (const Number& to : integers) {
    for (const Number& from : integers) {
      for (const bool sat : {false, true}) {
        // Saturation is refused where every value fits.
        const bool fits = to.is_signed == from.is_signed ? to.width >= from.width
                                                         : to.is_signed && to.width > from.width;
        if (sat && fits) continue;
        out.push_back(
            {fmt::format("cvt{}.{}.{} D, A;", sat ? ".sat" : "", to.name, from.name),
             {to.value},
             {from.value},
             [=](const Inputs& x) {
               const I128 value = read_integer(x[0], from);
               return Results{write_integer(sat ? clamp_integer(value, to) : value, to), 0};
             }});
      }
    }
  }
}

struct Rounding {
  const char* suffix;
  char mode;
};
constexpr Rounding to_float[] = {{"rn", 'n'}, {"rz", 'z'}, {"rm", 'm'}, {"rp", 'p'}};
constexpr Rounding to_integer[] = {{"rni", 'n'}, {"rzi", 'z'}, {"rmi", 'm'}, {"rpi", 'p'}};

double to_whole(double value, char mode) {
  return mode == 'z'   ? std::trunc(value)
         : mode == 'm' ? std::floor(value)
         : mode == 'p' ? std::ceil(value)
                       : std::nearbyint(value);
}

void integers_to_floats(Cases& out) {
  for (const Floating& to : floats) {
    for (const Number& from : integers) {
      if (to.value == Value::bf16 && from.width == 8) continue;
      for (const Rounding& rounding : to_float) {
        const char mode = rounding.mode;
        out.push_back(
            {fmt::format("cvt.{}.{}.{} D, A;", rounding.suffix, to.name, from.name),
             {to.value},
             {from.value},
             [=](const Inputs& x) {
               const I128 value = read_integer(x[0], from);
               const bool negative = value < 0;
               auto magnitude = static_cast<std::uint64_t>(negative ? -value : value);
               if (to.value == Value::f64) {
                 return Results{
                     bits(under_mode<double>(
                         mode,
                         [&](double, double, double) {
                           const volatile std::uint64_t m = magnitude;
                           const volatile std::int64_t s = static_cast<std::int64_t>(value);
                           return negative ? static_cast<double>(s) : static_cast<double>(m);
                         },
                         0.0)),
                     0};
               }
               const bool lost = magnitude >> 53U != 0 && (magnitude & 0x7ffU) != 0;
               if (magnitude >> 53U != 0) magnitude &= ~std::uint64_t{0x7ff};
               const auto exact = static_cast<double>(magnitude);
               const int sticky = !lost ? 0 : (negative ? -1 : 1);
               return Results{float_word(negative ? -exact : exact, sticky, to.value, mode), 0};
             },
             to.value == Value::bf16 ? 90U : 75U});
      }
    }
  }
}

void floats_to_integers(Cases& out) {
  for (const Number& to : integers) {
    for (const Floating& from : floats) {
      if (from.value == Value::bf16 && to.width == 8) continue;
      for (const Rounding& rounding : to_integer) {
        for (const bool ftz : {false, true}) {
          if (ftz && from.value != Value::f32) continue;
          const char mode = rounding.mode;
          out.push_back(
              {fmt::format("cvt.{}{}.{}.{} D, A;", rounding.suffix, ftz ? ".ftz" : "", to.name,
                           from.name),
               {to.value},
               {from.value},
               [=](const Inputs& x) {
                 const double value = float_value(ftz ? flushed(x[0]) : x[0], from.value);
                 if (std::isnan(value)) {
                   // The manual: zero, but the middle of the range with 64 bits on either side.
                   const bool zero = from.value != Value::f64 && to.width < 64;
                   return Results{zero ? 0 : write_integer(I128{1} << (to.width - 1), to), 0};
                 }
                 const double near = std::min(std::max(to_whole(value, mode), -0x1p100), 0x1p100);
                 return Results{write_integer(clamp_integer(static_cast<I128>(near), to), to), 0};
               },
               from.value == Value::bf16 ? 90U : 75U});
          // NaN to 8 bits: not said.
          if (to.width == 8) {
            const Value kind = from.value;
            out.back().defined = [kind](const Inputs& x) {
              return !std::isnan(float_value(x[0], kind));
            };
          }
        }
      }
    }
  }
}

double saturated(double value) {
  return std::isnan(value) || value <= 0 ? 0.0 : std::min(value, 1.0);
}

void between_floats(Cases& out) {
  const auto push = [&](std::string text, Value to, Value from, char mode, bool ftz, bool sat,
                        bool relu, unsigned target) {
    out.push_back({std::move(text),
                   {to},
                   {from},
                   [=](const Inputs& x) {
                     // Conversions to f16 keep denormal inputs, as a card does.
                     const bool flushes = ftz && from == Value::f32 && to != Value::f16;
                     double value = float_value(flushes ? flushed(x[0]) : x[0], from);
                     if (from == Value::bf16 && to == Value::f32) return Results{x[0] << 16, 0};
                     if (sat) value = saturated(value);
                     if (relu && !std::isnan(value) && value <= 0) value = 0;
                     std::uint64_t word = float_word(value, 0, to, mode);
                     if (ftz && to == Value::f32) word = flushed(word);
                     return Results{word, 0};
                   },
                   target});
    // Which NaN comes out of or into f64 is not specified.
    if (to == Value::f64 || from == Value::f64) {
      out.back().defined = [from](const Inputs& x) { return !std::isnan(float_value(x[0], from)); };
    }
  };
  for (const bool sat : {false, true}) {
    const char* s = sat ? ".sat" : "";
    push(fmt::format("cvt{}.f32.f16 D, A;", s), Value::f32, Value::f16, 'n', false, sat, false, 75);
    push(fmt::format("cvt{}.f64.f16 D, A;", s), Value::f64, Value::f16, 'n', false, sat, false, 75);
    push(fmt::format("cvt{}.f64.f32 D, A;", s), Value::f64, Value::f32, 'n', false, sat, false, 75);
    push(fmt::format("cvt.ftz{}.f64.f32 D, A;", s), Value::f64, Value::f32, 'n', true, sat, false,
         75);
    push(fmt::format("cvt.ftz{}.f32.f16 D, A;", s), Value::f32, Value::f16, 'n', true, sat, false,
         75);
    for (const Rounding& rounding : to_float) {
      const char* r = rounding.suffix;
      push(fmt::format("cvt.{}{}.f16.f32 D, A;", r, s), Value::f16, Value::f32, rounding.mode,
           false, sat, false, 75);
      push(fmt::format("cvt.{}.ftz{}.f16.f32 D, A;", r, s), Value::f16, Value::f32, rounding.mode,
           true, sat, false, 75);
      push(fmt::format("cvt.{}{}.f16.f64 D, A;", r, s), Value::f16, Value::f64, rounding.mode,
           false, sat, false, 75);
      push(fmt::format("cvt.{}{}.f32.f64 D, A;", r, s), Value::f32, Value::f64, rounding.mode,
           false, sat, false, 75);
      push(fmt::format("cvt.{}.ftz{}.f32.f64 D, A;", r, s), Value::f32, Value::f64, rounding.mode,
           true, sat, false, 75);
    }
  }
  push("cvt.f32.bf16 D, A;", Value::f32, Value::bf16, 'n', false, false, false, 90);
  push("cvt.f64.bf16 D, A;", Value::f64, Value::bf16, 'n', false, false, false, 90);
  for (const bool relu : {false, true}) {
    const char* e = relu ? ".relu" : "";
    push(fmt::format("cvt.rn{}.bf16.f32 D, A;", e), Value::bf16, Value::f32, 'n', false, false,
         relu, 80);
    push(fmt::format("cvt.rz{}.bf16.f32 D, A;", e), Value::bf16, Value::f32, 'z', false, false,
         relu, 80);
    if (relu)
      push("cvt.rn.relu.f16.f32 D, A;", Value::f16, Value::f32, 'n', false, false, true, 80);
  }
  push("cvt.rn.bf16.f64 D, A;", Value::bf16, Value::f64, 'n', false, false, false, 90);
  push("cvt.rn.bf16.f16 D, A;", Value::bf16, Value::f16, 'n', false, false, false, 90);
  push("cvt.rz.f16.bf16 D, A;", Value::f16, Value::bf16, 'z', false, false, false, 90);
  // To whole numbers in the same format.
  for (const Rounding& rounding : to_integer) {
    const char mode = rounding.mode;
    for (const Floating& type : floats) {
      for (const bool ftz : {false, true}) {
        if (ftz && type.value != Value::f32) continue;
        out.push_back(
            {fmt::format("cvt.{}{}.{}.{} D, A;", rounding.suffix, ftz ? ".ftz" : "", type.name,
                         type.name),
             {type.value},
             {type.value},
             [=](const Inputs& x) {
               const double value = float_value(ftz ? flushed(x[0]) : x[0], type.value);
               return Results{
                   float_word(std::copysign(to_whole(value, mode), value), 0, type.value, 'n'), 0};
             },
             type.value == Value::bf16 ? 90U : 75U});
        const Value kind = type.value;
        out.back().defined = [kind](const Inputs& x) {
          return !std::isnan(float_value(x[0], kind));
        };
      }
    }
  }
}

void packed(Cases& out) {
  for (const bool relu : {false, true}) {
    const char* e = relu ? ".relu" : "";
    for (const char mode : {'n', 'z'}) {
      for (const bool brain : {false, true}) {
        const Value to = brain ? Value::bf16x2 : Value::f16x2;
        const Value half = brain ? Value::bf16 : Value::f16;
        out.push_back({fmt::format("cvt.{}{}.{}.f32 D, A, B;", mode == 'n' ? "rn" : "rz", e,
                                   brain ? "bf16x2" : "f16x2"),
                       {to},
                       {Value::f32, Value::f32},
                       [=](const Inputs& x) {
                         const auto part = [&](std::uint64_t word) {
                           const double value = float_value(word, Value::f32);
                           return float_word(relu && value <= 0 ? 0.0 : value, 0, half, mode);
                         };
                         return Results{part(x[1]) | (part(x[0]) << 16), 0};
                       },
                       80});
      }
    }
    for (const bool wide : {false, true}) {
      const Narrow& format = wide ? narrow_e5m2() : narrow_e4m3();
      const char* name = wide ? "e5m2x2" : "e4m3x2";
      const auto part = [relu, &format](double value) {
        return format.round(relu && value <= 0 ? 0.0 : value, 0, 'n', true);
      };
      out.push_back({fmt::format("cvt.rn.satfinite{}.{}.f32 D, A, B;", e, name),
                     {Value::i16},
                     {Value::f32, Value::f32},
                     [=](const Inputs& x) {
                       return Results{part(float_value(x[1], Value::f32)) |
                                          (part(float_value(x[0], Value::f32)) << 8),
                                      0};
                     },
                     89});
      out.push_back({fmt::format("cvt.rn.satfinite{}.{}.f16x2 D, A;", e, name),
                     {Value::i16},
                     {Value::f16x2},
                     [=](const Inputs& x) {
                       return Results{part(narrow_f16().value(x[0] & 0xffff)) |
                                          (part(narrow_f16().value((x[0] >> 16) & 0xffff)) << 8),
                                      0};
                     },
                     89});
      out.push_back({fmt::format("cvt.rn{}.f16x2.{} D, A;", e, name),
                     {Value::f16x2},
                     {Value::i16},
                     [=, &format](const Inputs& x) {
                       const auto half = [&](unsigned shift) {
                         const double value = format.value((x[0] >> shift) & 0xff);
                         return narrow_f16().round(relu && value <= 0 ? 0.0 : value);
                       };
                       return Results{half(0) | (half(8) << 16), 0};
                     },
                     89});
    }
    const auto tf32 = [&](const char* rounding, char mode, unsigned target) {
      out.push_back({fmt::format("cvt.{}{}.tf32.f32 D, A;", rounding, e),
                     {Value::i32},
                     {Value::f32},
                     [=](const Inputs& x) {
                       const double value = float_value(x[0], Value::f32);
                       if (std::isnan(value)) return Results{0x7fffe000U, 0};
                       return Results{
                           narrow_tf32().round(relu && value <= 0 ? 0.0 : value, 0, mode) << 13, 0};
                     },
                     target});
      // Which NaN .rna gives is not specified.
      if (mode == 'a')
        out.back().defined = [](const Inputs& x) { return !std::isnan(f32_of(x[0])); };
    };
    if (!relu) tf32("rna", 'a', 80);
    tf32("rn", 'n', 90);
    tf32("rz", 'z', 90);
  }
  for (const Number& to : integers) {
    if (to.width > 16) continue;
    const unsigned width = to.width;
    const auto pair = [to, width](const Inputs& x) {
      const auto part = [&](std::uint64_t word) {
        const I128 value = clamp_integer(read_integer(word, integers[5]), to);
        return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << width) - 1);
      };
      return part(x[1]) | (part(x[0]) << width);
    };
    if (width == 16) {
      out.push_back({fmt::format("cvt.pack.sat.{}.s32 D, A, B;", to.name),
                     {Value::i32},
                     {Value::i32, Value::i32},
                     [pair](const Inputs& x) {
                       return Results{pair(x), 0};
                     }});
    } else {
      out.push_back({fmt::format("cvt.pack.sat.{}.s32.b32 D, A, B, C;", to.name),
                     {Value::i32},
                     {Value::i32, Value::i32, Value::i32},
                     [pair](const Inputs& x) {
                       return Results{(pair(x) | (x[2] << 16)) & 0xffffffffU, 0};
                     }});
    }
  }
}

}  // namespace

void add_convert_cases(Cases& out) {
  between_integers(out);
  integers_to_floats(out);
  floats_to_integers(out);
  between_floats(out);
  packed(out);
}

}  // namespace demarc::emulate::test
