// Scalar and SIMD video instructions, after the pseudo code of the manual (9.7.18).
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

// The part of a word that a selector names: "b2", "h1", or "" for all of it.
I128 part(std::uint64_t word, const std::string& selector, bool is_signed) {
  unsigned width = 32;
  unsigned at = 0;
  if (!selector.empty()) {
    width = selector[0] == 'b' ? 8 : 16;
    at = static_cast<unsigned>(selector[1] - '0') * width;
  }
  const I128 value = static_cast<I128>((word >> at) & ((std::uint64_t{1} << width) - 1));
  const bool negative = is_signed && ((word >> (at + width - 1)) & 1U) != 0;
  return negative ? value - (I128{1} << width) : value;
}

I128 limited(I128 value, unsigned width, bool is_signed) {
  const I128 most = (I128{1} << (width - (is_signed ? 1 : 0))) - 1;
  const I128 least = is_signed ? -most - 1 : 0;
  return value < least ? least : (value > most ? most : value);
}

using Operation = I128 (*)(I128, I128);

struct Scalar {
  const char* name;
  Operation operation;
};
constexpr Scalar scalars[] = {{"vadd", [](I128 a, I128 b) { return a + b; }},
                              {"vsub", [](I128 a, I128 b) { return a - b; }},
                              {"vabsdiff", [](I128 a, I128 b) { return a < b ? b - a : a - b; }},
                              {"vmin", [](I128 a, I128 b) { return a < b ? a : b; }},
                              {"vmax", [](I128 a, I128 b) { return a < b ? b : a; }}};

std::uint64_t word32(I128 value) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
}

std::string dotted(const std::string& selector) {
  return selector.empty() ? "" : "." + selector;
}

// What becomes of the result: added to c, compared with it, or put into a part of it.
Results finished(I128 value, const Inputs& x, const std::string& merge, const std::string& second,
                 bool is_signed) {
  if (!merge.empty()) {
    const unsigned width = merge[0] == 'b' ? 8 : 16;
    const unsigned at = static_cast<unsigned>(merge[1] - '0') * width;
    const std::uint64_t ones = ((std::uint64_t{1} << width) - 1) << at;
    return {(x[2] & ~ones) | ((word32(value) << at) & ones), 0};
  }
  if (second == "add") return {word32(value + static_cast<I128>(x[2])), 0};
  if (second == "min" || second == "max") {
    const I128 low = part(word32(value), "", is_signed);
    const I128 c = part(x[2], "", is_signed);
    return {word32((low < c) == (second == "min") ? low : c), 0};
  }
  return {word32(value), 0};
}

struct Form {
  const char* a;
  const char* b;
  const char* merge;
  const char* second;
  bool sat;
};
constexpr Form forms[] = {{"", "", "", "", false},      {"b1", "h1", "", "", false},
                          {"b3", "b0", "", "", true},   {"h0", "", "", "add", false},
                          {"", "b2", "", "min", true},  {"h1", "h0", "", "max", false},
                          {"b2", "b3", "b1", "", true}, {"h1", "b0", "h1", "", false}};

void scalar_cases(Cases& out) {
  const Value v = Value::i32;
  unsigned turn = 0;
  for (const Scalar& row : scalars) {
    for (const Form& form : forms) {
      for (unsigned signs = 0; signs < 4; ++signs) {
        // d's type changes from row to row, so that all eight combinations occur.
        const bool d_signed = ((turn++ / 4 + signs) & 1U) != 0;
        const bool a_signed = (signs & 1U) != 0;
        const bool b_signed = (signs & 2U) != 0;
        const auto name = [](bool is_signed) { return is_signed ? "s32" : "u32"; };
        const bool three = form.merge[0] != 0 || form.second[0] != 0;
        const std::string a = form.a;
        const std::string b = form.b;
        const std::string merge = form.merge;
        const std::string second = form.second;
        const bool sat = form.sat;
        const auto operation = row.operation;
        InstructionCase entry;
        entry.text = fmt::format("{}.{}.{}.{}{}{} D{}, A{}, B{}{};", row.name, name(d_signed),
                                 name(a_signed), name(b_signed), sat ? ".sat" : "", dotted(second),
                                 dotted(merge), dotted(a), dotted(b), three ? ", C" : "");
        entry.results = {v};
        entry.sources = std::vector<Value>(three ? 3 : 2, v);
        entry.reference = [=](const Inputs& x) {
          I128 value = operation(part(x[0], a, a_signed), part(x[1], b, b_signed));
          const unsigned width = merge.empty() ? 32 : (merge[0] == 'b' ? 8 : 16);
          if (sat) value = limited(value, width, d_signed);
          return finished(value, x, merge, second, d_signed);
        };
        out.push_back(std::move(entry));
      }
    }
  }
}

void shifts_and_comparisons(Cases& out) {
  const Value v = Value::i32;
  for (const bool left : {false, true}) {
    for (const bool wrap : {false, true}) {
      for (const bool is_signed : {false, true}) {
        const char* type = is_signed ? "s32" : "u32";
        out.push_back(
            {fmt::format("{}.{}.{}.u32.{} D, A, B;", left ? "vshl" : "vshr", type, type,
                         wrap ? "wrap" : "clamp"),
             {v},
             {v, Value::shift},
             [=](const Inputs& x) {
               const std::uint64_t n = wrap ? x[1] % 32 : std::min<std::uint64_t>(x[1], 32);
               const I128 a = part(x[0], "", is_signed);
               return Results{word32(left ? static_cast<I128>(static_cast<U128>(a) << n) : a >> n),
                              0};
             }});
        out.push_back({fmt::format("{}.{}.{}.u32.{}.add D, A.h1, B.b0, C;", left ? "vshl" : "vshr",
                                   type, type, wrap ? "wrap" : "clamp"),
                       {v},
                       {v, Value::shift, v},
                       [=](const Inputs& x) {
                         const std::uint64_t given = x[1] & 0xff;
                         const std::uint64_t n =
                             wrap ? given % 32 : std::min<std::uint64_t>(given, 32);
                         const I128 a = part(x[0], "h1", is_signed);
                         const I128 r =
                             left ? static_cast<I128>(static_cast<U128>(a) << n) : a >> n;
                         return Results{word32(r + static_cast<I128>(x[2])), 0};
                       }});
      }
    }
  }
  struct Word {
    const char* name;
    bool (*holds)(I128, I128);
  };
  static constexpr Word words[] = {
      {"eq", [](I128 a, I128 b) { return a == b; }}, {"ne", [](I128 a, I128 b) { return a != b; }},
      {"lt", [](I128 a, I128 b) { return a < b; }},  {"le", [](I128 a, I128 b) { return a <= b; }},
      {"gt", [](I128 a, I128 b) { return a > b; }},  {"ge", [](I128 a, I128 b) { return a >= b; }}};
  for (const Word& word : words) {
    for (unsigned signs = 0; signs < 4; ++signs) {
      const bool a_signed = (signs & 1U) != 0;
      const bool b_signed = (signs & 2U) != 0;
      const auto holds = word.holds;
      const auto types =
          fmt::format("{}.{}.{}", a_signed ? "s32" : "u32", b_signed ? "s32" : "u32", word.name);
      out.push_back(
          {fmt::format("vset.{} D, A, B;", types), {v}, {v, v}, [=](const Inputs& x) {
             return Results{holds(part(x[0], "", a_signed), part(x[1], "", b_signed)) ? 1U : 0U, 0};
           }});
      out.push_back({fmt::format("vset.{} D.b2, A.b1, B.h0, C;", types),
                     {v},
                     {v, v, v},
                     [=](const Inputs& x) {
                       const bool is =
                           holds(part(x[0], "b1", a_signed), part(x[1], "h0", b_signed));
                       return finished(is ? 1 : 0, x, "b2", "", false);
                     }});
    }
  }
}

void products(Cases& out) {
  const Value v = Value::i32;
  struct Row {
    const char* flags;
    const char* a_sign;
    const char* c_sign;
    unsigned shift;
    bool po;
    bool sat;
  };
  static constexpr Row rows[] = {
      {"", "", "", 0, false, false},          {".sat", "", "", 0, false, true},
      {".shr7", "", "", 7, false, false},     {".sat.shr15", "", "", 15, false, true},
      {"", "-", "", 0, false, false},         {".sat", "", "-", 0, false, true},
      {".shr15", "-", "", 15, false, false},  {".po", "", "", 0, true, false},
      {".po.sat.shr7", "", "", 7, true, true}};
  for (const Row& row : rows) {
    for (unsigned signs = 0; signs < 4; ++signs) {
      const bool a_signed = (signs & 1U) != 0;
      const bool b_signed = (signs & 2U) != 0;
      const bool minus_a = row.a_sign[0] == '-';
      const bool minus_c = row.c_sign[0] == '-';
      // Only sums of unsigned products may be unsigned; the manual ties d's type to that.
      const bool is_signed = a_signed || b_signed || minus_a || minus_c;
      const unsigned shift = row.shift;
      const bool po = row.po;
      const bool sat = row.sat;
      for (const char* select : {"", ".b2", ".h1"}) {
        const std::string part_name = select[0] == 0 ? "" : select + 1;
        out.push_back({fmt::format("vmad.{}.{}.{}{} D, {}A{}, B, {}C;", is_signed ? "s32" : "u32",
                                   a_signed ? "s32" : "u32", b_signed ? "s32" : "u32", row.flags,
                                   row.a_sign, select, row.c_sign),
                       {v},
                       {v, v, v},
                       [=](const Inputs& x) {
                         I128 product = part(x[0], part_name, a_signed) * part(x[1], "", b_signed);
                         if (minus_a) product = -product;
                         I128 c = part(x[2], "", is_signed);
                         if (minus_c) c = -c;
                         I128 value = (product + c + (po ? 1 : 0)) >> shift;
                         if (sat) value = limited(value, 32, is_signed);
                         return Results{word32(value), 0};
                       }});
      }
    }
  }
}

struct Lanes {
  const char* name;
  Operation operation;
};
constexpr Lanes simd[] = {
    {"vadd", [](I128 a, I128 b) { return a + b; }},
    {"vsub", [](I128 a, I128 b) { return a - b; }},
    {"vavrg", [](I128 a, I128 b) { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }},
    {"vabsdiff", [](I128 a, I128 b) { return a < b ? b - a : a - b; }},
    {"vmin", [](I128 a, I128 b) { return a < b ? a : b; }},
    {"vmax", [](I128 a, I128 b) { return a < b ? b : a; }},
    {"vset", [](I128 a, I128 b) { return I128{a < b ? 1 : 0}; }}};

struct SimdForm {
  const char* mask2;  // selectors of d, a, b for two and for four parts
  const char* a2;
  const char* b2;
  const char* mask4;
  const char* a4;
  const char* b4;
  bool sat;
  bool add;
};
constexpr SimdForm simd_forms[] = {{"", "", "", "", "", "", false, false},
                                   {"", "", "", "", "", "", true, false},
                                   {"", "", "", "", "", "", false, true},
                                   {"h1", "h01", "h32", "b310", "b0123", "b7654", false, false},
                                   {"h10", "h20", "h13", "b2", "b7531", "b6420", true, false}};

// Digits of a selector from part 0 on; `fallback` where none is written.
std::vector<unsigned> parts_of(const std::string& selector, unsigned count, unsigned first) {
  std::vector<unsigned> out;
  for (unsigned i = 0; i < count; ++i) out.push_back(first + i);
  if (selector.empty()) return out;
  out.clear();
  for (std::size_t i = selector.size(); i-- > 1;)
    out.push_back(static_cast<unsigned>(selector[i] - '0'));
  return out;
}

void simd_cases(Cases& out) {
  const Value v = Value::i32;
  for (const Lanes& row : simd) {
    const bool sets = std::string_view(row.name) == "vset";
    for (const SimdForm& form : simd_forms) {
      if (sets && form.sat) continue;
      for (const unsigned count : {2U, 4U}) {
        for (unsigned signs = 0; signs < 4; ++signs) {
          const bool a_signed = (signs & 1U) != 0;
          const bool b_signed = (signs & 2U) != 0;
          const bool d_signed = a_signed;
          const std::string mask = count == 2 ? form.mask2 : form.mask4;
          const std::string a = count == 2 ? form.a2 : form.a4;
          const std::string b = count == 2 ? form.b2 : form.b4;
          const bool sat = form.sat;
          const bool add = form.add;
          const auto operation = row.operation;
          const auto name = [](bool is_signed) { return is_signed ? "s32" : "u32"; };
          const std::string types =
              sets ? fmt::format("{}.{}.lt", name(a_signed), name(b_signed))
                   : fmt::format("{}.{}.{}", name(d_signed), name(a_signed), name(b_signed));
          out.push_back(
              {fmt::format("{}{}.{}{}{} D{}, A{}, B{}, C;", row.name, count, types,
                           sat ? ".sat" : "", add ? ".add" : "", dotted(mask), dotted(a),
                           dotted(b)),
               {v},
               {v, v, v},
               [=](const Inputs& x) {
                 const unsigned width = 32 / count;
                 const auto from_a = parts_of(a, count, 0);
                 const auto from_b = parts_of(b, count, count);
                 std::uint64_t written = mask.empty() ? 15 : 0;
                 for (const unsigned at : parts_of(mask, 0, 0)) written |= std::uint64_t{1} << at;
                 const std::uint64_t pair = x[0] | (x[1] << 32);
                 I128 sum = static_cast<I128>(x[2]);
                 std::uint64_t merged = x[2];
                 for (unsigned i = 0; i < count; ++i) {
                   if (((written >> i) & 1U) == 0) continue;
                   const auto piece = [&](unsigned at, bool is_signed) {
                     return part(pair >> (at * width), width == 8 ? "b0" : "h0", is_signed);
                   };
                   I128 value = operation(piece(from_a[i], a_signed), piece(from_b[i], b_signed));
                   if (sat) value = limited(value, width, d_signed);
                   sum += value;
                   const std::uint64_t ones = ((std::uint64_t{1} << width) - 1) << (i * width);
                   merged = (merged & ~ones) | ((word32(value) << (i * width)) & ones);
                 }
                 return Results{add ? word32(sum) : merged & 0xffffffffU, 0};
               }});
        }
      }
    }
  }
}

}  // namespace

void add_video_cases(Cases& out) {
  scalar_cases(out);
  shifts_and_comparisons(out);
  products(out);
  simd_cases(out);
}

}  // namespace demarc::emulate::test
