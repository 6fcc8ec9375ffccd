// Makes the matrix of opcodes, types and modifiers.
#include "forms_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "demarc/ptx/vocabulary.hpp"

namespace demarc::ptx::test {
namespace {

// Operands: 0 is a register of the first type, 1 of the second, w one of twice the first type's
// bits, p r d a predicate, 32 and 64 bits; {00} is a vector. Types: "*" is each, "**" each pair.
struct MatrixRow {
  const char* group;  // the opcode up to a '#'
  const char* operands;
  const char* types;
  const char* modifiers;
  unsigned depth = 1;  // most modifiers at once
};

constexpr const char* rounded = "rn rz rm rp rna rni rzi approx full ftz sat cc relu NaN oob";
constexpr const char* compared = "eq ne lt ge lo hs equ ltu geu num nan and or ftz sat";
constexpr const char* memory =
    "global shared local const param volatile relaxed acquire release weak gpu cta cluster sys ca "
    "cg cs "
    "lu cv wb wt nc mmio L1::evict_last L1::no_allocate L2::128B L2::cache_hint";
constexpr const char* atomics =
    "and xor add inc min exch cas noftz global shared local const relaxed acquire acq_rel gpu cta";

constexpr MatrixRow matrix_rows[] = {
    {"add", "0, 0, 0", "*", rounded, 2},
    {"sub", "0, 0, 0", "*", rounded},
    {"mul", "0, 0, 0", "*", rounded},
    {"mul.lo", "0, 0, 0", "*", rounded},
    {"mul.hi", "0, 0, 0", "*", rounded},
    {"mul.wide", "w, 0, 0", "*", rounded},
    {"mad", "0, 0, 0, 0", "*", rounded},
    {"mad.lo", "0, 0, 0, 0", "*", rounded},
    {"mad.hi", "0, 0, 0, 0", "*", rounded},
    {"mad.wide", "w, 0, 0, w", "*", rounded},
    {"madc.lo", "0, 0, 0, 0", "*", rounded},
    {"madc.hi", "0, 0, 0, 0", "*", rounded},
    {"mul24", "0, 0, 0", "*", ""},
    {"mul24.lo", "0, 0, 0", "*", rounded},
    {"mul24.hi", "0, 0, 0", "*", rounded},
    {"mad24.lo", "0, 0, 0, 0", "*", rounded},
    {"mad24.hi", "0, 0, 0, 0", "*", rounded},
    {"addc", "0, 0, 0", "*", rounded},
    {"subc", "0, 0, 0", "*", rounded},
    {"fma", "0, 0, 0, 0", "*", rounded, 2},
    {"div", "0, 0, 0", "*", rounded},
    {"rem", "0, 0, 0", "*", rounded},
    {"sad", "0, 0, 0, 0", "*", rounded},
    {"min", "0, 0, 0", "*", "ftz NaN relu xorsign abs sat rn", 2},
    {"max", "0, 0, 0", "*", "ftz NaN relu xorsign abs sat rn", 2},
    {"min#3", "0, 0, 0, 0", "*", "ftz"},
    {"copysign", "0, 0, 0", "*", rounded},
    {"abs", "0, 0", "*", rounded},
    {"neg", "0, 0", "*", rounded},
    {"rcp", "0, 0", "*", rounded},
    {"sqrt", "0, 0", "*", rounded},
    {"rsqrt", "0, 0", "*", rounded},
    {"sin", "0, 0", "*", rounded},
    {"cos", "0, 0", "*", rounded},
    {"lg2", "0, 0", "*", rounded},
    {"ex2", "0, 0", "*", rounded},
    {"tanh", "0, 0", "*", rounded},
    {"testp", "p, 0", "*", "finite infinite number notanumber normal subnormal ftz"},
    {"popc", "r, 0", "*", "sat"},
    {"clz", "r, 0", "*", "sat"},
    {"bfind", "r, 0", "*", "shiftamt sat"},
    {"brev", "0, 0", "*", "sat"},
    {"fns", "r, r, r, r", "*", "sat"},
    {"not", "0, 0", "*", "sat cc"},
    {"cnot", "0, 0", "*", "sat"},
    {"and", "0, 0, 0", "*", "sat cc"},
    {"or", "0, 0, 0", "*", "sat cc"},
    {"xor", "0, 0, 0", "*", "sat cc"},
    {"shl", "0, 0, r", "*", "sat wrap clamp"},
    {"shr", "0, 0, r", "*", "sat wrap clamp"},
    {"shf", "0, 0, 0, r", "*", "l r wrap clamp", 2},
    {"bfe", "0, 0, r, r", "*", "sat"},
    {"bfi", "0, 0, 0, r, r", "*", "sat"},
    {"lop3", "r, r, r, r, 5", "*", "or and"},
    {"prmt", "r, r, r, r", "*", "f4e b4e rc8 ecl ecr rc16"},
    {"szext", "0, 0, r", "*", "clamp wrap"},
    {"bmsk", "r, r, r", "*", "clamp wrap"},
    {"dp4a", "r, r, r, r", "**", "lo"},
    {"dp2a", "r, r, r, r", "**", "lo hi"},
    {"selp", "0, 0, 0, p", "*", "ftz sat"},
    {"slct", "0, 0, 0, 1", "**", "ftz sat"},
    {"setp", "p, 0, 0", "*", compared},
    {"setp#4", "p, 0, 0, p", "*", "eq lt lo num and or ftz", 2},
    {"set", "0, 1, 1", "**", "eq lt lo num ftz", 2},
    {"mov", "0, 0", "*", "sat ftz"},
    {"cvt", "0, 1", "**", "rn rz rm rna rni rzi ftz sat relu satfinite", 2},
    {"cvt#2", "0, r, r", "**", "rn rz rm relu satfinite", 2},
    {"cvt.pack", "r, r, r", "**", "sat"},
    {"cvta", "0, 0", "*", "global shared local const param to", 2},
    {"ld", "0, [%rd8]", "*", memory},
    {"st", "[%rd8], 0", "*", memory},
    {"ld#2", "{00}, [%rd8]", "*", "v2 v4 global nc", 2},
    {"st#2", "[%rd8], {00}", "*", "v2 v4 global cs", 2},
    {"ld#4", "{0000}, [%rd8]", "*", "v2 v4 global shared", 2},
    {"st#4", "[%rd8], {0000}", "*", "v2 v4 global shared", 2},
    {"ldu", "0, [%rd8]", "*", "global shared ca"},
    {"atom", "0, [%rd8], 0", "*", atomics, 2},
    {"atom#cas", "0, [%rd8], 0, 0", "*", "cas add global gpu", 2},
    {"red", "[%rd8], 0", "*", atomics, 2},
    {"shfl", "0, 0, r, r, r", "*", "sync up down bfly idx", 2},
    {"vote", "0, p, r", "*", "sync all any uni ballot", 2},
    {"match", "r, 0, r", "*", "sync any all", 2},
    {"redux", "0, 0, r", "*", "sync add min and xor abs", 2},
    {"activemask", "0", "*", "sync"},
    {"bar.sync", "0#", "*", "aligned"},
    {"bar.red", "0, 0#, p", "*", "and or popc xor"},
    {"barrier.red", "0, 0#, p", "*", "and or popc aligned", 2},
    {"membar", "", "*", "cta gl sys gpu"},
    {"prefetch", "[%rd8]", "*", "global local shared L1 L2 const", 2},
    {"isspacep", "p, d", "*", "global shared local const param"},
    {"nanosleep", "r", "*", ""},
    {"trap", "", "*", ""},
    {"ret", "", "*", ""},
};

// Types at which ptxas does not stop reading.
constexpr std::string_view single_types[] = {
    "pred", "b8",    "b16",    "b32",   "b64",   "b128",  "u8",     "u16",  "u32",  "u64",
    "s8",   "s16",   "s32",    "s64",   "f16",   "f32",   "f64",    "bf16", "tf32", "e4m3",
    "e5m2", "f16x2", "bf16x2", "u16x2", "s16x2", "f32x2", "e4m3x2", "u4"};
constexpr std::string_view pair_types[] = {"u8",  "s8",  "u16",   "s16",    "u32",   "s32", "u64",
                                           "s64", "b32", "f16",   "bf16",   "f32",   "f64", "tf32",
                                           "b16", "b64", "f16x2", "bf16x2", "e4m3x2"};

char letter_of(Type type) {
  if (type == Type::pred) return 'p';
  const unsigned bits = info(type).bits;
  if (bits == 64) return 'd';
  return bits == 128 ? 'q' : (bits == 32 ? 'r' : 'h');
}

std::string matrix_register(char letter, unsigned number) {
  const std::string_view stem = letter == 'd' ? "rd" : std::string_view(&letter, 1);
  return fmt::format("%{}{}", stem, number);
}

std::string operands_of(std::string_view form, const std::vector<Type>& types) {
  std::string out;
  unsigned number = 1;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char c = form[i];
    if (c == '[') {
      out += form.substr(i, form.find(']', i) - i + 1);
      i = form.find(']', i);
    } else if ((c == '0' || c == '1') && form.substr(i + 1, 1) != "#") {
      const Type type = types.empty()
                            ? Type::b32
                            : types[std::min<std::size_t>(c == '0' ? 0 : 1, types.size() - 1)];
      out += matrix_register(letter_of(type), number++ % 8);
      if (form.substr(i + 1, 1) == "0") out += ", ";
    } else if (c == 'w') {
      const char letter = letter_of(types.empty() ? Type::b32 : types[0]);
      out += matrix_register(letter == 'h' ? 'r' : (letter == 'r' ? 'd' : 'q'), number++ % 8);
    } else if (c == 'p' || c == 'r' || c == 'd') {
      out += matrix_register(c, number++ % 8);
    } else if (c != '#') {
      out += c;
    }
  }
  return out;
}

std::vector<std::vector<Type>> types_of(std::string_view which) {
  std::vector<std::vector<Type>> found;
  if (which == "*") {
    for (const std::string_view type : single_types) found.push_back({find_type(type)});
    found.push_back({});
    return found;
  }
  for (const std::string_view a : pair_types) {
    for (const std::string_view b : pair_types) found.push_back({find_type(a), find_type(b)});
  }
  return found;
}

// All choices of at most `depth` of the words, in order.
std::vector<std::string> choices_of(const std::string& words, unsigned depth) {
  std::vector<std::string> all;
  std::istringstream in(words);
  for (std::string word; in >> word;) all.push_back(word);
  std::vector<std::string> made = {""};
  std::vector<std::pair<std::string, std::size_t>> last = {{"", 0}};
  for (unsigned k = 0; k < depth; ++k) {
    std::vector<std::pair<std::string, std::size_t>> next;
    for (const auto& [chosen, from] : last) {
      for (std::size_t i = from; i < all.size(); ++i)
        next.emplace_back(chosen + "." + all[i], i + 1);
    }
    for (const auto& one : next) made.push_back(one.first);
    last = next;
  }
  return made;
}

}  // namespace

std::vector<MatrixForm> forms_matrix() {
  std::vector<MatrixForm> forms;
  for (const MatrixRow& row : matrix_rows) {
    const std::string group = row.group;
    const std::string opcode = group.substr(0, group.find('#'));
    for (const std::string& modifiers : choices_of(row.modifiers, row.depth)) {
      for (const std::vector<Type>& types : types_of(row.types)) {
        std::string suffix;
        for (const Type type : types) suffix += fmt::format(".{}", info(type).text);
        forms.push_back({group, modifiers, suffix,
                         fmt::format("{}{}{} {};", opcode, modifiers, suffix,
                                     operands_of(row.operands, types))});
      }
    }
  }
  return forms;
}

std::string matrix_module(const std::vector<MatrixForm>& forms, std::string_view target) {
  std::string text = fmt::format(".version 9.0\n.target {}\n.address_size 64\n", target);
  text +=
      ".global .b8 gv[64]; .shared .b8 sv[64];\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>; .reg .b8 %b<9>; .reg .v2 .b32 %v;\n"
      ".reg .b16 %h<9>; .reg .u16 %uh<9>; .reg .f16 %fh<9>; .reg .b128 %q<9>;\n.reg .b32 %r<9>; "
      ".reg .u32 %ur<9>; .reg .s32 %sr<9>; .reg .f32 %f<9>;\n.reg .b64 %rd<9>; .reg .u64 %ud<9>; "
      ".reg .f64 %fd<9>;\nLL:\n";
  for (const MatrixForm& form : forms) text += form.statement + "\n";
  return text + "ret;\n}\n";
}

std::string taken_forms(const std::vector<MatrixForm>& forms, const std::vector<bool>& refused) {
  std::string lines;
  std::string begun;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (refused[i]) continue;
    const std::string line = fmt::format("{} [{}]:", forms[i].group, forms[i].modifiers);
    if (line != begun) lines += (lines.empty() ? "" : "\n") + line;
    begun = line;
    lines += " " + (forms[i].types.empty() ? "-" : forms[i].types);
  }
  return lines + "\n";
}

}  // namespace demarc::ptx::test
