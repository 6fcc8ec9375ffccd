// Approximations: the emulator rounds the exact value once; a card may err as much as the PTX ISA
// documents (section of each instruction).
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

using Exact = long double (*)(long double, long double);

constexpr Bound once{0.51, 0, 0};

struct Row {
  const char* name;
  unsigned sources;
  Exact exact;
  Bound card;
  bool (*defined)(double, double);
};

bool anywhere(double, double) {
  return true;
}

// The reciprocal is rounded and flushed, then multiplied.
long double by_reciprocal(long double a, long double b, long double scale) {
  const auto reciprocal = static_cast<float>(1 / (b * scale));
  const std::uint64_t word = flushed(f32_bits(reciprocal));
  return static_cast<float>(a * scale) * static_cast<long double>(f32_of(word));
}

const Row f32_rows[] = {
    // Two ulp where the divisor is not near the ends of the range.
    {"div.full",
     2,
     [](long double a, long double b) {
       const long double size = std::fabs(b);
       return by_reciprocal(a, b, size > 0x1p126 ? 0.25 : size < 0x1p-126 ? 0x1p24 : 1);
     },
     {2, 0, 0},
     [](double, double b) { return std::fabs(b) >= 0x1p-126 && std::fabs(b) <= 0x1p126; }},
    {"div.approx",
     2,
     [](long double a, long double b) {
       return by_reciprocal(a, b, std::fabs(b) < 0x1p-126 ? 0x1p24 : 1);
     },
     {2, 0, 0},
     [](double, double b) { return std::fabs(b) >= 0x1p-126 && std::fabs(b) <= 0x1p126; }},
    {"rcp.approx", 1, [](long double a, long double) { return 1 / a; }, {1, 0, 0}, anywhere},
    {"sqrt.approx",
     1,
     [](long double a, long double) { return std::sqrt(a); },
     {0, 0x1p-22, 0},
     anywhere},
    {"rsqrt.approx",
     1,
     [](long double a, long double) { return 1 / std::sqrt(a); },
     {0, 0x1p-22, 0},
     anywhere},
    // Absolute errors are documented within one turn.
    {"sin.approx",
     1,
     [](long double a, long double) { return std::sin(a); },
     {0, 0, 0x1p-20},
     [](double a, double) { return std::fabs(a) <= 6.28 || !std::isfinite(a); }},
    {"cos.approx",
     1,
     [](long double a, long double) { return std::cos(a); },
     {0, 0, 0x1p-20},
     [](double a, double) { return std::fabs(a) <= 6.28 || !std::isfinite(a); }},
    {"lg2.approx",
     1,
     [](long double a, long double) { return std::log2(a); },
     {0, 0x1p-22, 0x1p-22},
     anywhere},
    {"ex2.approx",
     1,
     [](long double a, long double) { return std::exp2(a); },
     {2, 0, 0},
     anywhere}};

void f32_functions(Cases& out) {
  for (const Row& row : f32_rows) {
    for (const bool ftz : {false, true}) {
      const auto exact = row.exact;
      const auto defined = row.defined;
      out.push_back({fmt::format("{}{}.f32 D, A{};", row.name, ftz ? ".ftz" : "",
                                 row.sources == 2 ? ", B" : ""),
                     {Value::f32},
                     std::vector<Value>(row.sources, Value::f32),
                     [=](const Inputs& x) {
                       const auto in = [&](unsigned i) {
                         return static_cast<long double>(f32_of(ftz ? flushed(x[i]) : x[i]));
                       };
                       const auto r = static_cast<float>(exact(in(0), in(1)));
                       const std::uint64_t word = f32_bits(r);
                       return Results{ftz ? flushed(word) : word, 0};
                     }});
      auto& entry = out.back();
      entry.emulator = once;
      entry.card = row.card;
      entry.defined = [defined](const Inputs& x) {
        return defined(static_cast<double>(f32_of(x[0])), static_cast<double>(f32_of(x[1])));
      };
    }
  }
  out.push_back(
      {"tanh.approx.f32 D, A;", {Value::f32}, {Value::f32}, [](const Inputs& x) {
         return Results{
             f32_bits(static_cast<float>(std::tanh(static_cast<long double>(f32_of(x[0]))))), 0};
       }});
  out.back().emulator = once;
  out.back().card = {0, 0x1p-10, 0};
}

void f64_functions(Cases& out) {
  const auto push = [&](const char* text, Exact exact, Bound card) {
    out.push_back(
        {text, {Value::f64}, {Value::f64}, [exact](const Inputs& x) {
           return Results{
               bits(static_cast<double>(exact(static_cast<long double>(f64_of(x[0])), 0))), 0};
         }});
    out.back().emulator = {1.01, 0, 0};
    out.back().card = card;
    // The card flushes denormals here and returns the upper half of the word.
    out.back().defined = [](const Inputs& x) {
      const double a = std::fabs(f64_of(x[0]));
      return a >= 0x1p-1020 && a <= 0x1p1020;
    };
  };
  push("rcp.approx.ftz.f64 D, A;", [](long double a, long double) { return 1 / a; },
       {0, 0x1p-19, 0});
  push("rsqrt.approx.f64 D, A;", [](long double a, long double) { return 1 / std::sqrt(a); },
       {0, 0x1p-19, 0});
  push("rsqrt.approx.ftz.f64 D, A;", [](long double a, long double) { return 1 / std::sqrt(a); },
       {0, 0x1p-19, 0});
}

void narrow_functions(Cases& out) {
  const auto push = [&](const std::string& text, Value value, Exact exact, Bound card,
                        unsigned target) {
    const bool brain = value == Value::bf16 || value == Value::bf16x2;
    const Narrow& format = brain ? narrow_bf16() : narrow_f16();
    out.push_back({text,
                   {value},
                   {value},
                   [=, &format](const Inputs& x) {
                     Results result;
                     for (unsigned shift = 0; shift < bits_of(value); shift += 16) {
                       const auto in =
                           static_cast<long double>(format.value((x[0] >> shift) & 0xffff));
                       result.d |= format.round(static_cast<double>(exact(in, 0))) << shift;
                     }
                     return result;
                   },
                   target});
    out.back().emulator = {};
    out.back().card = card;
  };
  const Exact power = [](long double a, long double) { return std::exp2(a); };
  const Exact tangent = [](long double a, long double) { return std::tanh(a); };
  for (const char* x2 : {"", "x2"}) {
    const bool pair = x2[0] != 0;
    const Value half = pair ? Value::f16x2 : Value::f16;
    const Value brain = pair ? Value::bf16x2 : Value::bf16;
    push(fmt::format("ex2.approx.f16{} D, A;", x2), half, power, {0, 0x1p-9, 0x1p-24}, 75);
    push(fmt::format("ex2.approx.ftz.bf16{} D, A;", x2), brain, power, {0, 0x1p-6, 0x1p-126}, 90);
    push(fmt::format("tanh.approx.f16{} D, A;", x2), half, tangent, {0, 0, 0x1p-10}, 75);
    push(fmt::format("tanh.approx.bf16{} D, A;", x2), brain, tangent, {0, 0x1p-7, 0}, 90);
  }
}

}  // namespace

void add_approximate_cases(Cases& out) {
  f32_functions(out);
  f64_functions(out);
  narrow_functions(out);
}

}  // namespace demarc::emulate::test
