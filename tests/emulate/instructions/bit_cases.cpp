// Lists cases of instructions that count, find and cut bits, and of dot products of bytes.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

constexpr std::uint64_t none_found = 0xffffffffU;

bool bit_of(std::uint64_t word, unsigned at) {
  return ((word >> at) & 1U) != 0;
}

// The value of bits [position, position + length) as the manual describes bfe: bits beyond the word
// are the sign (zero for unsigned types), and so are those beyond the field.
template <class T>
Results field(const Inputs& x) {
  constexpr unsigned width = sizeof(T) * 8;
  const auto position = static_cast<unsigned>(x[1] & 0xffU);
  const auto length = static_cast<unsigned>(x[2] & 0xffU);
  const bool sign = std::is_signed_v<T> && length != 0 &&
                    bit_of(x[0], std::min(position + length - 1, width - 1));
  std::uint64_t result = 0;
  for (unsigned i = 0; i < width; ++i) {
    const bool inside = i < length && position + i < width;
    if (inside ? bit_of(x[0], position + i) : sign) result |= std::uint64_t{1} << i;
  }
  return {result, 0};
}

Results inserted(const Inputs& x, unsigned width) {
  const auto position = static_cast<unsigned>(x[2] & 0xffU);
  const auto length = static_cast<unsigned>(x[3] & 0xffU);
  std::uint64_t result = 0;
  for (unsigned i = 0; i < width; ++i) {
    const bool inside = i >= position && i < position + length;
    if (inside ? bit_of(x[0], i - position) : bit_of(x[1], i)) result |= std::uint64_t{1} << i;
  }
  return {result, 0};
}

template <class T>
void find_highest(Cases& out, const char* type, Value v) {
  constexpr unsigned width = sizeof(T) * 8;
  for (const bool shift : {false, true}) {
    out.push_back({fmt::format("bfind{}.{} D, A;", shift ? ".shiftamt" : "", type),
                   {Value::i32},
                   {v},
                   [shift](const Inputs& x) {
                     const bool flip = std::is_signed_v<T> && bit_of(x[0], width - 1);
                     for (unsigned at = width; at-- > 0;) {
                       if (bit_of(x[0], at) != flip) return Results{shift ? width - 1 - at : at, 0};
                     }
                     return Results{none_found, 0};
                   }});
  }
}

template <class T>
I128 byte_at(std::uint64_t word, unsigned i) {
  return whole<T>(word >> (8 * sizeof(T) * i));
}

template <class A, class B>
void dot_products(Cases& out, const char* a_type, const char* b_type) {
  const Value v = Value::i32;
  out.push_back(
      {fmt::format("dp4a.{}.{} D, A, B, C;", a_type, b_type), {v}, {v, v, v}, [](const Inputs& x) {
         I128 sum = whole<std::int32_t>(x[2]);
         for (unsigned i = 0; i < 4; ++i) sum += byte_at<A>(x[0], i) * byte_at<B>(x[1], i);
         return wrapped<std::uint32_t>(sum);
       }});
  using A16 = std::conditional_t<std::is_signed_v<A>, std::int16_t, std::uint16_t>;
  for (const bool high : {false, true}) {
    out.push_back({fmt::format("dp2a.{}.{}.{} D, A, B, C;", high ? "hi" : "lo", a_type, b_type),
                   {v},
                   {v, v, v},
                   [high](const Inputs& x) {
                     I128 sum = whole<std::int32_t>(x[2]);
                     for (unsigned i = 0; i < 2; ++i)
                       sum += byte_at<A16>(x[0], i) * byte_at<B>(x[1], i + (high ? 2 : 0));
                     return wrapped<std::uint32_t>(sum);
                   }});
  }
}

// The position of the |offset|-th set bit at or after (before, for negative offsets) `base`.
Results nth_set(const Inputs& x) {
  const auto base = static_cast<std::uint32_t>(x[1]);
  const auto offset = static_cast<std::int32_t>(static_cast<std::uint32_t>(x[2]));
  if (base > 31) return {none_found, 0};
  if (offset == 0) return {bit_of(x[0], base) ? base : none_found, 0};
  I128 left = offset < 0 ? -I128{offset} : I128{offset};
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
    if (bit_of(x[0], static_cast<unsigned>(at)) && --left == 0) {
      return {static_cast<std::uint64_t>(at), 0};
    }
  }
  return {none_found, 0};
}

}  // namespace

void add_bit_cases(Cases& out) {
  for (const unsigned width : {32U, 64U}) {
    const Value v = width == 32 ? Value::i32 : Value::i64;
    out.push_back(
        {fmt::format("popc.b{} D, A;", width), {Value::i32}, {v}, [width](const Inputs& x) {
           Results result;
           for (unsigned i = 0; i < width; ++i) result.d += bit_of(x[0], i) ? 1U : 0U;
           return result;
         }});
    out.push_back(
        {fmt::format("clz.b{} D, A;", width), {Value::i32}, {v}, [width](const Inputs& x) {
           Results result;
           while (result.d < width && !bit_of(x[0], width - 1 - static_cast<unsigned>(result.d)))
             ++result.d;
           return result;
         }});
    out.push_back({fmt::format("brev.b{} D, A;", width), {v}, {v}, [width](const Inputs& x) {
                     Results result;
                     for (unsigned i = 0; i < width; ++i)
                       result.d |= std::uint64_t{bit_of(x[0], i)} << (width - 1 - i);
                     return result;
                   }});
    out.push_back({fmt::format("bfi.b{} D, A, B, C, F;", width),
                   {v},
                   {v, v, Value::shift, Value::shift},
                   [width](const Inputs& x) { return inserted(x, width); }});
  }
  find_highest<std::uint32_t>(out, "u32", Value::i32);
  find_highest<std::int32_t>(out, "s32", Value::i32);
  find_highest<std::uint64_t>(out, "u64", Value::i64);
  find_highest<std::int64_t>(out, "s64", Value::i64);
  const std::vector<Value> narrow{Value::i32, Value::shift, Value::shift};
  const std::vector<Value> wide{Value::i64, Value::shift, Value::shift};
  out.push_back({"bfe.u32 D, A, B, C;", {Value::i32}, narrow, field<std::uint32_t>});
  out.push_back({"bfe.s32 D, A, B, C;", {Value::i32}, narrow, field<std::int32_t>});
  out.push_back({"bfe.u64 D, A, B, C;", {Value::i64}, wide, field<std::uint64_t>});
  out.push_back({"bfe.s64 D, A, B, C;", {Value::i64}, wide, field<std::int64_t>});
  out.push_back(
      {"fns.b32 D, A, B, C;", {Value::i32}, {Value::i32, Value::shift, Value::i32}, nth_set});
  out.push_back(
      {"fns.b32 D, A, B, C;", {Value::i32}, {Value::i32, Value::shift, Value::shift}, nth_set});
  for (const bool wrap : {false, true}) {
    for (const bool is_signed : {false, true}) {
      out.push_back(
          {fmt::format("szext.{}.{} D, A, B;", wrap ? "wrap" : "clamp", is_signed ? "s32" : "u32"),
           {Value::i32},
           {Value::i32, Value::shift},
           [=](const Inputs& x) {
             const auto given = static_cast<std::uint32_t>(x[1]);
             const std::uint32_t length = wrap ? given % 32 : std::min(given, 32U);
             std::uint64_t result = 0;
             for (unsigned i = 0; i < 32; ++i) {
               const bool sign = is_signed && length > 0 && bit_of(x[0], length - 1);
               if (i < length ? bit_of(x[0], i) : sign) result |= std::uint64_t{1} << i;
             }
             return Results{result, 0};
           }});
    }
    out.push_back({fmt::format("bmsk.{}.b32 D, A, B;", wrap ? "wrap" : "clamp"),
                   {Value::i32},
                   {Value::shift, Value::shift},
                   [=](const Inputs& x) {
                     std::uint64_t position = x[0] & 0xffffffffU;
                     std::uint64_t length = x[1] & 0xffffffffU;
                     if (wrap) {
                       position %= 32;
                       length %= 32;
                     }
                     Results result;
                     for (std::uint64_t i = 0; i < 32; ++i) {
                       if (i >= position && i - position < length)
                         result.d |= std::uint64_t{1} << i;
                     }
                     return result;
                   }});
  }
  dot_products<std::uint8_t, std::uint8_t>(out, "u32", "u32");
  dot_products<std::uint8_t, std::int8_t>(out, "u32", "s32");
  dot_products<std::int8_t, std::uint8_t>(out, "s32", "u32");
  dot_products<std::int8_t, std::int8_t>(out, "s32", "s32");
}

}  // namespace demarc::emulate::test
