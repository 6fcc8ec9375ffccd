// Lists cases of logic, table lookups and shifts.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

Results table_lookup(const Inputs& x, unsigned table, int combine) {
  Results result;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const auto a = static_cast<unsigned>(x[0] >> bit) & 1U;
    const auto b = static_cast<unsigned>(x[1] >> bit) & 1U;
    const auto c = static_cast<unsigned>(x[2] >> bit) & 1U;
    result.d |= std::uint64_t{(table >> (a * 4 + b * 2 + c)) & 1U} << bit;
  }
  const bool p = result.d != 0;
  const bool q = x[3] != 0;
  if (combine == 1) result.e = p || q ? 1 : 0;
  if (combine == 2) result.e = p && q ? 1 : 0;
  return result;
}

void funnel_shifts(Cases& out) {
  for (const bool left : {false, true}) {
    for (const bool wrap : {false, true}) {
      out.push_back(
          {fmt::format("shf.{}.{}.b32 D, A, B, C;", left ? "l" : "r", wrap ? "wrap" : "clamp"),
           {Value::i32},
           {Value::i32, Value::i32, Value::shift},
           [=](const Inputs& x) {
             const auto given = static_cast<std::uint32_t>(x[2]);
             const std::uint32_t n = wrap ? given % 32 : std::min(given, 32U);
             const U128 pair = (U128{x[1]} << 32) | x[0];
             const U128 moved = left ? (pair << n) >> 32 : pair >> n;
             return Results{static_cast<std::uint32_t>(moved), 0};
           }});
    }
  }
}

}  // namespace

void add_logic_cases(Cases& out) {
  const Value p = Value::pred;
  out.push_back({"and.pred D, A, B;", {p}, {p, p}, [](const Inputs& x) {
                   return Results{x[0] & x[1], 0};
                 }});
  out.push_back({"or.pred D, A, B;", {p}, {p, p}, [](const Inputs& x) {
                   return Results{x[0] | x[1], 0};
                 }});
  out.push_back({"xor.pred D, A, B;", {p}, {p, p}, [](const Inputs& x) {
                   return Results{x[0] ^ x[1], 0};
                 }});
  out.push_back({"not.pred D, A;", {p}, {p}, [](const Inputs& x) {
                   return Results{x[0] ^ 1U, 0};
                 }});
  for_words([&](auto type) {
    using T = typename decltype(type)::type;
    const Value v = type.value;
    const auto two = [&](const char* name, auto operation) {
      out.push_back({fmt::format("{}.{} D, A, B;", name, type.name),
                     {v},
                     {v, v},
                     [operation](const Inputs& x) {
                       return Results{bits(static_cast<T>(operation(x[0], x[1]))), 0};
                     }});
    };
    two("and", [](std::uint64_t a, std::uint64_t b) { return a & b; });
    two("or", [](std::uint64_t a, std::uint64_t b) { return a | b; });
    two("xor", [](std::uint64_t a, std::uint64_t b) { return a ^ b; });
    out.push_back({fmt::format("not.{} D, A;", type.name), {v}, {v}, [](const Inputs& x) {
                     return Results{bits(static_cast<T>(~x[0])), 0};
                   }});
    out.push_back({fmt::format("cnot.{} D, A;", type.name), {v}, {v}, [](const Inputs& x) {
                     return Results{x[0] == 0 ? 1U : 0U, 0};
                   }});
    out.push_back(
        {fmt::format("shl.{} D, A, B;", type.name), {v}, {v, Value::shift}, [](const Inputs& x) {
           const auto n = std::min<std::uint64_t>(x[1], sizeof(T) * 8);
           return Results{bits(static_cast<T>(static_cast<std::uint64_t>(U128{x[0]} << n))), 0};
         }});
    out.push_back(
        {fmt::format("shr.{} D, A, B;", type.name), {v}, {v, Value::shift}, [](const Inputs& x) {
           const auto n = std::min<std::uint64_t>(x[1], sizeof(T) * 8);
           return Results{bits(static_cast<T>(static_cast<std::uint64_t>(U128{x[0]} >> n))), 0};
         }});
  });
  for_integers([&](auto type) {
    using T = typename decltype(type)::type;
    out.push_back({fmt::format("shr.{} D, A, B;", type.name),
                   {type.value},
                   {type.value, Value::shift},
                   [](const Inputs& x) {
                     const auto n = std::min<std::uint64_t>(x[1], sizeof(T) * 8);
                     return wrapped<T>(whole<T>(x[0]) >> n);
                   }});
  });
  for (const unsigned table : {0x00U, 0x80U, 0xfeU, 0x96U, 0xe8U, 0xcaU, 0x1eU, 0xffU, 0x2dU}) {
    out.push_back({fmt::format("lop3.b32 D, A, B, C, {};", table),
                   {Value::i32},
                   {Value::i32, Value::i32, Value::i32},
                   [table](const Inputs& x) { return table_lookup(x, table, 0); }});
  }
  out.push_back({"lop3.or.b32 D|E, A, B, C, 0x96, F;",
                 {Value::i32, p},
                 {Value::i32, Value::i32, Value::i32, p},
                 [](const Inputs& x) { return table_lookup(x, 0x96, 1); }});
  out.push_back({"lop3.and.b32 D|E, A, B, C, 0x80, F;",
                 {Value::i32, p},
                 {Value::i32, Value::i32, Value::i32, p},
                 [](const Inputs& x) { return table_lookup(x, 0x80, 2); }});
  funnel_shifts(out);
}

}  // namespace demarc::emulate::test
