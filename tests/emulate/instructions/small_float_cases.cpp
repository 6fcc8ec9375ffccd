// Lists cases of arithmetic in f16, bf16 and pairs of them.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

using Operation = double (*)(double, double, double);

struct Options {
  bool ftz = false;
  bool sat = false;
  bool relu = false;
};

// One element: the operation in double towards zero, with a sticky sign, then the nearest value.
std::uint64_t element(const Narrow& format, Operation operation, std::uint64_t a, std::uint64_t b,
                      std::uint64_t c, const Options& options) {
  const auto in = [&](std::uint64_t word) {
    const double value = format.value(word);
    return options.ftz && std::fabs(value) < 0x1p-14 ? std::copysign(0.0, value) : value;
  };
  const double x = in(a);
  const double y = in(b);
  const double z = in(c);
  int sticky = 0;
  double r = 0;
  {
    // Signs of exact zeros are those of the nearest rounding.
    const volatile double near = operation(x, y, z);
    r = with_sticky(sticky, operation, x, y, z);
    if (r == 0 && sticky == 0) r = near;
  }
  if (options.sat) {
    if (std::isnan(r) || r <= 0) return format.round(0);
    if (r > 1 || (r == 1 && sticky != 0)) return format.round(1);
  }
  if (options.relu && !std::isnan(r) && r <= 0) return 0;
  std::uint64_t word = format.round(r, sticky);
  if (options.ftz && std::fabs(format.value(word)) < 0x1p-14) word &= 0x8000U;
  return word;
}

void arithmetic(Cases& out, const char* name, unsigned sources, Operation operation) {
  static constexpr const char* operands[] = {"", " D, A;", " D, A, B;", " D, A, B, C;"};
  const auto push = [&](const std::string& text, Value value, const Narrow& format, bool pair,
                        Options options, unsigned target) {
    out.push_back({text + operands[sources],
                   {value},
                   std::vector<Value>(sources, value),
                   [=, &format](const Inputs& x) {
                     Results result;
                     for (unsigned shift = 0; shift < (pair ? 32U : 16U); shift += 16) {
                       result.d |=
                           element(format, operation, (x[0] >> shift) & 0xffff,
                                   (x[1] >> shift) & 0xffff, (x[2] >> shift) & 0xffff, options)
                           << shift;
                     }
                     return result;
                   },
                   target});
  };
  const bool fused = sources == 3;
  for (const bool pair : {false, true}) {
    const Value half = pair ? Value::f16x2 : Value::f16;
    const Value brain = pair ? Value::bf16x2 : Value::bf16;
    const char* x2 = pair ? "x2" : "";
    const char* rn = fused ? ".rn" : "";
    for (const bool ftz : {false, true}) {
      const char* f = ftz ? ".ftz" : "";
      push(fmt::format("{}{}{}.f16{}", name, rn, f, x2), half, narrow_f16(), pair,
           {ftz, false, false}, 75);
      push(fmt::format("{}{}{}.sat.f16{}", name, rn, f, x2), half, narrow_f16(), pair,
           {ftz, true, false}, 75);
      if (fused)
        push(fmt::format("{}{}{}.relu.f16{}", name, rn, f, x2), half, narrow_f16(), pair,
             {ftz, false, true}, 80);
    }
    push(fmt::format("{}{}.bf16{}", name, rn, x2), brain, narrow_bf16(), pair, {}, fused ? 80 : 90);
    if (fused)
      push(fmt::format("{}{}.relu.bf16{}", name, rn, x2), brain, narrow_bf16(), pair,
           {false, false, true}, 80);
  }
}

std::uint64_t picked(const Narrow& format, std::uint64_t a, std::uint64_t b, bool most, bool nan,
                     bool ftz, bool xorsign) {
  std::uint64_t sign = 0;
  const auto in = [&](std::uint64_t word) {
    if (ftz && std::fabs(format.value(word)) < 0x1p-14) word &= 0x8000U;
    if (xorsign) {
      sign ^= word & 0x8000U;
      word &= 0x7fffU;
    }
    return word;
  };
  a = in(a);
  b = in(b);
  const double x = format.value(a);
  const double y = format.value(b);
  if (std::isnan(x) && std::isnan(y)) return format.nan();
  if ((std::isnan(x) || std::isnan(y)) && nan) return format.nan();
  if (std::isnan(x)) return b | sign;
  if (std::isnan(y)) return a | sign;
  if (x == y) return ((std::signbit(x) == most) ? b : a) | sign;
  return ((x < y) != most ? a : b) | sign;
}

void extremes(Cases& out) {
  for (const bool pair : {false, true}) {
    for (const bool most : {false, true}) {
      for (const bool nan : {false, true}) {
        for (const bool xorsign : {false, true}) {
          const auto push = [&](const char* type, Value value, const Narrow& format, bool ftz) {
            out.push_back({fmt::format("{}{}{}{}.{}{} D, A, B;", most ? "max" : "min",
                                       ftz ? ".ftz" : "", nan ? ".NaN" : "",
                                       xorsign ? ".xorsign.abs" : "", type, pair ? "x2" : ""),
                           {value},
                           {value, value},
                           [=, &format](const Inputs& x) {
                             Results result;
                             for (unsigned shift = 0; shift < (pair ? 32U : 16U); shift += 16)
                               result.d |= picked(format, (x[0] >> shift) & 0xffff,
                                                  (x[1] >> shift) & 0xffff, most, nan, ftz, xorsign)
                                           << shift;
                             return result;
                           },
                           xorsign ? 86U : 80U});
          };
          push("f16", pair ? Value::f16x2 : Value::f16, narrow_f16(), false);
          push("f16", pair ? Value::f16x2 : Value::f16, narrow_f16(), true);
          push("bf16", pair ? Value::bf16x2 : Value::bf16, narrow_bf16(), false);
        }
      }
    }
  }
}

void signs(Cases& out) {
  const auto push = [&](const char* type, Value value, std::uint64_t sign, unsigned target) {
    // What happens to a NaN's bits is not specified.
    const Narrow& format =
        value == Value::f16 || value == Value::f16x2 ? narrow_f16() : narrow_bf16();
    const auto numbers = [&format, value](const Inputs& x) {
      return !std::isnan(format.value(x[0] & 0xffff)) &&
             (bits_of(value) == 16 || !std::isnan(format.value((x[0] >> 16) & 0xffff)));
    };
    out.push_back({fmt::format("neg.{} D, A;", type),
                   {value},
                   {value},
                   [sign](const Inputs& x) {
                     return Results{x[0] ^ sign, 0};
                   },
                   target});
    out.back().defined = numbers;
    out.push_back({fmt::format("abs.{} D, A;", type),
                   {value},
                   {value},
                   [sign](const Inputs& x) {
                     return Results{x[0] & ~sign, 0};
                   },
                   target});
    out.back().defined = numbers;
  };
  push("f16", Value::f16, 0x8000U, 75);
  push("f16x2", Value::f16x2, 0x80008000U, 75);
  push("bf16", Value::bf16, 0x8000U, 80);
  push("bf16x2", Value::bf16x2, 0x80008000U, 80);
  for (const char* name : {"neg", "abs"}) {
    const bool negates = std::string_view(name) == "neg";
    out.push_back({fmt::format("{}.ftz.f16 D, A;", name),
                   {Value::f16},
                   {Value::f16},
                   [negates](const Inputs& x) {
                     std::uint64_t word = x[0];
                     if ((word & 0x7c00U) == 0) word &= 0x8000U;
                     return Results{negates ? word ^ 0x8000U : word & 0x7fffU, 0};
                   }});
    out.back().defined = [](const Inputs& x) { return !std::isnan(narrow_f16().value(x[0])); };
  }
}

}  // namespace

void add_small_float_cases(Cases& out) {
  arithmetic(out, "add", 2, [](double a, double b, double) { return a + b; });
  arithmetic(out, "sub", 2, [](double a, double b, double) { return a - b; });
  arithmetic(out, "mul", 2, [](double a, double b, double) { return a * b; });
  arithmetic(out, "fma", 3, [](double a, double b, double c) { return std::fma(a, b, c); });
  extremes(out);
  signs(out);
}

}  // namespace demarc::emulate::test
