// Matrix products of a warp: mma with the fragments of the PTX ISA, and wmma with fragments of our
// own (the ISA leaves theirs open).
#pragma once

#include "lanes/matrix.hpp"
#include "machine.hpp"

namespace demarc::emulate {

struct ProductTypes {
  MatrixType a = MatrixType::f16;
  MatrixType b = MatrixType::f16;
  MatrixType c = MatrixType::f32;
  MatrixType d = MatrixType::f32;
  bool saturate = false;
  bool exclusive = false;  // b1: .xor.popc, else .and.popc
};

// Which instruction makes a product: where its elements lie, and how it sums.
enum class ProductLayout : std::uint8_t {
  warp,       // mma
  quads,      // mma .m8n8k4 of f16: four products side by side
  fragments,  // wmma
  warpgroup   // wgmma
};

// The steps of the types of one product.
struct ProductSteps {
  MatrixSteps::Widen widen_a = nullptr;
  MatrixSteps::Widen widen_b = nullptr;
  MatrixSteps::Widen widen_c = nullptr;
  MatrixSteps::Read a_rows = nullptr;
  MatrixSteps::Read a_columns = nullptr;
  MatrixSteps::Read b_rows = nullptr;
  MatrixSteps::Read b_columns = nullptr;
  MatrixSteps::ReadSums read_sums = nullptr;
  MatrixSteps::AddProducts add = nullptr;
  SumRule rule;
  MatrixSteps::WriteSums write_sums = nullptr;
  MatrixSteps::Narrow narrow = nullptr;
};
[[nodiscard]] ProductSteps product_steps(const MatrixSteps& steps, const ProductTypes& types,
                                         ProductLayout layout, unsigned k);

// Registers that hold a matrix.
struct Fragment {
  static constexpr unsigned max_registers = 8;
  unsigned registers = 0;
  unsigned lane_bytes = sizeof(std::uint32_t);  // bytes of a register in one lane
  std::uint32_t slots[max_registers] = {};
  bool uniform[max_registers] = {};
};

struct MatrixDetails {
  ProductSize size;
  ProductTypes types;
  ProductSteps steps;
  bool a_by_column = false;  // m8n8k4 of f16
  bool b_by_row = false;
  Fragment d;
  Fragment a;
  Fragment b;
  Fragment c;
};

// wmma.load and wmma.store of one fragment.
struct FragmentDetails {
  MicroOp part;  // a memory micro-op of one element a lane
  unsigned rows = 0;
  unsigned columns = 0;
  bool by_column = false;
  MatrixType type = MatrixType::f16;
  Fragment fragment;
  std::uint32_t scratch = 0;  // slot of 32 addresses
  bool has_stride = false;    // in elements; else the matrix is packed
  bool stride_uniform = false;
  std::uint32_t stride = 0;
};

namespace matrix_ops {
const MicroOp* multiply(Warp& w, const MicroOp* op);            // aux: MatrixDetails
const MicroOp* multiply_quads(Warp& w, const MicroOp* op);      // the same, m8n8k4 of f16
const MicroOp* multiply_fragments(Warp& w, const MicroOp* op);  // the same, wmma
const MicroOp* load_fragment(Warp& w, const MicroOp* op);       // aux: FragmentDetails
const MicroOp* store_fragment(Warp& w, const MicroOp* op);
}  // namespace matrix_ops

// The registers of a as a matrix: they go down its rows first, then along k [PTX ISA 9.7.14.5].
void read_a(const Warp& w, const ProductSize& size, MatrixSteps::Read rows, const Fragment& from,
            double* a);
// Where the sums of a product lie in registers that hold eight rows of eight columns, or half of
// them: down the rows first, then along the columns.
void read_sums(const ProductSize& size, MatrixSteps::ReadSums read,
               const std::byte* const* registers, unsigned count, double* sums);
void write_sums(const ProductSize& size, MatrixSteps::WriteSums write, const double* sums,
                std::byte* const* registers, unsigned count);

// Whether mma has that shape for the type of a.
[[nodiscard]] bool is_product_shape(const ProductSize& size, MatrixType a_type);
[[nodiscard]] bool is_fragment_shape(const ProductSize& size, MatrixType a_type);  // ... and wmma
[[nodiscard]] unsigned matrix_bits(MatrixType type);
// 32-bit registers (f64: 64-bit ones) that hold `elements`.
[[nodiscard]] unsigned registers_for(unsigned elements, MatrixType type);
// What the steps of a product count along k: words of single bits, else elements.
[[nodiscard]] unsigned depth_of(unsigned k, MatrixType a_type);

}  // namespace demarc::emulate
