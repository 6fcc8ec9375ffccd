// Products of f16 matrices, with sums of f32.
// demarc: isa 8.3
// demarc: sm 80
// demarc: needs nvcc
#include "tensor_products.cuh"

DEMARC_BLAS_ALL_TILES(F16, WideTile, demarc_f16)
