// Writes the kernel of an instruction case, and judges how far a result is off.
#include "instruction_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

constexpr std::string_view source_letters = "ABCFG";

bool word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%';
}

// Single letters that stand for operands become registers.
std::string with_registers(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // A.h1 is a part of A.
    const bool alone = (i == 0 || !word_character(text[i - 1])) &&
                       (i + 1 == text.size() || text[i + 1] == '.' || !word_character(text[i + 1]));
    const std::size_t source = source_letters.find(text[i]);
    if (alone && source != std::string_view::npos) {
      out += fmt::format("%s{}", source);
    } else if (alone && (text[i] == 'D' || text[i] == 'E')) {
      out += text[i] == 'D' ? "%d0" : "%d1";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string_view register_type(Value value) {
  switch (bits_of(value)) {
    case 1:
      return "pred";
    case 16:
      return "b16";
    case 32:
      return "b32";
    default:
      return "b64";
  }
}

// The low bits of the 64-bit register `from` as an operand.
std::string narrowed(Value value, const std::string& to, const std::string& from) {
  switch (bits_of(value)) {
    case 1:
      return fmt::format("setp.ne.u64 {}, {}, 0;\n", to, from);
    case 16:
      return fmt::format("cvt.u16.u64 {}, {};\n", to, from);
    case 32:
      return fmt::format("cvt.u32.u64 {}, {};\n", to, from);
    default:
      return fmt::format("mov.b64 {}, {};\n", to, from);
  }
}

std::string widened(Value value, const std::string& from) {
  switch (bits_of(value)) {
    case 1:
      return fmt::format("selp.u64 %x, 1, 0, {};\n", from);
    case 16:
      return fmt::format("cvt.u64.u16 %x, {};\n", from);
    case 32:
      return fmt::format("cvt.u64.u32 %x, {};\n", from);
    default:
      return fmt::format("mov.b64 %x, {};\n", from);
  }
}

std::string all_ones(Value value, const std::string& to) {
  if (value == Value::pred) return fmt::format("setp.eq.u32 {}, 0, 0;\n", to);
  return fmt::format("mov.{} {}, -1;\n", register_type(value), to);
}

}  // namespace

unsigned bits_of(Value value) {
  switch (value) {
    case Value::pred:
      return 1;
    case Value::i16:
    case Value::f16:
    case Value::bf16:
      return 16;
    case Value::i64:
    case Value::f64:
    case Value::f32x2:
      return 64;
    default:
      return 32;
  }
}

std::string mnemonic_of(const InstructionCase& entry) {
  if (!entry.about.empty()) return entry.about;
  // The instruction that writes D, the last operand list before it counts.
  const std::string registers = with_registers(entry.text);
  const std::size_t at = registers.find("%d0");
  const std::size_t end = at == std::string::npos ? 0 : at;
  std::size_t begin = registers.find_last_of(";{}", end == 0 ? 0 : end - 1);
  // A brace right before the operand is a vector, not a scope.
  while (begin != std::string::npos && registers[begin] == '{' && begin != 0 &&
         registers.find_first_not_of(' ') != begin) {
    begin = registers.find_last_of(";{}", begin - 1);
  }
  begin = begin == std::string::npos ? 0 : begin + 1;
  begin = registers.find_first_not_of(' ', begin);
  return registers.substr(begin, registers.find(' ', begin) - begin);
}

std::string module_header(unsigned target) {
  return fmt::format(".version {}\n.target sm_{}\n.address_size 64\n",
                     target >= 100 ? "8.8" : "8.3", std::max(target, 75U));
}

std::string kernel_text(const InstructionCase& entry, unsigned uniform, bool masked,
                        std::string_view name) {
  return module_header(entry.target) + kernel_body(entry, uniform, masked, name);
}

std::string kernel_body(const InstructionCase& entry, unsigned uniform, bool masked,
                        std::string_view name) {
  const std::size_t count = entry.sources.size();
  std::string text = fmt::format(".visible .entry {}(.param .u64 in, .param .u64 out", name);
  for (std::size_t i = 0; i < count; ++i) text += fmt::format(", .param .u64 u{}", i);
  text += ")\n{\n.reg .pred %q;\n.reg .b32 %n<4>;\n.reg .b64 %in, %out, %at, %x;\n";
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format(".reg .{} %s{};\n.reg .b64 %w{};\n", register_type(entry.sources[i]), i, i);
  for (std::size_t i = 0; i < entry.results.size(); ++i)
    text += fmt::format(".reg .{} %d{};\n", register_type(entry.results[i]), i);
  text +=
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %n0, %ctaid.x;\nmov.u32 %n1, "
      "%ntid.x;\nmov.u32 %n2, %tid.x;\nmad.lo.u32 %n0, %n0, %n1, %n2;\n";
  text += fmt::format("mad.wide.u32 %at, %n0, {}, %in;\nmad.wide.u32 %out, %n0, 16, %out;\n",
                      8 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool same = ((uniform >> i) & 1U) != 0;
    text += same ? fmt::format("ld.param.u64 %w{}, [u{}];\n", i, i)
                 : fmt::format("ld.global.u64 %w{}, [%at+{}];\n", i, 8 * i);
    text += narrowed(entry.sources[i], fmt::format("%s{}", i), fmt::format("%w{}", i));
  }
  if (masked) {
    for (std::size_t i = 0; i < entry.results.size(); ++i)
      text += all_ones(entry.results[i], fmt::format("%d{}", i));
    text += "and.b32 %n3, %n0, 1;\nsetp.ne.u32 %q, %n3, 0;\n@%q bra BEHIND;\n";
  }
  text += with_registers(entry.text) + "\n";
  if (masked) text += "BEHIND:\n";
  for (std::size_t i = 0; i < entry.results.size(); ++i) {
    text += widened(entry.results[i], fmt::format("%d{}", i)) +
            fmt::format("st.global.u64 [%out+{}], %x;\n", 8 * i);
  }
  return text + "ret;\n}\n";
}

std::string difference(Value kind, std::uint64_t got, std::uint64_t expected, const Bound& bound) {
  if (got == expected) return {};
  const auto bits_differ = [&] {
    return fmt::format("got 0x{:x}, expected 0x{:x}", got, expected);
  };
  if (bound.exact()) return bits_differ();
  const auto compare = [&](double g, double e, double ulp) -> std::string {
    if (std::isnan(g) && std::isnan(e)) return {};
    if (g == e) return {};
    if (!std::isfinite(g) || !std::isfinite(e)) return bits_differ();
    const double off = std::fabs(g - e);
    if (off <= bound.ulp * ulp || off <= bound.absolute || off <= bound.relative * std::fabs(e))
      return {};
    return fmt::format("got {:a}, expected {:a}: {:.3g} ulp", g, e, off / ulp);
  };
  const auto ulp_of = [](double value, int mantissa, int least) {
    int exponent = 0;
    std::frexp(value, &exponent);
    return std::ldexp(1.0, std::max(exponent - 1, least) - mantissa);
  };
  switch (kind) {
    case Value::f32: {
      const auto e = static_cast<double>(f32_of(expected));
      return compare(static_cast<double>(f32_of(got)), e, ulp_of(e, 23, -126));
    }
    case Value::f64:
      return compare(f64_of(got), f64_of(expected), ulp_of(f64_of(expected), 52, -1022));
    case Value::f16:
    case Value::bf16:
    case Value::f16x2:
    case Value::bf16x2: {
      const bool brain = kind == Value::bf16 || kind == Value::bf16x2;
      const Narrow& format = brain ? narrow_bf16() : narrow_f16();
      for (unsigned shift = 0; shift < bits_of(kind); shift += 16) {
        const double e = format.value((expected >> shift) & 0xffff);
        const std::string wrong = compare(format.value((got >> shift) & 0xffff), e,
                                          brain ? ulp_of(e, 7, -126) : ulp_of(e, 10, -14));
        if (!wrong.empty()) return wrong;
      }
      return {};
    }
    default:
      return bits_differ();
  }
}

const Cases& all_cases() {
  static const Cases cases = [] {
    Cases out;
    add_integer_cases(out);
    add_carry_cases(out);
    add_bit_cases(out);
    add_logic_cases(out);
    add_move_cases(out);
    add_compare_cases(out);
    add_float_cases(out);
    add_small_float_cases(out);
    add_approximate_cases(out);
    add_convert_cases(out);
    add_video_cases(out);
    add_memory_cases(out);
    return out;
  }();
  return cases;
}

}  // namespace demarc::emulate::test
