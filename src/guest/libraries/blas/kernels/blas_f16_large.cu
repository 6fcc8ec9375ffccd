// Products of f16 matrices, with sums of f32, by large tiles.
// demarc: isa 8.3
// demarc: sm 80
// demarc: needs nvcc
#include "tensor_products.cuh"

DEMARC_BLAS_ALL_TILES(F16, LargeTile, demarc_f16_large)
