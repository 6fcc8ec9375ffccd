// Lists cases of integer arithmetic: sums, products, quotients and carries.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

template <class T>
void arithmetic(Cases& out, Named<T> type) {
  const Value v = type.value;
  const auto two = [&](const char* form, std::function<Results(const Inputs&)> reference) {
    out.push_back(
        {fmt::format("{}.{} D, A, B;", form, type.name), {v}, {v, v}, std::move(reference)});
  };
  two("add", [](const Inputs& x) { return wrapped<T>(whole<T>(x[0]) + whole<T>(x[1])); });
  two("sub", [](const Inputs& x) { return wrapped<T>(whole<T>(x[0]) - whole<T>(x[1])); });
  two("mul.lo", [](const Inputs& x) {
    return wrapped<T>(
        static_cast<I128>(static_cast<U128>(whole<T>(x[0])) * static_cast<U128>(whole<T>(x[1]))));
  });
  const auto product_high = [](const Inputs& x) {
    // For two 64-bit numbers the product of the unsigned values needs all 128 bits.
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      return static_cast<I128>((static_cast<U128>(x[0]) * static_cast<U128>(x[1])) >> 64U);
    } else {
      return (whole<T>(x[0]) * whole<T>(x[1])) >> (sizeof(T) * 8);
    }
  };
  two("mul.hi", [product_high](const Inputs& x) { return wrapped<T>(product_high(x)); });
  out.push_back(
      {fmt::format("mad.lo.{} D, A, B, C;", type.name), {v}, {v, v, v}, [](const Inputs& x) {
         return wrapped<T>(static_cast<I128>(static_cast<U128>(whole<T>(x[0])) *
                                                 static_cast<U128>(whole<T>(x[1])) +
                                             static_cast<U128>(whole<T>(x[2]))));
       }});
  out.push_back(
      {fmt::format("mad.hi.{} D, A, B, C;", type.name),
       {v},
       {v, v, v},
       [product_high](const Inputs& x) { return wrapped<T>(product_high(x) + whole<T>(x[2])); }});
  // Division by zero is undefined in PTX; the emulator's own answer has a test of its own.
  const auto nonzero = [](const Inputs& x) { return static_cast<T>(x[1]) != 0; };
  out.push_back({fmt::format("div.{} D, A, B;", type.name), {v}, {v, v}, [](const Inputs& x) {
                   const I128 b = whole<T>(x[1]);
                   return wrapped<T>(b == 0 ? I128{-1} : whole<T>(x[0]) / b);
                 }});
  out.back().defined = nonzero;
  out.push_back({fmt::format("rem.{} D, A, B;", type.name), {v}, {v, v}, [](const Inputs& x) {
                   const I128 b = whole<T>(x[1]);
                   return wrapped<T>(b == 0 ? whole<T>(x[0]) : whole<T>(x[0]) % b);
                 }});
  out.back().defined = nonzero;
  two("min", [](const Inputs& x) { return wrapped<T>(std::min(whole<T>(x[0]), whole<T>(x[1]))); });
  two("max", [](const Inputs& x) { return wrapped<T>(std::max(whole<T>(x[0]), whole<T>(x[1]))); });
  out.push_back({fmt::format("sad.{} D, A, B, C;", type.name), {v}, {v, v, v}, [](const Inputs& x) {
                   const I128 apart = whole<T>(x[0]) - whole<T>(x[1]);
                   return wrapped<T>(whole<T>(x[2]) + (apart < 0 ? -apart : apart));
                 }});
  if constexpr (std::is_signed_v<T>) {
    out.push_back({fmt::format("abs.{} D, A;", type.name), {v}, {v}, [](const Inputs& x) {
                     const I128 a = whole<T>(x[0]);
                     return wrapped<T>(a < 0 ? -a : a);
                   }});
    out.push_back({fmt::format("neg.{} D, A;", type.name), {v}, {v}, [](const Inputs& x) {
                     return wrapped<T>(-whole<T>(x[0]));
                   }});
  }
}

template <class T, class Wide>
void widening(Cases& out, Named<T> type, Value wide) {
  const Value v = type.value;
  out.push_back(
      {fmt::format("mul.wide.{} D, A, B;", type.name), {wide}, {v, v}, [](const Inputs& x) {
         return wrapped<Wide>(whole<T>(x[0]) * whole<T>(x[1]));
       }});
  out.push_back({fmt::format("mad.wide.{} D, A, B, C;", type.name),
                 {wide},
                 {v, v, wide},
                 [](const Inputs& x) {
                   return wrapped<Wide>(whole<T>(x[0]) * whole<T>(x[1]) + whole<Wide>(x[2]));
                 }});
}

// 24-bit factors: the low 24 bits of each operand, with their sign.
template <class T>
I128 low24(std::uint64_t word) {
  const I128 value = static_cast<I128>(word & 0xffffffU);
  return std::is_signed_v<T> && (word & 0x800000U) != 0 ? value - (I128{1} << 24) : value;
}

template <class T>
void narrow_factors(Cases& out, Named<T> type) {
  const Value v = Value::i32;
  for (const bool high : {false, true}) {
    const char* part = high ? "hi" : "lo";
    const auto product = [high](const Inputs& x) {
      const I128 exact = low24<T>(x[0]) * low24<T>(x[1]);
      return high ? exact >> 16 : exact;
    };
    out.push_back({fmt::format("mul24.{}.{} D, A, B;", part, type.name),
                   {v},
                   {v, v},
                   [product](const Inputs& x) { return wrapped<T>(product(x)); }});
    out.push_back({fmt::format("mad24.{}.{} D, A, B, C;", part, type.name),
                   {v},
                   {v, v, v},
                   [product](const Inputs& x) { return wrapped<T>(product(x) + whole<T>(x[2])); }});
  }
}

}  // namespace

void add_integer_cases(Cases& out) {
  for_integers([&](auto type) { arithmetic(out, type); });
  widening<std::uint16_t, std::uint32_t>(out, {"u16", Value::i16}, Value::i32);
  widening<std::int16_t, std::int32_t>(out, {"s16", Value::i16}, Value::i32);
  widening<std::uint32_t, std::uint64_t>(out, {"u32", Value::i32}, Value::i64);
  widening<std::int32_t, std::int64_t>(out, {"s32", Value::i32}, Value::i64);
  narrow_factors<std::uint32_t>(out, {"u32", Value::i32});
  narrow_factors<std::int32_t>(out, {"s32", Value::i32});
  const Value v = Value::i32;
  using S = std::int32_t;
  out.push_back({"add.sat.s32 D, A, B;", {v}, {v, v}, [](const Inputs& x) {
                   return clamped<S>(whole<S>(x[0]) + whole<S>(x[1]));
                 }});
  out.push_back({"sub.sat.s32 D, A, B;", {v}, {v, v}, [](const Inputs& x) {
                   return clamped<S>(whole<S>(x[0]) - whole<S>(x[1]));
                 }});
  out.push_back({"mad.hi.sat.s32 D, A, B, C;", {v}, {v, v, v}, [](const Inputs& x) {
                   return clamped<S>(((whole<S>(x[0]) * whole<S>(x[1])) >> 32) + whole<S>(x[2]));
                 }});
  out.push_back({"mad24.hi.sat.s32 D, A, B, C;", {v}, {v, v, v}, [](const Inputs& x) {
                   return clamped<S>(((low24<S>(x[0]) * low24<S>(x[1])) >> 16) + whole<S>(x[2]));
                 }});
  for (const bool most : {false, true}) {
    out.push_back({fmt::format("{}.relu.s32 D, A, B;", most ? "max" : "min"),
                   {v},
                   {v, v},
                   [most](const Inputs& x) {
                     const I128 a = whole<S>(x[0]);
                     const I128 b = whole<S>(x[1]);
                     return wrapped<S>(std::max<I128>(most ? std::max(a, b) : std::min(a, b), 0));
                   },
                   90});
  }
  // Two halves of a word.
  const auto halves = [&](const char* text, bool is_signed, auto operation, bool relu = false) {
    out.push_back({text,
                   {v},
                   {v, v},
                   [=](const Inputs& x) {
                     Results result;
                     for (unsigned shift = 0; shift < 32; shift += 16) {
                       const I128 a = is_signed ? whole<std::int16_t>(x[0] >> shift)
                                                : whole<std::uint16_t>(x[0] >> shift);
                       const I128 b = is_signed ? whole<std::int16_t>(x[1] >> shift)
                                                : whole<std::uint16_t>(x[1] >> shift);
                       I128 r = operation(a, b);
                       if (relu && r < 0) r = 0;
                       result.d |= wrapped<std::uint16_t>(r).d << shift;
                     }
                     return result;
                   },
                   90});
  };
  const auto sum = [](I128 a, I128 b) { return a + b; };
  const auto least = [](I128 a, I128 b) { return std::min(a, b); };
  const auto most = [](I128 a, I128 b) { return std::max(a, b); };
  halves("add.u16x2 D, A, B;", false, sum);
  halves("add.s16x2 D, A, B;", true, sum);
  halves("min.u16x2 D, A, B;", false, least);
  halves("min.s16x2 D, A, B;", true, least);
  halves("max.u16x2 D, A, B;", false, most);
  halves("max.s16x2 D, A, B;", true, most);
  halves("min.relu.s16x2 D, A, B;", true, least, true);
  halves("max.relu.s16x2 D, A, B;", true, most, true);
}

void add_carry_cases(Cases& out) {
  // Three in a row, each of its own kind. The condition code is the carry out of a + b, or of
  // a + ~b + 1; one that takes it adds it in the place of that 1, or to a + b.
  struct Kind {
    std::string_view name;
    bool subtracts;
    bool multiplies;
  };
  constexpr std::array kinds{Kind{"add", false, false}, Kind{"sub", true, false},
                             Kind{"mad", false, true}};
  const auto chain = [&](const char* type, Value v, const std::array<Kind, 3>& steps) {
    const auto line = [&](std::size_t i, std::string_view to, bool sets) {
      return fmt::format("{}{}{}{}.{} {}, {}A, B;", steps[i].name, i == 0 ? "" : "c",
                         steps[i].multiplies ? ".lo" : "", sets ? ".cc" : "", type, to,
                         steps[i].multiplies ? "C, " : "");
    };
    InstructionCase entry;
    entry.text = fmt::format("{{ .reg .{} t; {} {} {} }}", type, line(0, "t", true),
                             line(1, "D", true), line(2, "E", false));
    entry.results = {v, v};
    entry.sources = {v, v, v};
    entry.reference = [width = bits_of(v), steps](const Inputs& x) {
      const U128 ones = (U128{1} << width) - 1;
      const auto add = [&](const Kind& kind, U128 carry) {
        const U128 a = (kind.multiplies ? U128{x[0]} * U128{x[2]} : U128{x[0]}) & ones;
        const U128 b = (kind.subtracts ? ~U128{x[1]} : U128{x[1]}) & ones;
        return a + b + carry;
      };
      const U128 first = add(steps[0], steps[0].subtracts ? 1 : 0);
      const U128 second = add(steps[1], first >> width);
      const U128 third = add(steps[2], second >> width);
      return Results{static_cast<std::uint64_t>(second & ones),
                     static_cast<std::uint64_t>(third & ones)};
    };
    out.push_back(std::move(entry));
  };
  for (const Kind& first : kinds) {
    for (const Kind& second : kinds) {
      for (const Kind& third : kinds) {
        chain("u32", Value::i32, {first, second, third});
        chain("s64", Value::i64, {first, second, third});
      }
    }
  }
  // A product of two 64-bit numbers, word by word: mad.cc and madc carry through.
  const auto product = [&](const char* type, Value v, bool high) {
    const unsigned width = bits_of(v);
    const char* part = high ? "hi" : "lo";
    out.push_back({fmt::format("{{ .reg .{0} t; add.cc.{0} t, F, -1; madc.{1}.cc.{0} D, A, B, C; "
                               "addc.{0} E, 0, 0; }}",
                               type, part),
                   {v, v},
                   {v, v, v, v},
                   [width, high](const Inputs& x) {
                     const U128 ones = (U128{1} << width) - 1;
                     U128 part_of = U128{x[0]} * U128{x[1]};
                     if (high) part_of >>= width;
                     const U128 sum = (part_of & ones) + x[2] + (x[3] != 0 ? 1 : 0);
                     return Results{static_cast<std::uint64_t>(sum & ones),
                                    static_cast<std::uint64_t>(sum >> width)};
                   }});
    out.push_back({fmt::format("mad.{1}.cc.{0} D, A, B, C;addc.{0} E, 0, 0;", type, part),
                   {v, v},
                   {v, v, v},
                   [width, high](const Inputs& x) {
                     const U128 ones = (U128{1} << width) - 1;
                     U128 part_of = U128{x[0]} * U128{x[1]};
                     if (high) part_of >>= width;
                     const U128 sum = (part_of & ones) + x[2];
                     return Results{static_cast<std::uint64_t>(sum & ones),
                                    static_cast<std::uint64_t>(sum >> width)};
                   }});
  };
  for (const bool high : {false, true}) {
    product("u32", Value::i32, high);
    product("u64", Value::i64, high);
  }
}

}  // namespace demarc::emulate::test
