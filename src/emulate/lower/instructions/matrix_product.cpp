// Matrix products: mma and wmma.mma.
#include "lower/instructions.hpp"
#include "lower/matrix_words.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

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
  if (!d || !a || !b || !c) return false;
  made.types.d = *d;
  made.types.a = *a;
  made.types.b = *b;
  made.types.c = *c;
  return set_operation(instruction, made.types);
}

bool set_shape(const InstructionView& instruction, MatrixDetails& made) {
  const auto shape = matrix_shape(instruction.words());
  if (shape) made.size = *shape;
  return shape.has_value();
}

ProductLayout product_layout(const InstructionView& instruction, const MatrixDetails& made) {
  if (instruction.opcode() == Opcode::wmma_mma) return ProductLayout::fragments;
  const bool quads =
      made.size.m == 8 && made.size.n == 8 && made.size.k == 4 && made.types.a == MatrixType::f16;
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
      return is_fragment_shape(made.size, made.types.a);
    default:
      return !made.a_by_column && !made.b_by_row && is_product_shape(made.size, made.types.a);
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
    return {.d = of_sum(made.types.d), .a = 2, .b = 2, .c = of_sum(made.types.c)};
  }
  ProductRegisters out{.d = registers_for(made.size.m * made.size.n / warp_size, made.types.d),
                       .a = registers_for(made.size.m * made.size.k / warp_size, made.types.a),
                       .b = registers_for(made.size.k * made.size.n / warp_size, made.types.b),
                       .c = registers_for(made.size.m * made.size.n / warp_size, made.types.c)};
  // Every element of a fragment of f16 is in two lanes.
  if (layout == ProductLayout::fragments && made.types.a == MatrixType::f16)
    out.a = out.b = Fragment::max_registers;
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
  if (layout == ProductLayout::warp && made.types.c != made.types.d) return false;
  made.steps = product_steps(*f.kernel.request.tables.matrix, made.types, layout, made.size.k);
  const ProductRegisters count = product_registers(layout, made);
  const FragmentRegisters of_d{count.d, made.types.d};
  const FragmentRegisters of_a{count.a, made.types.a};
  const FragmentRegisters of_b{count.b, made.types.b};
  const FragmentRegisters of_c{count.c, made.types.c};
  const auto d = fragment_lanes(f, instruction, instruction[0], of_d);
  const auto a = fragment_lanes(f, instruction, instruction[1], of_a);
  const auto b = fragment_lanes(f, instruction, instruction[2], of_b);
  const auto c = fragment_sources(f, instruction, instruction[3], of_c);
  if (!d || !a || !b || !c) return false;
  made.d = fragment_of(*d, of_d);
  made.a = fragment_of(*a, of_a);
  made.b = fragment_of(*b, of_b);
  made.c = fragment_of(*c, of_c);
  made.size.k = depth_of(made.size.k, made.types.a);
  f.code.emit(product_handler(layout)).aux = &made;
  return true;
}

}  // namespace demarc::emulate
