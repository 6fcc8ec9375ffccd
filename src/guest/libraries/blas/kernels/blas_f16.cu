// Products of f16 matrices with sums of f32.
// demarc: sm 80
// demarc: needs nvcc
#include "tensor_products.cuh"

DEMARC_BLAS_PRODUCTS(F16, f16)
