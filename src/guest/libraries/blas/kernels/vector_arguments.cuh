// The arguments of the kernels of vectors: y = alpha op(A) x + beta y, and those of one or two
// vectors.
#pragma once

namespace demarc::blas {

struct VectorArguments {
  unsigned long long a, x, y;            // addresses; x and y of their first elements
  unsigned long long pitch;              // distance in A from one column to the next, in elements
  long long step_x, step_y;              // from one element to the next, in elements
  unsigned long long alpha_at, beta_at;  // addresses; 0: the numbers below
  double alpha, beta;
  unsigned long long rows, columns;  // size of A; of vectors alone, `rows` is their length
  unsigned long long parts;          // sums of blocks, two numbers each
  unsigned long long result;         // the address of a sum
  unsigned count;                    // number of parts
};

}  // namespace demarc::blas
