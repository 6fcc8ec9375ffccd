// Matrix products: mma and wmma.mma.
#include "lower/instructions.hpp"
#include "lower/matrix_words.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

// How the elements of a product lie in the registers of a warp.
enum class ProductLayout : std::uint8_t {
  warp,      // mma
  quads,     // mma .m8n8k4 of f16: four products side by side
  fragments  // wmma
};

Handler product_handler(ProductLayout layout) {
  switch (layout) {
    case ProductLayout::quads:
      return matrix_ops::multiply_quads;
    case ProductLayout::fragments:
      return matrix_ops::multiply_fragments;
    default:
      return matrix_ops::multiply;
  }
}

// d, a, b, c. wmma of f16 names the types of d and c only.
bool set_types(const InstructionView& instruction, MatrixDetails& made) {
  const auto& types = instruction.words().types;
  const bool short_form = instruction.opcode() == Opcode::wmma_mma && types.size() == 2;
  if (!short_form && types.size() != 4) return false;
  const auto d = matrix_type(types.front());
  const auto a = matrix_type(short_form ? Type::f16 : types[1]);
  const auto b = matrix_type(short_form ? Type::f16 : types[2]);
  const auto c = matrix_type(types.back());
  if (!d || !a || !b || !c || matrix_bits(*a) != matrix_bits(*b)) return false;
  made.d_type = *d;
  made.a_type = *a;
  made.b_type = *b;
  made.c_type = *c;
  return true;
}

bool set_shape(const InstructionView& instruction, MatrixDetails& made) {
  const auto shape = matrix_shape(instruction.words());
  if (!shape) return false;
  made.m = shape->m;
  made.n = shape->n;
  made.k = shape->k;
  return true;
}

ProductLayout product_layout(const InstructionView& instruction, const MatrixDetails& made) {
  if (instruction.opcode() == Opcode::wmma_mma) return ProductLayout::fragments;
  const bool quads = made.m == 8 && made.n == 8 && made.k == 4 && made.a_type == MatrixType::f16;
  return quads ? ProductLayout::quads : ProductLayout::warp;
}

// False: no product of these types has that shape and these layouts.
bool set_layouts(const InstructionView& instruction, ProductLayout layout, MatrixDetails& made) {
  const auto [a, b] = matrix_layouts(instruction.words());
  if (a.empty() || b.empty()) return false;
  made.a_by_column = a == "col";
  made.b_by_row = b == "row";
  switch (layout) {
    case ProductLayout::quads:
      return true;
    case ProductLayout::fragments:
      return is_fragment_shape(made);
    default:
      return !made.a_by_column && !made.b_by_row && is_product_shape(made);
  }
}

struct ProductRegisters {
  unsigned d = 0;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
};

ProductRegisters product_registers(ProductLayout layout, const MatrixDetails& made) {
  if (layout == ProductLayout::quads) {
    const auto of_sum = [](MatrixType type) { return type == MatrixType::f16 ? 4U : 8U; };
    return {.d = of_sum(made.d_type), .a = 2, .b = 2, .c = of_sum(made.c_type)};
  }
  ProductRegisters out{.d = registers_for(made.m * made.n / warp_size, made.d_type),
                       .a = registers_for(made.m * made.k / warp_size, made.a_type),
                       .b = registers_for(made.k * made.n / warp_size, made.b_type),
                       .c = registers_for(made.m * made.n / warp_size, made.c_type)};
  // Every element of a fragment of f16 is in two lanes.
  if (layout == ProductLayout::fragments && made.a_type == MatrixType::f16)
    out.a = out.b = most_fragment_registers;
  return out;
}

}  // namespace

bool lower_matrix_product(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() != Opcode::mma && instruction.opcode() != Opcode::wmma_mma) return false;
  auto& made = f.code.details<MatrixDetails>();
  if (instruction.operands().size() != 4 || !set_shape(instruction, made) ||
      !set_types(instruction, made)) {
    return false;
  }
  const ProductLayout layout = product_layout(instruction, made);
  if (!set_layouts(instruction, layout, made)) return false;
  made.saturate = instruction.has("satfinite");
  made.exclusive = made.a_type == MatrixType::b1 && instruction.has("xor");
  const ProductRegisters count = product_registers(layout, made);
  const auto d = fragment_lanes(f, instruction, instruction[0], {count.d, made.d_type});
  const auto a = fragment_lanes(f, instruction, instruction[1], {count.a, made.a_type});
  const auto b = fragment_lanes(f, instruction, instruction[2], {count.b, made.b_type});
  const auto c = fragment_sources(f, instruction, instruction[3], {count.c, made.c_type});
  if (!d || !a || !b || !c) return false;
  put_slots(*d, made.d);
  put_slots(*a, made.a);
  put_slots(*b, made.b);
  put_slots(*c, made.c);
  for (std::size_t i = 0; i < c->size(); ++i) made.c_uniform[i] = (*c)[i].uniform;
  f.code.emit(product_handler(layout)).aux = &made;
  return true;
}

}  // namespace demarc::emulate
