// Lists cases of moves and of permutations of bytes.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

void permutations(Cases& out) {
  const Value v = Value::i32;
  const auto byte_of = [](const Inputs& x, unsigned i) {
    return ((i < 4 ? x[0] >> (8 * i) : x[1] >> (8 * i - 32))) & 0xff;
  };
  out.push_back({"prmt.b32 D, A, B, C;", {v}, {v, v, v}, [byte_of](const Inputs& x) {
                   Results result;
                   for (unsigned i = 0; i < 4; ++i) {
                     const auto nibble = static_cast<unsigned>(x[2] >> (4 * i)) & 15U;
                     std::uint64_t byte = byte_of(x, nibble % 8);
                     if (nibble >= 8) byte = byte >= 128 ? 255 : 0;
                     result.d |= byte << (8 * i);
                   }
                   return result;
                 }});
  // Which byte goes to places 0-3, by the value of C & 3 (the manual's tables).
  struct Mode {
    const char* name;
    unsigned from[4][4];
  };
  static constexpr Mode modes[] = {
      {"f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
      {"b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
      {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
      {"ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
      {"rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}}};
  for (const Mode& mode : modes) {
    out.push_back({fmt::format("prmt.b32.{} D, A, B, C;", mode.name),
                   {v},
                   {v, v, v},
                   [mode, byte_of](const Inputs& x) {
                     Results result;
                     for (unsigned i = 0; i < 4; ++i)
                       result.d |= byte_of(x, mode.from[x[2] & 3U][i]) << (8 * i);
                     return result;
                   }});
  }
}

}  // namespace

void add_move_cases(Cases& out) {
  const auto same = [](const Inputs& x) { return Results{x[0], 0}; };
  for_words([&](auto type) {
    out.push_back({fmt::format("mov.{} D, A;", type.name), {type.value}, {type.value}, same});
  });
  for_integers([&](auto type) {
    out.push_back({fmt::format("mov.{} D, A;", type.name), {type.value}, {type.value}, same});
  });
  out.push_back({"mov.f32 D, A;", {Value::f32}, {Value::f32}, same});
  out.push_back({"mov.f64 D, A;", {Value::f64}, {Value::f64}, same});
  out.push_back({"mov.pred D, A;", {Value::pred}, {Value::pred}, same});
  out.push_back({"mov.b32 D, {A, B};", {Value::i32}, {Value::i16, Value::i16}, [](const Inputs& x) {
                   return Results{x[0] | (x[1] << 16), 0};
                 }});
  out.push_back({"mov.b64 D, {A, B};", {Value::i64}, {Value::i32, Value::i32}, [](const Inputs& x) {
                   return Results{x[0] | (x[1] << 32), 0};
                 }});
  out.push_back({"mov.b64 D, {A, B, C, F};",
                 {Value::i64},
                 {Value::i16, Value::i16, Value::i16, Value::i16},
                 [](const Inputs& x) {
                   return Results{x[0] | (x[1] << 16) | (x[2] << 32) | (x[3] << 48), 0};
                 }});
  out.push_back({"mov.b32 {D, E}, A;", {Value::i16, Value::i16}, {Value::i32}, [](const Inputs& x) {
                   return Results{x[0] & 0xffff, x[0] >> 16};
                 }});
  out.push_back({"mov.b64 {D, E}, A;", {Value::i32, Value::i32}, {Value::i64}, [](const Inputs& x) {
                   return Results{x[0] & 0xffffffffU, x[0] >> 32};
                 }});
  out.push_back(
      {"mov.b64 {_, D, E, _}, A;", {Value::i16, Value::i16}, {Value::i64}, [](const Inputs& x) {
         return Results{(x[0] >> 16) & 0xffff, (x[0] >> 32) & 0xffff};
       }});
  out.push_back({"{ .reg .b128 t; mov.b128 t, {A, B}; mov.b128 {D, E}, t; }",
                 {Value::i64, Value::i64},
                 {Value::i64, Value::i64},
                 [](const Inputs& x) {
                   return Results{x[0], x[1]};
                 },
                 75});
  out.push_back({"{ .reg .b128 t, u; mov.b128 t, {A, B}; mov.b128 u, t; mov.b128 {D, E}, u; }",
                 {Value::i64, Value::i64},
                 {Value::i64, Value::i64},
                 [](const Inputs& x) {
                   return Results{x[0], x[1]};
                 },
                 75});
  permutations(out);
}

}  // namespace demarc::emulate::test
