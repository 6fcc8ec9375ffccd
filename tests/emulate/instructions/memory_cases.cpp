// Loads, stores and atomics, each thread on 16 bytes of its own: %out in global memory, or its part
// of a shared array.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

struct Element {
  const char* name;
  Value value;  // value of the register
  unsigned width;
  bool is_signed;
};
constexpr Element elements[] = {
    {"u8", Value::i16, 8, false},   {"s8", Value::i16, 8, true},   {"b8", Value::i16, 8, false},
    {"u16", Value::i16, 16, false}, {"s16", Value::i16, 16, true}, {"b16", Value::i16, 16, false},
    {"u32", Value::i32, 32, false}, {"s32", Value::i32, 32, true}, {"b32", Value::i32, 32, false},
    {"u64", Value::i64, 64, false}, {"s64", Value::i64, 64, true}, {"b64", Value::i64, 64, false},
    {"f32", Value::f32, 32, false}, {"f64", Value::f64, 64, false}};

struct Place {
  const char* space;
  const char* begin;  // makes %p, the address of the thread's own 16 bytes
};
constexpr Place places[] = {
    {"global", "{ .reg .b64 p; mov.b64 p, %out; "},
    {"shared",
     "{ .reg .b64 p; .reg .b32 q; .shared .align 16 .b8 area[2048]; mov.u32 q, %tid.x; "
     "mul.wide.u32 p, q, 16; mov.u64 %x, area; add.s64 p, p, %x; "},
    {"local", "{ .reg .b64 p; .local .align 16 .b8 mine[16]; mov.u64 p, mine; "}};

std::uint64_t cut(std::uint64_t word, unsigned width) {
  return width == 64 ? word : word & ((std::uint64_t{1} << width) - 1);
}
std::uint64_t extended(std::uint64_t word, const Element& type, unsigned to) {
  const std::uint64_t low = cut(word, type.width);
  const bool negative = type.is_signed && ((low >> (type.width - 1)) & 1U) != 0;
  return cut(negative ? low | ~((std::uint64_t{1} << (type.width - 1) << 1) - 1) : low, to);
}

void loads_and_stores(Cases& out) {
  for (const Place& place : places) {
    for (const Element& type : elements) {
      for (const Value wide : {Value::i16, Value::i32, Value::i64}) {
        if (bits_of(wide) < type.width) continue;
        if ((type.value == Value::f32 || type.value == Value::f64) && bits_of(wide) != type.width)
          continue;
        const unsigned to = bits_of(wide);
        out.push_back({fmt::format("{}st.{}.{} [p], A; ld.{}.{} D, [p]; }}", place.begin,
                                   place.space, type.name, place.space, type.name),
                       {wide},
                       {wide},
                       [=](const Inputs& x) {
                         return Results{extended(x[0], type, to), 0};
                       }});
      }
    }
  }
  const auto two = [](const Inputs& x) { return Results{x[0], x[1]}; };
  out.push_back({"{ st.global.v2.b32 [%out], {A, B}; ld.global.v2.b32 {D, E}, [%out]; }",
                 {Value::i32, Value::i32},
                 {Value::i32, Value::i32},
                 two});
  out.push_back({"{ st.global.v2.b64 [%out], {A, B}; ld.global.v2.b64 {D, E}, [%out]; }",
                 {Value::i64, Value::i64},
                 {Value::i64, Value::i64},
                 two});
  out.push_back(
      {"{ st.global.v4.b32 [%out], {A, B, C, F}; ld.global.v4.u32 {_, D, E, _}, [%out]; }",
       {Value::i32, Value::i32},
       {Value::i32, Value::i32, Value::i32, Value::i32},
       [](const Inputs& x) {
         return Results{x[1], x[2]};
       }});
  out.push_back(
      {"{ st.global.v4.u8 [%out], {A, B, C, F}; ld.global.v2.s16 {D, E}, [%out]; }",
       {Value::i16, Value::i16},
       {Value::i16, Value::i16, Value::i16, Value::i16},
       [](const Inputs& x) {
         return Results{(x[0] & 0xff) | ((x[1] & 0xff) << 8), (x[2] & 0xff) | ((x[3] & 0xff) << 8)};
       }});
  out.push_back(
      {"{ .reg .b128 t, u; mov.b128 t, {A, B}; st.global.b128 [%out], t; ld.global.b128 u, [%out]; "
       "mov.b128 {D, E}, u; }",
       {Value::i64, Value::i64},
       {Value::i64, Value::i64},
       two,
       75});
  out.push_back(
      {"{ st.global.b64 [%out+8], A; membar.cta; ld.relaxed.gpu.global.u32 D, [%out+8]; "
       "ld.volatile.global.u32 E, [%out+12]; }",
       {Value::i32, Value::i32},
       {Value::i64},
       [](const Inputs& x) {
         return Results{x[0] & 0xffffffffU, x[0] >> 32};
       }});
  // Generic addresses.
  out.push_back(
      {"{ .reg .b64 p; .shared .align 8 .b8 area[1024]; .reg .b32 q; mov.u32 q, %tid.x; "
       "mul.wide.u32 p, q, 8; "
       "mov.u64 %x, area; add.s64 p, p, %x; cvta.shared.u64 p, p; st.b64 [p], A; ld.b64 D, [p]; }",
       {Value::i64},
       {Value::i64},
       [](const Inputs& x) {
         return Results{x[0], 0};
       }});
  out.push_back(
      {"{ .reg .b64 p; .local .align 8 .b8 mine[8]; mov.u64 p, mine; cvta.local.u64 p, p; st.b64 "
       "[p], A; "
       "cvta.to.local.u64 p, p; ld.local.b64 D, [p]; }",
       {Value::i64},
       {Value::i64},
       [](const Inputs& x) {
         return Results{x[0], 0};
       }});
}

// A: what is in memory, B: the operand, C: what a compare-and-swap writes. D: what the atomic
// returns, E: what is in memory then.
void atomic(Cases& out, const std::string& name, const char* type, Value value, bool swaps,
            std::function<std::uint64_t(const Inputs&)> made, unsigned target = 75,
            const char* spaces = "gs", const char* suffix = "") {
  const unsigned width = bits_of(value);
  for (const Place& place : places) {
    if (std::string_view(spaces).find(place.space[0]) == std::string_view::npos) continue;
    InstructionCase entry;
    entry.text = fmt::format(
        "{0}st.{1}.b{2} [p], A; atom.{1}.{3}{6}.{4} D, [p], B{5}; ld.{1}.b{2} E, [p]; }}",
        place.begin, place.space, width, name, type, swaps ? ", C" : "", suffix);
    entry.results = {value, value};
    entry.sources = std::vector<Value>(swaps ? 3 : 2, value);
    entry.target = target;
    entry.reference = [=](const Inputs& x) { return Results{x[0], cut(made(x), width)}; };
    out.push_back(entry);
    if (name == "exch" || name == "cas") continue;
    entry.text =
        fmt::format("{0}st.{1}.b{2} [p], A; red.{1}.{3}{5}.{4} [p], B; ld.{1}.b{2} D, [p]; }}",
                    place.begin, place.space, width, name, type, suffix);
    entry.results = {value};
    entry.about = fmt::format("red.{}.{}.{}", place.space, name, type);
    entry.reference = [=](const Inputs& x) { return Results{cut(made(x), width), 0}; };
    out.push_back(entry);
  }
}

template <class T>
void integer_atomics(Cases& out, const char* type, Value value) {
  atomic(out, "add", type, value, false, [](const Inputs& x) { return x[0] + x[1]; });
  atomic(out, "min", type, value, false,
         [](const Inputs& x) { return static_cast<T>(x[0]) < static_cast<T>(x[1]) ? x[0] : x[1]; });
  atomic(out, "max", type, value, false,
         [](const Inputs& x) { return static_cast<T>(x[0]) < static_cast<T>(x[1]) ? x[1] : x[0]; });
}

std::uint64_t halves(const Narrow& format, bool pair, const Inputs& x,
                     double (*operation)(double, double, double)) {
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < (pair ? 32U : 16U); shift += 16) {
    int sticky = 0;
    const double a = format.value((x[0] >> shift) & 0xffff);
    const double b = format.value((x[1] >> shift) & 0xffff);
    const volatile double near = operation(a, b, 0);
    double r = with_sticky(sticky, operation, a, b);
    if (r == 0 && sticky == 0) r = near;
    result |= format.round(r, sticky) << shift;
  }
  return result;
}

void float_atomics(Cases& out) {
  // The manual: f32 in global memory flushes denormals, in shared memory it does not.
  const auto sum = [](std::uint64_t a, std::uint64_t b) { return f32_bits(f32_of(a) + f32_of(b)); };
  atomic(
      out, "add", "f32", Value::f32, false,
      [sum](const Inputs& x) { return flushed(sum(flushed(x[0]), flushed(x[1]))); }, 75, "g");
  atomic(
      out, "add", "f32", Value::f32, false, [sum](const Inputs& x) { return sum(x[0], x[1]); }, 75,
      "s");
  atomic(out, "add", "f64", Value::f64, false,
         [](const Inputs& x) { return f64_bits(f64_of(x[0]) + f64_of(x[1])); });
  // The bits of a NaN of f64 are not specified.
  const auto number = [](const Inputs& x) { return !std::isnan(f64_of(x[0]) + f64_of(x[1])); };
  for (std::size_t i = out.size() - 4; i < out.size(); ++i) out[i].defined = number;
  const auto plus = [](double a, double b, double) { return a + b; };
  atomic(
      out, "add", "f16", Value::f16, false,
      [plus](const Inputs& x) { return halves(narrow_f16(), false, x, plus); }, 75, "gs", ".noftz");
  atomic(
      out, "add", "f16x2", Value::f16x2, false,
      [plus](const Inputs& x) { return halves(narrow_f16(), true, x, plus); }, 75, "gs", ".noftz");
  atomic(
      out, "add", "bf16", Value::bf16, false,
      [plus](const Inputs& x) { return halves(narrow_bf16(), false, x, plus); }, 90, "gs",
      ".noftz");
  atomic(
      out, "add", "bf16x2", Value::bf16x2, false,
      [plus](const Inputs& x) { return halves(narrow_bf16(), true, x, plus); }, 90, "gs", ".noftz");
}

void vector_atomics(Cases& out) {
  const auto two = [&](const char* type, Value value, unsigned width, auto combine,
                       const char* operation) {
    out.push_back(
        {fmt::format(
             "{{ st.global.v2.b{0} [%out], {{A, B}}; atom.global.{2}.v2.{1} {{D, E}}, [%out], "
             "{{C, F}}; ld.global.v2.b{0} {{D, E}}, [%out]; }}",
             width, type, operation),
         {value, value},
         {value, value, value, value},
         [=](const Inputs& x) {
           return Results{combine(x[0], x[2]), combine(x[1], x[3])};
         },
         90});
    out.push_back(
        {fmt::format("{{ st.global.v2.b{0} [%out], {{A, B}}; red.global.{2}.v2.{1} [%out], "
                     "{{C, F}}; ld.global.v2.b{0} {{D, E}}, [%out]; }}",
                     width, type, operation),
         {value, value},
         {value, value, value, value},
         [=](const Inputs& x) {
           return Results{combine(x[0], x[2]), combine(x[1], x[3])};
         },
         90});
  };
  two(
      "f32", Value::f32, 32,
      [](std::uint64_t a, std::uint64_t b) {
        return flushed(f32_bits(f32_of(flushed(a)) + f32_of(flushed(b))));
      },
      "add");
  const auto plus = [](double a, double b, double) { return a + b; };
  two(
      "f16x2", Value::f16x2, 32,
      [plus](std::uint64_t a, std::uint64_t b) {
        return halves(narrow_f16(), true, {{a, b}}, plus);
      },
      "add.noftz");
  two(
      "bf16", Value::bf16, 16,
      [plus](std::uint64_t a, std::uint64_t b) {
        return halves(narrow_bf16(), false, {{a, b}}, plus);
      },
      "add.noftz");
}

}  // namespace

void add_memory_cases(Cases& out) {
  loads_and_stores(out);
  integer_atomics<std::uint32_t>(out, "u32", Value::i32);
  integer_atomics<std::int32_t>(out, "s32", Value::i32);
  integer_atomics<std::uint64_t>(out, "u64", Value::i64);
  atomic(out, "min", "s64", Value::i64, false, [](const Inputs& x) {
    return static_cast<std::int64_t>(x[0]) < static_cast<std::int64_t>(x[1]) ? x[0] : x[1];
  });
  atomic(out, "max", "s64", Value::i64, false, [](const Inputs& x) {
    return static_cast<std::int64_t>(x[0]) < static_cast<std::int64_t>(x[1]) ? x[1] : x[0];
  });
  for (const Value value : {Value::i32, Value::i64}) {
    const char* type = value == Value::i32 ? "b32" : "b64";
    atomic(out, "and", type, value, false, [](const Inputs& x) { return x[0] & x[1]; });
    atomic(out, "or", type, value, false, [](const Inputs& x) { return x[0] | x[1]; });
    atomic(out, "xor", type, value, false, [](const Inputs& x) { return x[0] ^ x[1]; });
    atomic(out, "exch", type, value, false, [](const Inputs& x) { return x[1]; });
    atomic(out, "cas", type, value, true,
           [](const Inputs& x) { return x[0] == x[1] ? x[2] : x[0]; });
  }
  atomic(out, "cas", "b16", Value::i16, true,
         [](const Inputs& x) { return x[0] == x[1] ? x[2] : x[0]; });
  atomic(out, "inc", "u32", Value::i32, false,
         [](const Inputs& x) { return x[0] >= x[1] ? 0 : x[0] + 1; });
  atomic(out, "dec", "u32", Value::i32, false,
         [](const Inputs& x) { return x[0] == 0 || x[0] > x[1] ? x[1] : x[0] - 1; });
  float_atomics(out);
  vector_atomics(out);
}

}  // namespace demarc::emulate::test
