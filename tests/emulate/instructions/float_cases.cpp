// Lists cases of f32 and f64 arithmetic, in every rounding mode, with .ftz and .sat.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

struct Mode {
  const char* suffix;
  char mode;
};
constexpr Mode modes[] = {{"rn", 'n'}, {"rz", 'z'}, {"rm", 'm'}, {"rp", 'p'}};

float clamp_to_one(float x) {
  return std::isnan(x) || x <= 0 ? 0.0F : std::min(x, 1.0F);
}

using Operation32 = float (*)(float, float, float);
using Operation64 = double (*)(double, double, double);

// Every rounding, with and without .ftz and .sat.
void f32_rounded(Cases& out, const char* name, unsigned sources, Operation32 operation,
                 bool saturates) {
  static constexpr const char* operands[] = {"", " D, A;", " D, A, B;", " D, A, B, C;"};
  for (const Mode& mode : modes) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        if (sat && !saturates) continue;
        const char m = mode.mode;
        out.push_back({fmt::format("{}.{}{}{}.f32{}", name, mode.suffix, ftz ? ".ftz" : "",
                                   sat ? ".sat" : "", operands[sources]),
                       {Value::f32},
                       std::vector<Value>(sources, Value::f32),
                       [=](const Inputs& x) {
                         const auto in = [&](unsigned i) {
                           return f32_of(ftz ? flushed(x[i]) : x[i]);
                         };
                         float r = under_mode<float>(m, operation, in(0), in(1), in(2));
                         std::uint64_t word = f32_bits(r);
                         if (ftz) word = flushed(word);
                         if (sat) word = bits(clamp_to_one(f32_of(word)));
                         return Results{word, 0};
                       }});
      }
    }
  }
}

void f64_rounded(Cases& out, const char* name, unsigned sources, Operation64 operation) {
  static constexpr const char* operands[] = {"", " D, A;", " D, A, B;", " D, A, B, C;"};
  for (const Mode& mode : modes) {
    const char m = mode.mode;
    out.push_back({fmt::format("{}.{}.f64{}", name, mode.suffix, operands[sources]),
                   {Value::f64},
                   std::vector<Value>(sources, Value::f64),
                   [=](const Inputs& x) {
                     return Results{f64_bits(under_mode<double>(m, operation, f64_of(x[0]),
                                                                f64_of(x[1]), f64_of(x[2]))),
                                    0};
                   }});
  }
}

template <class T>
T lesser(T a, T b, bool most) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == most ? b : a;
  return (a < b) != most ? a : b;
}

void extremes(Cases& out) {
  for (const bool most : {false, true}) {
    const char* name = most ? "max" : "min";
    const Value v = Value::f32;
    for (const bool ftz : {false, true}) {
      for (const bool nan : {false, true}) {
        for (const bool xorsign : {false, true}) {
          for (const unsigned sources : {2U, 3U}) {
            if (xorsign && sources == 3) continue;
            const unsigned target = sources == 3 ? 100 : (xorsign ? 86 : (nan ? 80 : 75));
            out.push_back(
                {fmt::format("{}{}{}{}.f32 D, A, B{};", name, ftz ? ".ftz" : "", nan ? ".NaN" : "",
                             xorsign ? ".xorsign.abs" : "", sources == 3 ? ", C" : ""),
                 {v},
                 std::vector<Value>(sources, v),
                 [=](const Inputs& x) {
                   std::uint64_t sign = 0;
                   bool any_nan = false;
                   float r = 0;
                   for (unsigned i = 0; i < sources; ++i) {
                     std::uint64_t word = ftz ? flushed(x[i]) : x[i];
                     if (xorsign) {
                       sign ^= word & 0x80000000U;
                       word &= 0x7fffffffU;
                     }
                     const float value = f32_of(word);
                     any_nan = any_nan || std::isnan(value);
                     r = i == 0 ? value : lesser(r, value, most);
                   }
                   if (any_nan && nan) return Results{0x7fffffffU, 0};
                   if (std::isnan(r)) return Results{0x7fffffffU, 0};
                   return Results{f32_bits(r) | (xorsign ? sign : 0), 0};
                 },
                 target});
          }
        }
      }
    }
    const Value w = Value::f64;
    out.push_back({fmt::format("{}.f64 D, A, B;", name), {w}, {w, w}, [=](const Inputs& x) {
                     return Results{f64_bits(lesser(f64_of(x[0]), f64_of(x[1]), most)), 0};
                   }});
  }
}

void signs_and_classes(Cases& out) {
  const Value v = Value::f32;
  const Value w = Value::f64;
  for (const bool ftz : {false, true}) {
    const char* suffix = ftz ? ".ftz" : "";
    out.push_back({fmt::format("neg{}.f32 D, A;", suffix), {v}, {v}, [ftz](const Inputs& x) {
                     return Results{(ftz ? flushed(x[0]) : x[0]) ^ 0x80000000U, 0};
                   }});
    out.push_back({fmt::format("abs{}.f32 D, A;", suffix), {v}, {v}, [ftz](const Inputs& x) {
                     return Results{(ftz ? flushed(x[0]) : x[0]) & 0x7fffffffU, 0};
                   }});
    // What these do to the bits of a NaN is not specified.
    const auto number = [](const Inputs& x) { return !std::isnan(f32_of(x[0])); };
    out[out.size() - 1].defined = number;
    out[out.size() - 2].defined = number;
  }
  out.push_back({"neg.f64 D, A;", {w}, {w}, [](const Inputs& x) {
                   return Results{bits(-f64_of(x[0])), 0};
                 }});
  out.push_back({"abs.f64 D, A;", {w}, {w}, [](const Inputs& x) {
                   return Results{bits(std::fabs(f64_of(x[0]))), 0};
                 }});
  out.push_back({"copysign.f32 D, A, B;", {v}, {v, v}, [](const Inputs& x) {
                   return Results{(x[1] & 0x7fffffffU) | (x[0] & 0x80000000U), 0};
                 }});
  out.push_back({"copysign.f64 D, A, B;", {w}, {w, w}, [](const Inputs& x) {
                   return Results{bits(std::copysign(f64_of(x[1]), f64_of(x[0]))), 0};
                 }});
  struct Class {
    const char* name;
    bool (*holds)(int);
  };
  static constexpr Class classes[] = {
      {"finite", [](int c) { return c != FP_NAN && c != FP_INFINITE; }},
      {"infinite", [](int c) { return c == FP_INFINITE; }},
      {"number", [](int c) { return c != FP_NAN; }},
      {"notanumber", [](int c) { return c == FP_NAN; }},
      {"normal", [](int c) { return c == FP_NORMAL || c == FP_ZERO; }},
      {"subnormal", [](int c) { return c == FP_SUBNORMAL; }}};
  for (const Class& entry : classes) {
    const auto holds = entry.holds;
    out.push_back({fmt::format("testp.{}.f32 D, A;", entry.name),
                   {Value::pred},
                   {v},
                   [holds](const Inputs& x) {
                     return Results{holds(std::fpclassify(f32_of(x[0]))) ? 1U : 0U, 0};
                   }});
    out.push_back({fmt::format("testp.{}.f64 D, A;", entry.name),
                   {Value::pred},
                   {w},
                   [holds](const Inputs& x) {
                     return Results{holds(std::fpclassify(f64_of(x[0]))) ? 1U : 0U, 0};
                   }});
  }
}

void packed_f32(Cases& out) {
  static constexpr struct {
    const char* name;
    unsigned sources;
    Operation32 operation;
  } rows[] = {{"add", 2, [](float a, float b, float) { return a + b; }},
              {"sub", 2, [](float a, float b, float) { return a - b; }},
              {"mul", 2, [](float a, float b, float) { return a * b; }},
              {"fma", 3, [](float a, float b, float c) { return std::fma(a, b, c); }}};
  for (const auto& row : rows) {
    for (const Mode& mode : modes) {
      for (const bool ftz : {false, true}) {
        const auto operation = row.operation;
        const char m = mode.mode;
        out.push_back({fmt::format("{}.{}{}.f32x2 D, A, B{};", row.name, mode.suffix,
                                   ftz ? ".ftz" : "", row.sources == 3 ? ", C" : ""),
                       {Value::f32x2},
                       std::vector<Value>(row.sources, Value::f32x2),
                       [=](const Inputs& x) {
                         Results result;
                         for (unsigned shift = 0; shift < 64; shift += 32) {
                           const auto in = [&](unsigned i) {
                             const std::uint64_t word = (x[i] >> shift) & 0xffffffffU;
                             return f32_of(ftz ? flushed(word) : word);
                           };
                           std::uint64_t word =
                               f32_bits(under_mode<float>(m, operation, in(0), in(1), in(2)));
                           if (ftz) word = flushed(word);
                           result.d |= word << shift;
                         }
                         return result;
                       },
                       100});
      }
    }
  }
}

}  // namespace

void add_float_cases(Cases& out) {
  const Operation32 add = [](float a, float b, float) { return a + b; };
  const Operation32 sub = [](float a, float b, float) { return a - b; };
  const Operation32 mul = [](float a, float b, float) { return a * b; };
  const Operation32 div = [](float a, float b, float) { return a / b; };
  const Operation32 fused = [](float a, float b, float c) { return std::fma(a, b, c); };
  const Operation32 root = [](float a, float, float) { return std::sqrt(a); };
  const Operation32 inverse = [](float a, float, float) { return 1.0F / a; };
  f32_rounded(out, "add", 2, add, true);
  f32_rounded(out, "sub", 2, sub, true);
  f32_rounded(out, "mul", 2, mul, true);
  f32_rounded(out, "fma", 3, fused, true);
  f32_rounded(out, "mad", 3, fused, true);
  f32_rounded(out, "div", 2, div, false);
  f32_rounded(out, "sqrt", 1, root, false);
  f32_rounded(out, "rcp", 1, inverse, false);
  f64_rounded(out, "add", 2, [](double a, double b, double) { return a + b; });
  f64_rounded(out, "sub", 2, [](double a, double b, double) { return a - b; });
  f64_rounded(out, "mul", 2, [](double a, double b, double) { return a * b; });
  f64_rounded(out, "fma", 3, [](double a, double b, double c) { return std::fma(a, b, c); });
  f64_rounded(out, "mad", 3, [](double a, double b, double c) { return std::fma(a, b, c); });
  f64_rounded(out, "div", 2, [](double a, double b, double) { return a / b; });
  f64_rounded(out, "sqrt", 1, [](double a, double, double) { return std::sqrt(a); });
  f64_rounded(out, "rcp", 1, [](double a, double, double) { return 1.0 / a; });
  // Without a rounding the nearest is meant.
  const Value v = Value::f32;
  out.push_back({"add.f32 D, A, B;", {v}, {v, v}, [](const Inputs& x) {
                   return Results{f32_bits(f32_of(x[0]) + f32_of(x[1])), 0};
                 }});
  out.push_back({"mul.f64 D, A, B;", {Value::f64}, {Value::f64, Value::f64}, [](const Inputs& x) {
                   return Results{f64_bits(f64_of(x[0]) * f64_of(x[1])), 0};
                 }});
  extremes(out);
  signs_and_classes(out);
  packed_f32(out);
}

}  // namespace demarc::emulate::test
