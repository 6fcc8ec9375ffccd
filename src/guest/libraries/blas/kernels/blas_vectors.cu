// Vectors, and products of a matrix and a vector, of f32 and f64.
// demarc: isa 8.3
// demarc: sm 80
// demarc: needs nvcc
#include "vectors.cuh"

#define DEMARC_BLAS_VECTORS(name, ...)                                          \
  extern "C" __global__ void __launch_bounds__(demarc::blas::vector_threads, 3) \
      name(const demarc::blas::VectorArguments p) {                             \
    demarc::blas::__VA_ARGS__(p);                                               \
  }
#define DEMARC_BLAS_VECTORS_OF(Number, letter)                                                 \
  DEMARC_BLAS_VECTORS(demarc_gemv_t_##letter, matrix_columns<Number>)                          \
  DEMARC_BLAS_VECTORS(demarc_gemv_n_##letter, matrix_rows<Number>)                             \
  DEMARC_BLAS_VECTORS(demarc_axpy_##letter, change_vector<Number, demarc::blas::add_vector>)   \
  DEMARC_BLAS_VECTORS(demarc_scal_##letter, change_vector<Number, demarc::blas::scale_vector>) \
  DEMARC_BLAS_VECTORS(demarc_copy_##letter, change_vector<Number, demarc::blas::copy_vector>)  \
  DEMARC_BLAS_VECTORS(demarc_dot_##letter, sum_vector<Number, false>)                          \
  DEMARC_BLAS_VECTORS(demarc_nrm2_##letter, sum_vector<Number, true>)                          \
  DEMARC_BLAS_VECTORS(demarc_dot_end_##letter, sum_parts<Number, false>)                       \
  DEMARC_BLAS_VECTORS(demarc_nrm2_end_##letter, sum_parts<Number, true>)
DEMARC_BLAS_VECTORS_OF(float, s)
DEMARC_BLAS_VECTORS_OF(double, d)
