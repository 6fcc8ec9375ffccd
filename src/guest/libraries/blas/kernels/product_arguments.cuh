// What the host code and the kernels of libdemarc_blas.so agree on: the arguments of a product.
//
// A product is D = epilogue(alpha X W + beta C) of a matrix X with `rows` rows and a matrix W with
// `columns` columns, and D and C lie by rows. So the column-major matrices of cuBLAS, whose D lies
// by columns, come as their transposes: X is their op(B), and W is their op(A).
#pragma once

namespace demarc::blas {

enum Element : int { f32 = 0, f64 = 1, f16 = 2, bf16 = 14 };  // as cudaDataType has them

enum Activation : int { no_activation = 0, relu = 1, gelu = 2 };

struct Matrix {
  unsigned long long at;      // the address, or that of an array of addresses, one per batch
  unsigned long long stride;  // from one batch to the next, in bytes
  unsigned long long pitch;   // from one row or column to the next, in elements
};

struct ProductArguments {
  Matrix x, w, c, d;
  unsigned long long alpha_at, beta_at;  // addresses; 0: the numbers below
  unsigned long long bias_at;            // one number per column of D; 0: none
  double alpha, beta;
  unsigned rows, columns, depth;
  int pointers;        // 1: the matrices' addresses are in arrays
  int out;             // Element of C and D
  int scale;           // Element of what alpha_at and beta_at name
  int bias;            // Element of the bias
  int activation;      // Activation
  int x_along_depth;   // 1: neighbours in memory lie along the depth, 0: along the rows
  int w_along_depth;   // likewise, 0: along the columns
  int transposed_out;  // 1: neighbours of C and D lie along the rows
};

}  // namespace demarc::blas
