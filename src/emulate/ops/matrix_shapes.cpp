// The shapes of matrix products, and the registers that hold them.
#include "ops/matrix.hpp"

namespace demarc::emulate {

unsigned matrix_bits(MatrixType type) {
  switch (type) {
    case MatrixType::f16:
    case MatrixType::bf16:
      return 16;
    case MatrixType::e4m3:
    case MatrixType::e5m2:
    case MatrixType::s8:
    case MatrixType::u8:
      return 8;
    case MatrixType::s4:
    case MatrixType::u4:
      return 4;
    case MatrixType::b1:
      return 1;
    case MatrixType::f64:
      return 64;
    default:
      return 32;
  }
}

unsigned registers_for(unsigned elements, MatrixType type) {
  return type == MatrixType::f64 ? elements : (elements * matrix_bits(type) + 31) / 32;
}

bool is_product_shape(const ProductSize& size, MatrixType a_type) {
  const bool small = size.m == 8 && size.n == 8;
  const bool large = size.m == 16 && size.n == 8;
  const unsigned k = size.k;
  switch (a_type) {
    case MatrixType::f16:
    case MatrixType::bf16:
      return large && (k == 8 || k == 16);
    case MatrixType::tf32:
      return large && (k == 4 || k == 8);
    case MatrixType::f64:
      return (small && k == 4) || (large && (k == 4 || k == 8 || k == 16));
    case MatrixType::e4m3:
    case MatrixType::e5m2:
      return large && (k == 16 || k == 32);
    case MatrixType::s8:
    case MatrixType::u8:
      return (small && k == 16) || (large && (k == 16 || k == 32));
    case MatrixType::s4:
    case MatrixType::u4:
      return (small && k == 32) || (large && (k == 32 || k == 64));
    case MatrixType::b1:
      return (small && k == 128) || (large && (k == 128 || k == 256));
    default:
      return false;
  }
}

bool is_fragment_shape(const ProductSize& size, MatrixType a_type) {
  const bool sixteen =
      size.k == 16 && ((size.m == 16 && size.n == 16) || (size.m == 8 && size.n == 32) ||
                       (size.m == 32 && size.n == 8));
  switch (a_type) {
    case MatrixType::f16:
    case MatrixType::bf16:
    case MatrixType::s8:
    case MatrixType::u8:
      return sixteen;
    case MatrixType::tf32:
      return size.m == 16 && size.n == 16 && size.k == 8;
    case MatrixType::f64:
      return size.m == 8 && size.n == 8 && size.k == 4;
    default:
      return false;
  }
}

unsigned depth_of(unsigned k, MatrixType a_type) {
  return a_type == MatrixType::b1 ? k / 32 : k;
}

}  // namespace demarc::emulate
