// Reads the types, shapes and registers of matrices.
#include "lower/matrix_words.hpp"

#include <charconv>

#include "lower/lookup.hpp"

namespace demarc::emulate {

using ptx::Type;

namespace {

std::optional<unsigned> number_behind(std::string_view text, char letter) {
  const std::size_t at = text.find(letter);
  unsigned value = 0;
  if (at == std::string_view::npos ||
      std::from_chars(text.data() + at + 1, text.data() + text.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

// Of eight bits and four two floating-point types go together, and two whole ones; else both are
// the same.
bool go_together(MatrixType a, MatrixType b) {
  constexpr unsigned mixed_bits = 8;
  if (a == b) return true;
  return matrix_bits(a) == matrix_bits(b) && matrix_bits(a) <= mixed_bits &&
         is_floating_matrix(a) == is_floating_matrix(b);
}

bool is_sum_of(MatrixType a, MatrixType sum) {
  if (!is_floating_matrix(a)) return sum == MatrixType::s32;
  if (a == MatrixType::f64) return sum == MatrixType::f64;
  const bool half = a != MatrixType::bf16 && a != MatrixType::tf32;
  return sum == MatrixType::f32 || (half && sum == MatrixType::f16);
}

}  // namespace

std::optional<MatrixType> matrix_type(Type type) {
  static constexpr Rows<Type, MatrixType, 13> rows{{{Type::f16, MatrixType::f16},
                                                    {Type::bf16, MatrixType::bf16},
                                                    {Type::tf32, MatrixType::tf32},
                                                    {Type::f32, MatrixType::f32},
                                                    {Type::f64, MatrixType::f64},
                                                    {Type::e4m3, MatrixType::e4m3},
                                                    {Type::e5m2, MatrixType::e5m2},
                                                    {Type::s8, MatrixType::s8},
                                                    {Type::u8, MatrixType::u8},
                                                    {Type::s4, MatrixType::s4},
                                                    {Type::u4, MatrixType::u4},
                                                    {Type::b1, MatrixType::b1},
                                                    {Type::s32, MatrixType::s32}}};
  return look_up(rows, type);
}

bool is_floating_matrix(MatrixType type) {
  switch (type) {
    case MatrixType::f16:
    case MatrixType::bf16:
    case MatrixType::tf32:
    case MatrixType::f64:
    case MatrixType::e4m3:
    case MatrixType::e5m2:
      return true;
    default:
      return false;
  }
}

bool set_operation(const InstructionView& instruction, ProductTypes& types) {
  types.saturate = instruction.has("satfinite");
  types.exclusive = instruction.has("xor");
  const bool of_bits = types.a == MatrixType::b1;
  return go_together(types.a, types.b) && is_sum_of(types.a, types.c) &&
         is_sum_of(types.a, types.d) && (!types.saturate || types.d == MatrixType::s32) &&
         (types.exclusive != instruction.has("and")) == of_bits;
}

std::optional<ProductSize> matrix_shape(const ptx::Mnemonic& words) {
  for (const ptx::ModifierUse& use : words.modifiers) {
    if (use.id != ptx::Modifier::shape_mnk) continue;
    const auto m = number_behind(use.text, 'm');
    const auto n = number_behind(use.text, 'n');
    const auto k = number_behind(use.text, 'k');
    if (m && n && k) return ProductSize{.m = *m, .n = *n, .k = *k};
    return std::nullopt;
  }
  return std::nullopt;
}

std::array<std::string_view, 2> matrix_layouts(const ptx::Mnemonic& words) {
  std::array<std::string_view, 2> out;
  std::size_t count = 0;
  for (const ptx::ModifierUse& use : words.modifiers) {
    if ((use.text == "row" || use.text == "col") && count < out.size()) out[count++] = use.text;
  }
  return out;
}

Type register_type(MatrixType type) {
  switch (type) {
    case MatrixType::f64:
      return Type::f64;
    case MatrixType::f32:
      return Type::f32;
    default:
      return Type::b32;
  }
}

std::optional<FragmentSources> fragment_sources(FunctionContext& f,
                                                const InstructionView& instruction,
                                                const ptx::Operand& operand,
                                                const FragmentRegisters& wanted) {
  const auto parts = instruction.elements(operand);
  if (parts.size() != wanted.count || wanted.count > Fragment::max_registers) return std::nullopt;
  FragmentSources out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out[i] = f.operands.source(parts[i], register_type(wanted.type));
    if (f.code.failed()) return std::nullopt;
  }
  return out;
}

std::optional<FragmentSources> fragment_lanes(FunctionContext& f,
                                              const InstructionView& instruction,
                                              const ptx::Operand& operand,
                                              const FragmentRegisters& wanted) {
  auto out = fragment_sources(f, instruction, operand, wanted);
  if (!out) return std::nullopt;
  const bool is_double = wanted.type == MatrixType::f64;
  for (Source& source : *out) {
    if (!source.uniform) continue;
    const Register copy = f.frame.vector(is_double ? sizeof(double) : sizeof(float));
    f.code.alu(is_double ? Alu::mov_b64 : Alu::mov_b32, copy, {source});
    source = value_of(copy);
  }
  return out;
}

Fragment fragment_of(const FragmentSources& sources, const FragmentRegisters& wanted) {
  Fragment out;
  out.registers = wanted.count;
  if (wanted.type == MatrixType::f64) out.lane_bytes = sizeof(double);
  for (unsigned i = 0; i < wanted.count; ++i) {
    out.slots[i] = sources[i].slot.offset;
    out.uniform[i] = sources[i].uniform;
  }
  return out;
}

}  // namespace demarc::emulate
